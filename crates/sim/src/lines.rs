//! Cache lines that several CPUs write, as resources with an owner and a time at which they are
//! next free.
//!
//! An access that needs the line from another CPU waits until the line is free, pays the transfer
//! by distance, and keeps the line busy meanwhile. Contention, stalls and the limits to scaling
//! come out of that. Lines are served at event time: a backlog forms behind `free_at`, and nothing
//! is reserved at the future local time of a CPU, which would make queues run away.
//!
//! A *read* of a line that its LLC has had since the last write is served from there and occupies
//! nothing. The first read after a write fetches the line by distance; that occupies the line only
//! for as long as its owner's LLC needs to serve a request (the in-LLC transfer time), since the
//! owner keeps its copy.
//!
//! With core scheduling the CPUs of a core have one lock for their run queues, the leader's, which is held
//! from the pick to the end of the switch: a sibling, or whoever wakes a task there, waits for that long.

use crate::outcome::LineRow;
use crate::price::{Place, Prices};
use wakelab_machine::CpuId;
use wakelab_sched::touch::LineKind;
use wakelab_sched::{Line, Touch, Touches};

/// One line.
#[derive(Clone, Copy, Debug)]
struct State {
    /// When it can be transferred next, ns.
    free_at: u64,
    /// Where the CPU is that wrote it last.
    owner: Place,
}

/// What accesses cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paid {
    /// Waiting for the line to become free, ns.
    pub wait: u64,
    /// Its transfer, ns.
    pub transfer: u64,
}

impl Paid {
    /// Both, ns.
    #[inline(always)]
    pub fn total(self) -> u64 {
        self.wait + self.transfer
    }
}

/// The CPU that accesses lines, and when.
#[derive(Clone, Copy, Debug)]
struct Accessor {
    place: Place,
    llc: usize,
    now: u64,
}

/// All shared lines.
#[derive(Clone, Debug)]
pub struct Lines {
    states: Vec<State>,
    /// By line, a bit for each LLC: it has had the line since the last write.
    copies: Vec<u64>,
    /// How many words of `copies` a line has.
    words: usize,
    /// The CPU whose run queue's lock each CPU takes, once core scheduling is in force; empty before.
    leaders: Vec<CpuId>,
    /// Where the lines of each kind begin in `states`.
    first: [usize; KINDS],
    /// Sum of waits by kind of line, ns, for the report of what saturates.
    pub waited: [u64; KINDS],
    /// Transfers that occupied a line, by kind.
    pub transfers: [u64; KINDS],
    /// Time that lines of a kind were occupied, ns.
    pub occupied: [u64; KINDS],
}

const KINDS: usize = wakelab_sched::LINE_KINDS;

/// Bits of a word of [`Lines::copies`].
const WORD: usize = u64::BITS as usize;

/// Names of the kinds of lines, in the order of [`Lines::waited`].
pub const LINE_KINDS: [&str; KINDS] = [
    "rq",
    "wake_list",
    "removed",
    "llc_shared",
    "tg_load_avg",
    "nohz_mask",
    "rd_overload",
];

impl Lines {
    /// The lines of a machine with so many CPUs and LLCs and of so many task groups, all written
    /// last by the CPU at `owner`.
    pub fn new(ncpu: usize, nllc: usize, ngroups: usize, owner: Place) -> Lines {
        let mut count = 0;
        let counts = [ncpu, ncpu, ncpu, nllc, ngroups, 1, 1];
        let first = counts.map(|lines| {
            count += lines;
            count - lines
        });
        let state = State { free_at: 0, owner };
        let words = nllc.div_ceil(WORD);
        Lines {
            states: vec![state; count],
            copies: vec![u64::MAX; count * words],
            words,
            leaders: Vec::new(),
            first,
            waited: [0; KINDS],
            transfers: [0; KINDS],
            occupied: [0; KINDS],
        }
    }

    /// An access to a line by a CPU at event time `now`, by an operation that has already taken `lead`
    /// ns since.
    ///
    /// The line's backlog grows from the event time on, never from the operation's own later time.
    /// The operation waits for what of the backlog is left when it gets there. A writer must also take
    /// away the copies that other LLCs read since; the invalidations go out together with the request
    /// and are covered by the transfer from the owner.
    #[inline(always)]
    fn access(&mut self, touch: Touch, by: Accessor, lead: u64, prices: &Prices) -> Paid {
        let kind = touch.kind as usize;
        let index = self.first[kind] + touch.number as usize;
        let state = &mut self.states[index];
        let copies = &mut self.copies[index * self.words..][..self.words];
        let (word, bit) = (by.llc / WORD, 1 << (by.llc % WORD));
        let transfer = prices.transfer_between(state.owner, by.place);
        let wait = state.free_at.saturating_sub(by.now + lead);
        let occupied = if touch.write {
            copies.fill(0);
            state.owner = by.place;
            transfer
        } else if copies[word] & bit != 0 {
            return Paid::default();
        } else {
            prices.transfer_llc().min(transfer)
        };
        copies[word] |= bit;
        state.free_at = state.free_at.max(by.now) + occupied;
        self.waited[kind] += wait;
        self.transfers[kind] += u64::from(transfer != 0);
        self.occupied[kind] += occupied;
        Paid { wait, transfer }
    }

    /// From now on CPUs take the locks of these ones' run queues instead of their own (`rq_lockp`).
    pub fn share_locks(&mut self, leaders: impl Iterator<Item = CpuId>) {
        self.leaders.clear();
        self.leaders.extend(leaders);
    }

    /// The lock of a CPU's run queue is held until then. Nothing is noted unless locks are shared: what
    /// others wait for is then its line alone.
    #[inline]
    pub fn hold(&mut self, cpu: CpuId, until: u64) {
        if let Some(&leader) = self.leaders.get(cpu.index()) {
            let index = self.first[LineKind::Rq as usize] + leader.index();
            let state = &mut self.states[index];
            state.free_at = state.free_at.max(until);
        }
    }

    /// Forgets what was counted, not who owns which line.
    pub fn reset_counters(&mut self) {
        self.waited = [0; KINDS];
        self.transfers = [0; KINDS];
        self.occupied = [0; KINDS];
    }

    /// What was counted over `time` ns, by kind of line.
    pub fn report(&self, time: u64) -> Vec<LineRow> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let row = |kind: usize| LineRow {
            line: LINE_KINDS[kind],
            transfers: self.transfers[kind],
            waited_s: seconds(self.waited[kind]),
            occupied_pct: 100.0 * self.occupied[kind] as f64 / time.max(1) as f64,
        };
        (0..KINDS).map(row).collect()
    }

    /// All accesses that an operation noted, in order, by a CPU at event time `now` and `lead` ns later.
    #[inline]
    pub fn charge(
        &mut self,
        touches: &Touches,
        cpu: CpuId,
        now: u64,
        lead: u64,
        prices: &Prices,
    ) -> Paid {
        let mut paid = Paid::default();
        let (place, llc) = (prices.place(cpu), prices.llc(cpu));
        let by = Accessor { place, llc, now };
        if !self.leaders.is_empty() {
            return self.charge_by_core(touches, by, lead, prices);
        }
        for &touch in &touches.list {
            let one = self.access(touch, by, lead + paid.total(), prices);
            paid.wait += one.wait;
            paid.transfer += one.transfer;
        }
        paid
    }

    /// The same with shared locks: the line of a run queue whose lock is another's comes after that.
    #[inline(never)]
    fn charge_by_core(
        &mut self,
        touches: &Touches,
        by: Accessor,
        lead: u64,
        prices: &Prices,
    ) -> Paid {
        let mut paid = Paid::default();
        for &touch in &touches.list {
            let locks = touch.kind == LineKind::Rq && touch.write;
            let leader = locks.then(|| self.leaders[touch.number as usize]);
            let lock = leader.map(|leader| Touch::of(Line::Rq(leader), true));
            let own = (lock != Some(touch)).then_some(touch);
            for touch in [lock, own].into_iter().flatten() {
                let one = self.access(touch, by, lead + paid.total(), prices);
                paid.wait += one.wait;
                paid.transfer += one.transfer;
            }
        }
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakelab_machine::topology::Machine;
    use wakelab_sched::TgId;

    const LOAD_AVG: Line = Line::TgLoadAvg(TgId::ROOT);

    impl Lines {
        fn one(&mut self, write: bool, cpu: CpuId, now: u64, lead: u64, prices: &Prices) -> Paid {
            let mut touches = Touches::default();
            touches.list.push(Touch::of(LOAD_AVG, write));
            self.charge(&touches, cpu, now, lead, prices)
        }

        fn write(&mut self, cpu: CpuId, now: u64, lead: u64, prices: &Prices) -> Paid {
            self.one(true, cpu, now, lead, prices)
        }

        fn read(&mut self, cpu: CpuId, now: u64, lead: u64, prices: &Prices) -> Paid {
            self.one(false, cpu, now, lead, prices)
        }
    }

    fn setup() -> (Prices, Lines) {
        let machine = Machine::preset("epyc-9654-2s").expect("a preset");
        let prices = Prices::of(&machine, &[1]);
        let lines = Lines::new(machine.ncpu(), 24, 1, prices.place(CpuId(0)));
        (prices, lines)
    }

    #[test]
    fn a_line_costs_its_distance_and_makes_the_next_one_wait() {
        let (prices, mut lines) = setup();
        let far = CpuId(100);
        let transfer = prices.transfer(CpuId(0), far);
        assert!(transfer > prices.transfer(CpuId(0), CpuId(1)));
        let first = lines.write(far, 1000, 0, &prices);
        assert_eq!((first.wait, first.transfer), (0, transfer));
        let second = lines.write(CpuId(0), 1000, 0, &prices);
        assert_eq!((second.wait, second.transfer), (transfer, transfer));
        let own = lines.write(CpuId(0), 1000 + 2 * transfer, 0, &prices);
        assert_eq!(own.total(), 0);
    }

    #[test]
    fn a_second_read_in_the_same_llc_is_free_until_the_next_write() {
        let (prices, mut lines) = setup();
        lines.write(CpuId(0), 0, 0, &prices);
        assert!(lines.read(CpuId(100), 10_000, 0, &prices).total() > 0);
        assert_eq!(lines.read(CpuId(101), 20_000, 0, &prices).total(), 0);
        lines.write(CpuId(0), 30_000, 0, &prices);
        assert!(lines.read(CpuId(101), 40_000, 0, &prices).total() > 0);
    }

    #[test]
    fn llcs_beyond_the_first_word_have_copies_of_their_own() {
        let (prices, _) = setup();
        let owner = prices.place(CpuId(0));
        let mut lines = Lines::new(4, 2 * WORD, 1, owner);
        let mut paid = |llc: usize, write: bool, now: u64| {
            let place = prices.place(CpuId(100));
            let by = Accessor { place, llc, now };
            let touch = Touch::of(LOAD_AVG, write);
            lines.access(touch, by, 0, &prices).total()
        };
        assert_eq!(paid(70, false, 0), 0, "all have it to begin with");
        assert!(paid(6, true, 1_000) > 0);
        assert_eq!(paid(6, false, 9_000), 0);
        assert_eq!(paid(WORD + 6, true, 20_000), 0, "the owner's place");
        assert_eq!(paid(WORD + 6, false, 30_000), 0);
        assert_eq!(
            lines.copies[lines.first[LineKind::TgLoadAvg as usize] * 2..][..2],
            [0, 1 << 6]
        );
    }

    #[test]
    fn a_saturated_line_builds_a_backlog_and_drains() {
        let (prices, mut lines) = setup();
        let waits: Vec<u64> = (0..20)
            .map(|n| lines.write(CpuId(n * 8), 5000, 0, &prices).wait)
            .collect();
        assert!(waits.windows(2).all(|w| w[0] <= w[1]) && waits[19] > waits[1]);
        assert_eq!(lines.write(CpuId(3), 1_000_000, 0, &prices).wait, 0);
    }

    #[test]
    fn with_shared_locks_siblings_wait_for_each_other() {
        let (prices, mut lines) = setup();
        // CPU n and n + 192 are siblings there.
        let (leader, sibling, far) = (CpuId(0), CpuId(192), CpuId(100));
        let mut touches = Touches::default();
        touches.write(Line::Rq(sibling));
        let charge = |lines: &mut Lines, cpu, now| lines.charge(&touches, cpu, now, 0, &prices);
        lines.hold(leader, 5000);
        assert_eq!(
            charge(&mut lines, sibling, 1000).wait,
            0,
            "each has its own"
        );
        lines.share_locks((0..384).map(|cpu| CpuId(cpu % 192)));
        lines.hold(sibling, 9000);
        assert_eq!(charge(&mut lines, sibling, 6000).wait, 3000);
        let both = 2 * prices.transfer(leader, far);
        assert_eq!(
            charge(&mut lines, far, 20_000).transfer,
            both,
            "lock and queue"
        );
    }

    #[test]
    fn an_operation_that_comes_late_waits_only_for_what_is_left_and_reserves_nothing_ahead() {
        let (prices, mut lines) = setup();
        let late = 50_000;
        lines.write(CpuId(100), 1000, late, &prices);
        assert_eq!(lines.write(CpuId(8), 1000, late, &prices).wait, 0);
        let wait = lines.write(CpuId(16), 1000, 0, &prices).wait;
        assert!(
            wait > 0 && wait < 1000,
            "only the two transfers before it, not {wait}"
        );
    }
}
