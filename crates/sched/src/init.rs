//! A scheduler at boot: nothing queued, all CPUs idle.

use crate::balance::Balance;
use crate::fair::Jiffy;
use crate::features::Features;
use crate::ids::{SeId, TgId};
use crate::placement::Ranks;
use crate::rules::{Rules, Tunables};
use crate::state::{
    CfsRq, CoreSched, DomainState, GroupCapacity, LlcShared, Nohz, RootDomain, Rq, Sched,
    SchedEntity, TaskGroup,
};
use crate::touch::Touches;
use crate::weight::{NICE_0_LOAD, scale_load};
use std::sync::Arc;
use wakelab_machine::domains::SchedTopology;
use wakelab_machine::{CpuId, Ns};

/// `MIN_SHARES` and `MAX_SHARES`, as users see them.
const SHARES: std::ops::RangeInclusive<u64> = 2..=1 << 18;

/// Where virtual time starts: 1 ms before it wraps (`init_cfs_rq`), so that errors show at once.
const FIRST_VRUNTIME: u64 = (1u64 << 20).wrapping_neg();

impl Sched {
    /// The scheduler of a machine at time 0, with the root group only.
    pub fn new(topo: Arc<SchedTopology>, rules: Rules, feat: Features, tun: Tunables) -> Sched {
        let ncpu = topo.cpus.len();
        let mut sched = Sched {
            rules,
            feat,
            tun,
            tasks: Vec::new(),
            se: Vec::new(),
            cfs: Vec::new(),
            tgs: Vec::new(),
            rqs: Vec::new(),
            llc: Vec::new(),
            sgc: Vec::new(),
            sd: Vec::new(),
            rd: RootDomain::default(),
            nohz: Nohz::default(),
            ranks: Arc::new(Ranks::of(&topo)),
            lb: Balance::new(&topo, &tun),
            core: CoreSched::new(topo.cores.iter().map(|cpus| cpus.iter().collect())),
            now: 0,
            jiffy: Jiffy::default(),
            touch: Touches::default(),
            topo,
        };
        sched.rqs = (0..ncpu)
            .map(|cpu| sched.new_rq(CpuId::from_index(cpu)))
            .collect();
        sched.tgs.push(root_group());
        sched.cfs = (0..ncpu)
            .map(|cpu| new_cfs_rq(TgId::ROOT, cpu, SeId::NONE))
            .collect();
        sched.init_shared();
        for cpu in 0..ncpu {
            sched.sync_idle(CpuId::from_index(cpu));
        }
        sched
    }

    fn new_rq(&self, cpu: CpuId) -> Rq {
        let place = &self.topo.cpus[cpu.index()];
        let capacity = u64::from(place.capacity);
        let rank = place
            .llc_span
            .iter()
            .take_while(|&other| other < cpu)
            .count();
        Rq {
            cpu,
            avg_idle: 2 * self.tun.migration_cost.0,
            max_idle_balance_cost: self.tun.migration_cost.0,
            cpu_capacity: capacity,
            cpu_capacity_orig: capacity,
            llc: place.llc.0,
            llc_rank: rank as u16,
            ..Rq::default()
        }
    }

    /// What CPUs share: LLCs, capacities of groups, domains (kernel `sched/topology.c`).
    fn init_shared(&mut self) {
        let topo = Arc::clone(&self.topo);
        let busy = |cpus: &wakelab_machine::CpuMask| LlcShared {
            nr_busy_cpus: cpus.weight() as u32,
            ..LlcShared::default()
        };
        self.llc = topo.llcs.iter().map(busy).collect();
        let capacity = |cpus: &wakelab_machine::CpuMask| {
            let each = || {
                cpus.iter()
                    .map(|cpu| u64::from(topo.cpus[cpu.index()].capacity))
            };
            GroupCapacity {
                capacity: each().sum(),
                min_capacity: each().min().unwrap_or(0),
                max_capacity: each().max().unwrap_or(0),
                ..GroupCapacity::default()
            }
        };
        self.sgc = topo
            .groups
            .iter()
            .map(|group| capacity(&group.span))
            .collect();
        let jiffies = self.boot_jiffies();
        self.sd = topo
            .domains
            .iter()
            .map(|domains| {
                let state = |weight| DomainState {
                    last_balance: jiffies,
                    balance_interval: weight,
                    last_decay_max_lb_cost: jiffies,
                    newidle_call: 512,
                    newidle_success: 256,
                    newidle_ratio: 512,
                    ..DomainState::default()
                };
                domains
                    .iter()
                    .map(|domain| state(domain.span_weight))
                    .collect()
            })
            .collect();
        self.rqs.iter_mut().for_each(|rq| rq.next_balance = jiffies);
        self.nohz.next_balance = jiffies;
    }

    fn boot_jiffies(&self) -> u64 {
        if self.rqs.is_empty() {
            0
        } else {
            self.jiffies(CpuId(0))
        }
    }

    /// Makes a task group below `parent` with `shares` as `cpu.shares` counts them (1024 by default,
    /// 2 ..= 262144, others are taken as the nearest).
    pub fn add_group(&mut self, name: &str, parent: TgId, shares: u64) -> TgId {
        let tg = TgId::from_index(self.tgs.len());
        let ncpu = self.ncpu();
        let first_se = SeId::from_index(self.se.len());
        let depth = self.tgs[parent.index()].depth + 1;
        self.tgs.push(TaskGroup {
            name: name.to_owned(),
            parent,
            first_se,
            shares: scale_load(shares.clamp(*SHARES.start(), *SHARES.end())),
            load_avg: 0,
            depth,
            idle: false,
        });
        for cpu in 0..ncpu {
            let owner = SeId(first_se.0 + cpu as u32);
            self.cfs.push(new_cfs_rq(tg, cpu, owner));
            let on = CpuId::from_index(cpu);
            self.se.push(SchedEntity {
                weight: NICE_0_LOAD,
                depth: depth - 1,
                parent: self.group_se(parent, on),
                cfs_rq: self.cfs_of(parent, on),
                my_q: self.cfs_of(tg, on),
                tg,
                ..SchedEntity::default()
            });
        }
        // online_fair_sched_group
        for cpu in 0..ncpu {
            self.update_rq_clock(CpuId::from_index(cpu), Ns(self.now));
            self.attach_entity_cfs_rq(SeId(first_se.0 + cpu as u32));
        }
        tg
    }
}

fn root_group() -> TaskGroup {
    TaskGroup {
        name: "root".to_owned(),
        parent: TgId::NONE,
        first_se: SeId::NONE,
        shares: NICE_0_LOAD,
        load_avg: 0,
        depth: 0,
        idle: false,
    }
}

fn new_cfs_rq(tg: TgId, cpu: usize, owner: SeId) -> CfsRq {
    CfsRq {
        min_vruntime: FIRST_VRUNTIME,
        zero_vruntime: FIRST_VRUNTIME,
        curr: SeId::NONE,
        tg,
        cpu: CpuId::from_index(cpu),
        owner,
        ..CfsRq::default()
    }
}
