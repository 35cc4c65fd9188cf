//! Which shared cache lines an operation touched.
//!
//! The scheduler does not know what a transfer costs; it notes each access to a line that several
//! CPUs write, in order, and the engine charges the CPU that ran the operation.

use crate::ids::TgId;
use wakelab_machine::{CpuId, LlcId};

/// A cache line that several CPUs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// A CPU's run queue: its lock, `nr_running`, `curr`, `ttwu_pending`.
    Rq(CpuId),
    /// A CPU's `wake_list` head (remote wake-up queueing).
    WakeList(CpuId),
    /// The `removed` record of the fair run queue that a migrating task left.
    Removed(CpuId),
    /// `task_group.load_avg`, one line for the whole machine.
    TgLoadAvg(TgId),
    /// `sched_domain_shared` of an LLC: `has_idle_cores`, `nr_busy_cpus`, `nr_idle_scan`.
    LlcShared(LlcId),
    /// `nohz.idle_cpus_mask` and `nohz.nr_cpus`.
    NohzMask,
    /// `root_domain.overload`.
    RdOverload,
}

/// The kinds of [`Line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// [`Line::Rq`].
    Rq,
    /// [`Line::WakeList`].
    WakeList,
    /// [`Line::Removed`].
    Removed,
    /// [`Line::LlcShared`].
    LlcShared,
    /// [`Line::TgLoadAvg`].
    TgLoadAvg,
    /// [`Line::NohzMask`].
    NohzMask,
    /// [`Line::RdOverload`].
    RdOverload,
}

/// How many kinds of lines there are.
pub const LINE_KINDS: usize = LineKind::RdOverload as usize + 1;

/// One access. The line is kept as a kind and a number, which is what its price is looked up by: where
/// it is noted the kind is known, and where it is paid it could only be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The kind of line.
    pub kind: LineKind,
    /// Whether it was written (or locked), which takes it away from all other CPUs.
    pub write: bool,
    /// Which of them: the CPU's number, the group's or the LLC's; 0 for the only one.
    pub number: u32,
}

impl Touch {
    /// An access to a line.
    #[inline(always)]
    pub fn of(line: Line, write: bool) -> Touch {
        let (kind, number) = match line {
            Line::Rq(cpu) => (LineKind::Rq, cpu.index()),
            Line::WakeList(cpu) => (LineKind::WakeList, cpu.index()),
            Line::Removed(cpu) => (LineKind::Removed, cpu.index()),
            Line::TgLoadAvg(tg) => (LineKind::TgLoadAvg, tg.index()),
            Line::LlcShared(llc) => (LineKind::LlcShared, llc.index()),
            Line::NohzMask => (LineKind::NohzMask, 0),
            Line::RdOverload => (LineKind::RdOverload, 0),
        };
        let number = number as u32;
        Touch {
            kind,
            write,
            number,
        }
    }
}

/// What the operations since the last [`Touches::clear`] touched.
#[derive(Clone, Debug, Default)]
pub struct Touches {
    /// Accesses in order.
    pub list: Vec<Touch>,
    /// CPUs looked at in idle searches.
    pub scanned: u32,
    /// CPUs whose statistics a balance pass or slow path read.
    pub stats_read: u32,
}

impl Touches {
    /// Notes a read.
    #[inline(always)]
    pub fn read(&mut self, line: Line) {
        self.list.push(Touch::of(line, false));
    }

    /// Notes a write.
    #[inline(always)]
    pub fn write(&mut self, line: Line) {
        self.list.push(Touch::of(line, true));
    }

    /// Forgets all.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.list.clear();
        self.scanned = 0;
        self.stats_read = 0;
    }
}
