//! What passes look up again and again, as lists: masks are wide, lists are as long as they need be.

use wakelab_machine::CpuId;
use wakelab_machine::domains::SchedTopology;

/// One group as lists.
#[derive(Clone, Debug)]
pub(crate) struct GroupTable {
    /// `sched_group_span`, ascending.
    pub cpus: Box<[CpuId]>,
    /// `group_balance_mask`, ascending.
    pub balance_cpus: Box<[CpuId]>,
}

/// Lists by group and by CPU.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    /// By group.
    pub groups: Vec<GroupTable>,
    /// Other hardware threads of the core, by CPU.
    pub siblings: Vec<Box<[CpuId]>>,
}

impl Tables {
    pub fn new(topo: &SchedTopology) -> Tables {
        let groups = topo.groups.iter().map(|group| GroupTable {
            cpus: group.span.iter().collect(),
            balance_cpus: group.balance_mask.iter().collect(),
        });
        let siblings = topo.cpus.iter().enumerate().map(|(index, cpu)| {
            cpu.smt
                .iter()
                .filter(|other| other.index() != index)
                .collect()
        });
        Tables {
            groups: groups.collect(),
            siblings: siblings.collect(),
        }
    }
}
