//! A machine's costs as whole nanoseconds in tables, ready for the event loop.

use wakelab_machine::topology::{Cpu, Distance, Machine};
use wakelab_machine::{CpuId, Ns};

/// Speeds are fractions of 1024.
pub const FULL_SPEED: u64 = 1024;

/// The costs of a machine, in ns.
#[derive(Clone, Debug)]
pub struct Prices {
    /// Where each CPU is.
    place: Vec<Place>,
    /// The LLC of each CPU.
    llc: Vec<u16>,
    /// One-way line transfer by [`Distance`] class.
    transfer: [u64; 6],
    /// Refill of a working set by session and [`Distance`] class of the move.
    refill: Vec<[u64; 6]>,
    /// Speed of a thread by the number of busy siblings, of [`FULL_SPEED`].
    pub smt_speed: Vec<u64>,
    /// A switch between threads, ns.
    pub context_switch: u64,
    /// What another address space adds to it, ns.
    pub process_switch: u64,
    /// Entry and exit of a system call, ns.
    pub syscall: u64,
    /// Copying a KiB, ns.
    pub copy_per_kib: u64,
    /// A wake-up's own instructions, ns.
    pub wakeup: u64,
    /// Going idle, ns.
    pub idle_enter: u64,
    /// An interrupt's sender, ns.
    pub ipi_send: u64,
    /// An interrupt's receiver, ns.
    pub ipi_receive: u64,
    /// A polling CPU noticing, ns.
    pub poll_wake: u64,
    /// A tick, ns.
    pub tick: u64,
    /// One CPU looked at in a search, ns.
    pub scan_cpu: u64,
    /// One CPU's statistics read by a balance pass, ns.
    pub balance_cpu: u64,
    /// A pipe operation's own instructions, ns.
    pub pipe_op: u64,
    /// A socket operation's own instructions, ns.
    pub socket_op: u64,
    /// A TCP operation's own instructions if it emits a packet, ns.
    pub tcp_op: u64,
    /// Idle states, shallowest first.
    pub idle_states: Vec<IdlePrice>,
}

/// An idle state in ns.
#[derive(Clone, Copy, Debug)]
pub struct IdlePrice {
    /// Time from the wake-up to the first instruction.
    pub exit: u64,
    /// Idle time from which on it is chosen.
    pub residency: u64,
    /// Woken by a store, without an interrupt.
    pub polling: bool,
}

/// Where a CPU is, packed so that the distance between two takes no branches: these would be
/// guessed wrong, since whose line an operation needs is a matter of luck. From the lowest bits up
/// five fields of `FIELD` bits: CPU, core, cluster, LLC, package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place(u64);

/// Numbers are below 2048; one more bit is for the arithmetic.
const FIELD: u32 = 12;
/// A 1 in each field.
const ONES: u64 = 1 | 1 << FIELD | 1 << (2 * FIELD) | 1 << (3 * FIELD) | 1 << (4 * FIELD);
/// The highest bit of each field.
const TOPS: u64 = ONES << (FIELD - 1);
/// Clusters of CPUs that have none are numbered from here, one a core: they are below the LLC
/// but join no two cores.
const NO_CLUSTER: u64 = 1024;

impl Place {
    fn of(cpu: &Cpu) -> Place {
        let core = u64::from(cpu.core.0);
        let cluster = cpu.cluster.map_or(NO_CLUSTER + core, |c| u64::from(c.0));
        let (llc, package) = (u64::from(cpu.llc.0), u64::from(cpu.package));
        let fields = [cpu.id.index() as u64, core, cluster, llc, package];
        debug_assert!(fields.iter().all(|&number| number < 1 << (FIELD - 1)));
        let join = |place, &number: &u64| place << FIELD | number;
        Place(fields.iter().rev().fold(0, join))
    }

    /// The [`Distance`] to another CPU, as a number: the lowest field in which the two agree.
    #[inline(always)]
    fn distance(self, other: Place) -> usize {
        let differs = self.0 ^ other.0;
        // The top bit of every field that is 0, as far as the lowest of them goes.
        let agrees = differs.wrapping_sub(ONES) & !differs & TOPS;
        let none = 1 << (5 * FIELD);
        ((agrees | none).trailing_zeros() / FIELD) as usize
    }
}

impl Prices {
    /// The prices of a machine at the nominal values of its costs, for tasks that keep so much
    /// memory warm, session by session.
    pub fn of(machine: &Machine, working_sets_kib: &[u64]) -> Prices {
        let costs = &machine.costs;
        let ns = |figure: &wakelab_machine::costs::Figure| figure.value.round().max(0.0) as u64;
        let refill = |&kib: &u64| {
            let of = |figure: &wakelab_machine::costs::Figure| {
                (figure.value * kib as f64).round() as u64
            };
            let llc = of(&costs.refill_llc_ns_per_kib);
            let package = of(&costs.refill_package_ns_per_kib);
            let remote = of(&costs.refill_remote_ns_per_kib);
            // Siblings share the private caches, so a move between them refills nothing.
            [0, 0, llc, llc, package, remote]
        };
        let states = machine.idle_states.iter().map(|state| IdlePrice {
            exit: state.exit_latency.0,
            residency: state.target_residency.0,
            polling: state.polling,
        });
        Prices {
            place: machine.cpus.iter().map(Place::of).collect(),
            llc: machine.cpus.iter().map(|cpu| cpu.llc.0).collect(),
            transfer: [
                0,
                ns(&costs.transfer_smt_ns),
                ns(&costs.transfer_cluster_ns),
                ns(&costs.transfer_llc_ns),
                ns(&costs.transfer_package_ns),
                ns(&costs.transfer_remote_ns),
            ],
            refill: working_sets_kib.iter().map(refill).collect(),
            smt_speed: costs
                .smt_throughput
                .iter()
                .map(|f| ((f.value * FULL_SPEED as f64).round() as u64).max(1))
                .collect(),
            context_switch: ns(&costs.context_switch_ns),
            process_switch: ns(&costs.process_switch_ns),
            syscall: ns(&costs.syscall_ns),
            copy_per_kib: ns(&costs.copy_ns_per_kib),
            wakeup: ns(&costs.wakeup_ns),
            idle_enter: ns(&costs.idle_enter_ns),
            ipi_send: ns(&costs.ipi_send_ns),
            ipi_receive: ns(&costs.ipi_receive_ns),
            poll_wake: ns(&costs.poll_wake_ns),
            tick: ns(&costs.tick_ns),
            scan_cpu: ns(&costs.scan_cpu_ns),
            balance_cpu: ns(&costs.balance_cpu_ns),
            pipe_op: ns(&costs.pipe_op_ns),
            socket_op: ns(&costs.socket_op_ns),
            tcp_op: ns(&costs.tcp_op_ns),
            idle_states: states.collect(),
        }
    }

    /// No idle state with a longer exit is entered any more (`cpuidle_governor_latency_req`); the
    /// shallowest stays.
    pub fn limit_idle_exit(&mut self, limit: Ns) {
        let mut first = true;
        let keep = |state: &IdlePrice| std::mem::take(&mut first) || state.exit <= limit.0;
        self.idle_states.retain(keep);
    }

    /// Where a CPU is.
    #[inline(always)]
    pub fn place(&self, cpu: CpuId) -> Place {
        self.place[cpu.index()]
    }

    /// One-way transfer of a cache line between two CPUs, ns.
    #[inline(always)]
    pub fn transfer(&self, from: CpuId, to: CpuId) -> u64 {
        self.transfer_between(self.place(from), self.place(to))
    }

    /// One-way transfer of a cache line between CPUs at two places, ns.
    #[inline(always)]
    pub fn transfer_between(&self, from: Place, to: Place) -> u64 {
        self.transfer[from.distance(to)]
    }

    /// One-way transfer within an LLC, ns.
    #[inline(always)]
    pub fn transfer_llc(&self) -> u64 {
        self.transfer[Distance::Llc as usize]
    }

    /// What a task of a session pays for its cold working set after a move, ns.
    #[inline(always)]
    pub fn refill(&self, session: u16, from: CpuId, to: CpuId) -> u64 {
        self.refill[usize::from(session)][self.place(from).distance(self.place(to))]
    }

    /// The LLC of a CPU, as a number.
    #[inline(always)]
    pub fn llc(&self, cpu: CpuId) -> usize {
        usize::from(self.llc[cpu.index()])
    }

    /// Copying so many bytes, ns.
    #[inline(always)]
    pub fn copy(&self, bytes: u64) -> u64 {
        bytes * self.copy_per_kib / 1024
    }

    /// The deepest idle state whose residency the expected idle time covers.
    pub fn idle_state(&self, expected: Ns) -> Option<IdlePrice> {
        let fits = |state: &&IdlePrice| state.residency <= expected.0;
        self.idle_states
            .iter()
            .rev()
            .find(fits)
            .or(self.idle_states.first())
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_places_have_the_machine_s_distances() {
        for name in ["epyc-9654-2s", "kunpeng-920", "power9-2s44c"] {
            let machine = Machine::preset(name).expect("a preset");
            let places: Vec<Place> = machine.cpus.iter().map(Place::of).collect();
            for (a, place) in places.iter().enumerate() {
                for (b, other) in places.iter().enumerate() {
                    let (from, to) = (CpuId::from_index(a), CpuId::from_index(b));
                    let distance = machine.distance_class(from, to) as usize;
                    assert_eq!(place.distance(*other), distance, "{name}: {a} to {b}");
                }
            }
        }
    }
}
