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

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The line.
    pub line: Line,
    /// Whether it was written (or locked), which takes it away from all other CPUs.
    pub write: bool,
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
        self.list.push(Touch { line, write: false });
    }

    /// Notes a write.
    #[inline(always)]
    pub fn write(&mut self, line: Line) {
        self.list.push(Touch { line, write: true });
    }

    /// Forgets all.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.list.clear();
        self.scanned = 0;
        self.stats_read = 0;
    }
}
