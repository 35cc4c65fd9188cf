//! Capacities of groups (`update_group_capacity`).

use crate::Sched;
use crate::state::GroupCapacity;
use wakelab_machine::CpuId;
use wakelab_machine::domains::sd;

impl Sched {
    /// `update_cpu_capacity`: what is left of a CPU for the fair class. Nothing takes from it here
    /// (no real-time tasks, no interrupt time, no thermal pressure), so it is all of it.
    fn update_cpu_capacity(&mut self, cpu: CpuId) -> GroupCapacity {
        let rq = self.rq_mut(cpu);
        let capacity = rq.cpu_capacity_orig.max(1);
        rq.cpu_capacity = capacity;
        GroupCapacity {
            capacity,
            min_capacity: capacity,
            max_capacity: capacity,
            ..GroupCapacity::default()
        }
    }

    /// Sums the local group's capacity from the groups below it, and sets when that is next due
    /// (kernel sched/fair.c, `update_group_capacity`).
    pub(crate) fn update_group_capacity(&mut self, cpu: CpuId, level: usize, jiffies: u64) {
        let interval = u64::from(self.sd[cpu.index()][level].balance_interval);
        let interval = self
            .lb
            .msecs_to_jiffies(interval)
            .clamp(1, self.lb.max_interval);
        let sum = match level.checked_sub(1) {
            None => self.update_cpu_capacity(cpu),
            Some(child) => self.capacity_of_child(cpu, child),
        };
        let group = self.topo.domains[cpu.index()][level].groups[0];
        let sgc = &mut self.sgc[group.index()];
        sgc.capacity = sum.capacity;
        sgc.min_capacity = sum.min_capacity;
        sgc.max_capacity = sum.max_capacity;
        sgc.next_update = jiffies + interval;
    }

    fn capacity_of_child(&self, cpu: CpuId, child: usize) -> GroupCapacity {
        let domains = &self.topo.domains[cpu.index()];
        let mut sum = GroupCapacity {
            min_capacity: u64::MAX,
            ..GroupCapacity::default()
        };
        let mut add = |capacity: u64, min: u64, max: u64| {
            sum.capacity += capacity;
            sum.min_capacity = sum.min_capacity.min(min);
            sum.max_capacity = sum.max_capacity.max(max);
        };
        if domains[child].flags & sd::OVERLAP != 0 {
            // Overlapping groups below would be counted more than once.
            let group = domains[child + 1].groups[0];
            for &cpu in &self.lb.tables.groups[group.index()].cpus {
                let capacity = self.capacity_of(cpu);
                add(capacity, capacity, capacity);
            }
        } else {
            for group in &domains[child].groups {
                let sgc = &self.sgc[group.index()];
                add(sgc.capacity, sgc.min_capacity, sgc.max_capacity);
            }
        }
        sum
    }
}
