//! What things cost in time on a machine. Each figure has a source and a range, and none was fitted
//! to an experiment: a cost belongs to the machine and serves every experiment on it.

use serde::{Deserialize, Serialize};

/// A cost with the range within which sources disagree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The value used by default. The unit ends the field's name in [`Costs`].
    pub value: f64,
    /// The low end of the range.
    pub low: f64,
    /// The high end of the range.
    pub high: f64,
    /// Where it comes from. Begins with `stand-in:` if nothing was published for this machine.
    pub source: String,
}

/// Which end of the ranges to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Band {
    /// Every figure at its low end.
    Low,
    /// Every figure at its value.
    Nominal,
    /// Every figure at its high end.
    High,
}

impl Figure {
    /// The figure's number at this end of its range.
    pub fn at(&self, band: Band) -> f64 {
        match band {
            Band::Low => self.low,
            Band::Nominal => self.value,
            Band::High => self.high,
        }
    }

    /// Whether it stands in for a figure that was never published for this machine.
    pub fn is_stand_in(&self) -> bool {
        self.source.starts_with("stand-in:")
    }

    fn fixed_at(&self, band: Band) -> Figure {
        let value = self.at(band);
        Figure { value, low: value, high: value, source: self.source.clone() }
    }
}

/// Defines [`Costs`] and the walk over its figures from one list.
macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The costs of a machine. The unit ends each name: `_ns` nanoseconds, `_ns_per_kib`
        /// nanoseconds a KiB, `_kib` KiB.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Costs {
            $($(#[$doc])* pub $name: Figure,)*
            /// Speed of one hardware thread, relative to it alone on its core, by the number of
            /// *other* busy threads of the core: `[0]` is 1.0, `[1]` with one busy sibling, and so
            /// on. As many entries as a core has threads.
            pub smt_throughput: Vec<Figure>,
        }

        impl Costs {
            /// The figures that have a name of their own, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            fn named(&self) -> Vec<(&'static str, &Figure)> {
                vec![$((stringify!($name), &self.$name),)*]
            }

            fn named_mut(&mut self, name: &str) -> Option<&mut Figure> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Every named figure by asking `figure` for it.
            pub(crate) fn try_build<E>(
                mut figure: impl FnMut(&'static str) -> Result<Figure, E>,
                smt_throughput: Vec<Figure>,
            ) -> Result<Costs, E> {
                Ok(Costs { $($name: figure(stringify!($name))?,)* smt_throughput })
            }
        }
    };
}

costs! {
    /// One-way transfer of a cache line between hardware threads of a core.
    transfer_smt_ns,
    /// One-way transfer of a cache line within a cluster; as in the LLC where there are no clusters.
    transfer_cluster_ns,
    /// One-way transfer of a cache line under one last-level cache.
    transfer_llc_ns,
    /// One-way transfer of a cache line between two last-level caches of a package.
    transfer_package_ns,
    /// One-way transfer of a cache line between packages.
    transfer_remote_ns,
    /// Direct cost of a switch between threads of one process.
    context_switch_ns,
    /// What a switch to another address space costs on top.
    process_switch_ns,
    /// Entry and exit of a system call, mitigations off.
    syscall_ns,
    /// Copying between user and kernel memory, lines in cache.
    copy_ns_per_kib,
    /// `try_to_wake_up`'s own instructions, without the transfer of lines.
    wakeup_ns,
    /// Going idle: `schedule` to the idle task, governor, state entry.
    idle_enter_ns,
    /// The sender's part of a reschedule interrupt.
    ipi_send_ns,
    /// The receiver's part of a reschedule interrupt, from arrival to `schedule`.
    ipi_receive_ns,
    /// From the store of `need_resched` until a polling CPU is in `schedule`, without the transfer.
    poll_wake_ns,
    /// The handler of one tick.
    tick_ns,
    /// One CPU looked at in a search for an idle one, its line in the LLC.
    scan_cpu_ns,
    /// One CPU whose statistics a balance pass reads.
    balance_cpu_ns,
    /// A pipe read's or write's own instructions, without transfers, system call and copy.
    pipe_op_ns,
    /// A socket send's or receive's own instructions, without transfers, system call and copy.
    socket_op_ns,
    /// Refill of a task's working set after a move within the LLC.
    refill_llc_ns_per_kib,
    /// Refill of a task's working set after a move to another LLC of the package.
    refill_package_ns_per_kib,
    /// Refill of a task's working set after a move to another package.
    refill_remote_ns_per_kib,
    /// How much of a task's memory is warm in its private caches.
    working_set_kib,
}

impl Costs {
    /// The same costs with every figure at this end of its range, and no range left.
    ///
    /// The low end means *cheap*. For `smt_throughput` that is the high speed, so its ends are
    /// taken the other way round.
    pub fn at(&self, band: Band) -> Costs {
        let mut costs = self.clone();
        for name in Costs::NAMES {
            let figure = costs.named_mut(name).expect("NAMES lists the named figures");
            *figure = figure.fixed_at(band);
        }
        let speed_band = match band {
            Band::Low => Band::High,
            Band::Nominal => Band::Nominal,
            Band::High => Band::Low,
        };
        for figure in &mut costs.smt_throughput {
            *figure = figure.fixed_at(speed_band);
        }
        costs
    }

    /// Every figure with its name, in the order of declaration; those of `smt_throughput` as
    /// `smt_throughput[0]` and on.
    pub fn figures(&self) -> impl Iterator<Item = (String, &Figure)> {
        let named = self.named().into_iter().map(|(name, figure)| (name.to_owned(), figure));
        let smt = self.smt_throughput.iter().enumerate();
        named.chain(smt.map(|(n, figure)| (format!("smt_throughput[{n}]"), figure)))
    }

    /// The figure of this name as [`Costs::figures`] gives it, to change it (sensitivity runs).
    pub fn figure_mut(&mut self, name: &str) -> Option<&mut Figure> {
        if let Some(index) = name.strip_prefix("smt_throughput[").and_then(|s| s.strip_suffix(']')) {
            return self.smt_throughput.get_mut(index.parse::<usize>().ok()?);
        }
        self.named_mut(name)
    }
}
