//! Identifiers and units. Each is a type of its own, so that a CPU number is never taken for a core
//! number and a time never for a load.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident, $repr:ty) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize,
        )]
        pub struct $name(pub $repr);

        impl $name {
            /// The number as an index into a table of these.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier with this index.
            ///
            /// # Panics
            /// If the index does not fit the identifier, which the size limits of machines exclude.
            #[inline(always)]
            pub fn from_index(index: usize) -> Self {
                debug_assert!(index <= <$repr>::MAX as usize);
                Self(index as $repr)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

index_type!(
    /// A logical CPU, numbered as Linux numbers it.
    CpuId, u16);
index_type!(
    /// A physical core, numbered 0.. over the whole machine in the order of its first CPU.
    CoreId, u16);
index_type!(
    /// A cluster of cores (shared L2 or L3 tag), numbered over the whole machine.
    ClusterId, u16);
index_type!(
    /// A last-level cache, numbered over the whole machine in the order of its first CPU.
    LlcId, u16);
index_type!(
    /// A NUMA node.
    NodeId, u16);
index_type!(
    /// A sched group (with its capacity record, `sgc`) in the arena of a [`SchedTopology`](crate::domains::SchedTopology).
    GroupId, u32);

/// A time or a span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Ns(pub u64);

impl Ns {
    /// Zero.
    pub const ZERO: Ns = Ns(0);

    /// So many microseconds.
    pub const fn from_us(us: u64) -> Ns {
        Ns(us * 1_000)
    }

    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> Ns {
        Ns(ms * 1_000_000)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span from `earlier` to this time, zero if `earlier` is later.
    #[inline(always)]
    pub fn since(self, earlier: Ns) -> Ns {
        Ns(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ns {
    type Output = Ns;
    #[inline(always)]
    fn add(self, other: Ns) -> Ns {
        Ns(self.0 + other.0)
    }
}

impl Sub for Ns {
    type Output = Ns;
    #[inline(always)]
    fn sub(self, other: Ns) -> Ns {
        debug_assert!(self.0 >= other.0, "time went backwards");
        Ns(self.0 - other.0)
    }
}

impl AddAssign for Ns {
    #[inline(always)]
    fn add_assign(&mut self, other: Ns) {
        self.0 += other.0;
    }
}

impl SubAssign for Ns {
    #[inline(always)]
    fn sub_assign(&mut self, other: Ns) {
        *self = *self - other;
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
