//! The slow path's choice of a group before 5.5: by spare capacity, else by load for capacity.

use super::view::View;
use wakelab_machine::domains::sd;
use wakelab_machine::ids::GroupId;
use wakelab_machine::{CpuId, CpuMask};

/// What is summed over a group.
#[derive(Clone, Copy, Debug)]
struct Sums {
    /// Load of what is queued, for its capacity.
    runnable: u64,
    /// Load with what sleeps, for its capacity.
    average: u64,
    /// The most that one of its CPUs has to spare.
    spare: u64,
}

impl Sums {
    const NONE: Sums = Sums {
        runnable: u64::MAX,
        average: u64::MAX,
        spare: 0,
    };
}

/// What counts as a difference in a domain.
#[derive(Clone, Copy)]
struct Margin {
    /// A load for capacity.
    load: u64,
    /// Per cent.
    scale: u64,
}

impl Margin {
    fn of(imbalance_pct: u32) -> Margin {
        let over = u64::from(imbalance_pct) - 100;
        Margin {
            load: 1024 * over / 100,
            scale: 100 + over / 2,
        }
    }

    /// Clearly less load, or about as much and clearly less with what sleeps.
    fn is_idler(self, sums: &Sums, than: &Sums) -> Idler {
        if than.runnable > sums.runnable.saturating_add(self.load) {
            Idler::Clearly
        } else if sums.runnable < than.runnable.saturating_add(self.load)
            && 100 * u128::from(than.average) > u128::from(self.scale) * u128::from(sums.average)
        {
            Idler::WithSleepers
        } else {
            Idler::Not
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Idler {
    Not,
    Clearly,
    WithSleepers,
}

/// The idlest group but the CPU's own one, none to stay there (kernel 5.2 `sched/fair.c`,
/// `find_idlest_group()`). All CPUs of a group count, also those that the task may not use.
pub(super) fn find_idlest_group_by_load<V: View>(
    v: &mut V,
    cpu: CpuId,
    level: usize,
    sd_flag: u32,
) -> Option<GroupId> {
    let domain = &v.topo().domains[cpu.index()][level];
    let (ngroups, flags) = (domain.groups.len(), domain.flags);
    let margin = Margin::of(domain.imbalance_pct);
    let (mut local, mut least) = (Sums::NONE, Sums::NONE);
    let (mut idlest, mut roomiest) = (None, (0, None));
    for index in 0..ngroups {
        let group = v.topo().domains[cpu.index()][level].groups[index];
        let span = v.topo().groups[group.index()].span;
        if !span.iter().any(|member| v.allowed(member)) {
            continue;
        }
        let sums = sum_group(v, group, &span);
        if span.contains(cpu) {
            local = sums;
            continue;
        }
        match margin.is_idler(&sums, &least) {
            Idler::Clearly => (least, idlest) = (sums, Some(group)),
            // The least load of what is queued stays what it was.
            Idler::WithSleepers => (least.average, idlest) = (sums.average, Some(group)),
            Idler::Not => {}
        }
        if sums.spare > roomiest.0 {
            roomiest = (sums.spare, Some(group));
        }
    }
    // A new task's utilisation is not known yet.
    if sd_flag & sd::BALANCE_FORK == 0 {
        let half = v.task_util() / 2;
        if local.spare > half && margin.scale * local.spare > 100 * roomiest.0 {
            return None;
        }
        if roomiest.0 > half {
            return roomiest.1;
        }
    }
    idlest.filter(|_| leaves_local(margin, flags, &local, &least))
}

/// Whether the idlest group is enough idler than the local one: what sleeps decides where what is
/// queued is about the same, and between nodes nothing but clearly less load does.
fn leaves_local(margin: Margin, flags: u32, local: &Sums, least: &Sums) -> bool {
    let near = least.runnable.saturating_add(margin.load) >= local.runnable;
    if flags & sd::NUMA != 0 && near {
        return false;
    }
    let about_same = local.runnable < least.runnable.saturating_add(margin.load);
    let (here, there) = (u128::from(local.average), u128::from(least.average));
    let sleepers_stay = about_same && 100 * here < u128::from(margin.scale) * there;
    least.runnable <= local.runnable.saturating_add(margin.load) && !sleepers_stay
}

fn sum_group<V: View>(v: &mut V, group: GroupId, span: &CpuMask) -> Sums {
    let mut sums = Sums {
        runnable: 0,
        average: 0,
        spare: 0,
    };
    for cpu in span.iter() {
        sums.runnable += v.cpu_load(cpu);
        sums.average += v.cpu_load_avg(cpu);
        let spare = v.capacity_of(cpu).saturating_sub(v.cpu_util_without(cpu));
        sums.spare = sums.spare.max(spare);
    }
    v.note_stats_read(span.weight() as u32);
    let capacity = v.group_capacity(group).capacity.max(1);
    sums.runnable = sums.runnable * 1024 / capacity;
    sums.average = sums.average * 1024 / capacity;
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(runnable: u64, average: u64) -> Sums {
        Sums {
            runnable,
            average,
            spare: 0,
        }
    }

    #[test]
    fn a_quarter_of_a_task_is_a_difference_and_less_lets_sleepers_decide() {
        let margin = Margin::of(125);
        assert_eq!((margin.load, margin.scale), (256, 112));
        let than = sums(1024, 1024);
        assert_eq!(margin.is_idler(&sums(767, 9999), &than), Idler::Clearly);
        assert_eq!(margin.is_idler(&sums(768, 1024), &than), Idler::Not);
        assert_eq!(margin.is_idler(&sums(768, 914), &than), Idler::WithSleepers);
        assert_eq!(margin.is_idler(&sums(1279, 0), &than), Idler::WithSleepers);
        assert_eq!(margin.is_idler(&sums(1280, 0), &than), Idler::Not);
    }

    #[test]
    fn between_nodes_a_task_leaves_only_for_clearly_less() {
        let margin = Margin::of(125);
        let local = sums(1000, 1000);
        assert!(!leaves_local(margin, 0, &local, &sums(900, 893)));
        assert!(leaves_local(margin, 0, &local, &sums(900, 892)));
        assert!(!leaves_local(margin, sd::NUMA, &local, &sums(900, 892)));
        assert!(leaves_local(margin, sd::NUMA, &local, &sums(743, 900)));
        assert!(!leaves_local(margin, 0, &local, &sums(1300, 0)));
    }
}
