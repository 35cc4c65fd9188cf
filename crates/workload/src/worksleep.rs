//! worksleep: threads that work for a random time and sleep for a random time, over and over.
//!
//! *Measures* what placement costs a lightly loaded machine: the time until the last thread has done
//! its cycles. *Does not measure* throughput: nobody waits for anybody.
//!
//! The load of the reviewed patch "sched/fair: Add more core cookie check in wake up fast path" (LKML
//! 20251120101955.968586-1-sieberf@amazon.com), which the mail describes and does not name. Work is
//! CPU time: the published 24.56 s without cookies is the largest of ten sums of 1200 cycles of 5 and 15
//! ms on average, so a busy sibling does not stretch the work.

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::main_task::MainTask;
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::printed;
use crate::quantity::Uniform;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::core_sched::prctl::{Command, CoreSchedCall, Scope};
use wakelab_sched::{Cookie, TaskId};
use wakelab_sim::object::Chan;
use wakelab_sim::rng::Rng;
use wakelab_sim::{Attributes, Op, Outcome, Workload};

/// How late a timer of a user task may be, and is, since nothing else ends the wait: the default of
/// `prctl(PR_SET_TIMERSLACK)` (kernel init/init_task.c).
pub(crate) const TIMER_SLACK: Ns = Ns(50_000);

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSleep {
    /// `-t`: threads.
    pub threads: u32,
    /// `-n`: cycles of work and sleep of each thread.
    pub cycles: u64,
    /// `-w`: CPU time of work in a cycle.
    pub work: Uniform,
    /// `-s`: time of sleep in a cycle.
    pub sleep: Uniform,
    /// `-c`: who has which core-scheduling cookie.
    pub cookies: Cookies,
}

/// Who has which core-scheduling cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cookies {
    /// Nobody has one.
    None,
    /// Threads 2n and 2n + 1 share one from the start.
    Pairs,
    /// The same, given by the main task with `prctl` when all threads are made, as the tool `coresched` of
    /// util-linux does: by then they run where they were placed without cookies.
    PairsByPrctl,
}

const MS: u64 = 1_000_000;

impl Default for WorkSleep {
    /// As in the mail.
    fn default() -> Self {
        let up_to = |ms| Uniform {
            low: Ns(0),
            high: Ns(ms * MS),
        };
        WorkSleep {
            threads: 10,
            cycles: 1200,
            work: up_to(10),
            sleep: up_to(30),
            cookies: Cookies::None,
        }
    }
}

const NAME: &str = "worksleep";
const MAX_CYCLES: u64 = 1_000_000_000_000;
const RANGE: &str = "a time such as 10ms or a range such as 0-10ms";

const GRAMMAR: Grammar<WorkSleep> = Grammar {
    benchmark: NAME,
    expected: "expected -t/--threads N, -n/--cycles N, -w/--work RANGE, -s/--sleep RANGE or \
         -c/--cookies none|pairs|pairs,by=prctl",
    options: &[
        Opt {
            short: 't',
            long: "threads",
            takes: Takes::Number {
                low: 1,
                high: MAX_TASKS,
                set: |w, n| w.threads = n as u32,
            },
        },
        Opt {
            short: 'n',
            long: "cycles",
            takes: Takes::Number {
                low: 1,
                high: MAX_CYCLES,
                set: |w, n| w.cycles = n,
            },
        },
        Opt {
            short: 'w',
            long: "work",
            takes: Takes::Text {
                expected: RANGE,
                set: |w, text| {
                    w.work = Uniform::read(text)?;
                    Some(())
                },
            },
        },
        Opt {
            short: 's',
            long: "sleep",
            takes: Takes::Text {
                expected: RANGE,
                set: |w, text| {
                    w.sleep = Uniform::read(text)?;
                    Some(())
                },
            },
        },
        Opt {
            short: 'c',
            long: "cookies",
            takes: Takes::Text {
                expected: "none, pairs or pairs,by=prctl",
                set: |w, text| {
                    w.cookies = Cookies::read(text)?;
                    Some(())
                },
            },
        },
    ],
};

impl Cookies {
    fn read(text: &str) -> Option<Cookies> {
        match text {
            "none" => Some(Cookies::None),
            "pairs" => Some(Cookies::Pairs),
            "pairs,by=prctl" => Some(Cookies::PairsByPrctl),
            _ => None,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Cookies::None => "none",
            Cookies::Pairs => "pairs",
            Cookies::PairsByPrctl => "pairs,by=prctl",
        }
    }
}

impl WorkSleep {
    /// Reads the words after `worksleep`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<WorkSleep, WorkloadError> {
        let worksleep = GRAMMAR.read(WorkSleep::default(), words)?;
        check_tasks(NAME, worksleep.threads.into())?;
        Ok(worksleep)
    }
}

impl Benchmark for WorkSleep {
    fn cookies(&self) -> Option<String> {
        let some = self.cookies != Cookies::None;
        some.then(|| format!("--cookies {}", self.cookies.word()))
    }

    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        let cycles = (self.cycles as f64 * factor).round();
        Box::new(WorkSleep {
            cycles: cycles.clamp(1.0, MAX_CYCLES as f64) as u64,
            ..*self
        })
    }

    fn command_line(&self) -> String {
        format!(
            "{NAME} -t {} -n {} --work {} --sleep {} --cookies {}",
            self.threads,
            self.cycles,
            self.work,
            self.sleep,
            self.cookies.word()
        )
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    fn printed(&self, outcome: &Outcome) -> String {
        let time = printed::seconds(printed::micros(outcome));
        format!("time until the last thread was done: {time} s\n")
    }
}

/// The calls that give each pair a cookie: one for the first of it, which the main task then takes and gives
/// to the second.
const CALLS_OF_PAIR: [(Command, u32); 3] = [
    (Command::Create, 1),
    (Command::ShareFrom, 1),
    (Command::ShareTo, 2),
];

/// The call of this number, if there are so many.
fn prctl(threads: u32, number: u32) -> Option<CoreSchedCall> {
    let (command, of_pair) = CALLS_OF_PAIR[number as usize % 3];
    let thread = number / 3 * 2 + of_pair;
    (thread <= threads).then_some(CoreSchedCall {
        command,
        pid: Some(TaskId(thread)),
        scope: Scope::Thread,
    })
}

/// A run of worksleep.
#[derive(Clone, Debug)]
pub struct Run {
    spec: WorkSleep,
    main: MainTask,
    /// How many calls of [`prctl`] the main task has made.
    prctl: u32,
    /// Cycles left of each thread, by task; the main task has none.
    left: Vec<u64>,
    /// Whether the thread is to sleep next.
    tired: Vec<bool>,
}

impl Run {
    /// A run from its start.
    pub fn new(spec: &WorkSleep) -> Run {
        Run {
            spec: *spec,
            main: MainTask::new(spec.threads, true),
            prctl: 0,
            left: Vec::new(),
            tired: Vec::new(),
        }
    }
}

impl Run {
    fn main_op(&mut self) -> Op {
        if self.spec.cookies == Cookies::PairsByPrctl
            && self.main.has_made_all()
            && let Some(call) = prctl(self.spec.threads, self.prctl)
        {
            self.prctl += 1;
            return Op::CoreSched(call);
        }
        self.main.next_op()
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        Vec::new()
    }

    fn max_tasks(&self) -> usize {
        self.spec.threads as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB
    }

    fn spawned(&mut self, _role: u32, _task: TaskId) {
        self.left.push(self.spec.cycles);
        self.tired.push(false);
    }

    fn attributes(&self, role: u32) -> Attributes {
        let cookie = match self.spec.cookies {
            Cookies::None | Cookies::PairsByPrctl => None,
            Cookies::Pairs => Some(Cookie(u64::from((role - 1) / 2) + 1)),
        };
        Attributes {
            cookie,
            ..Attributes::default()
        }
    }

    fn last_cookie(&self) -> Cookie {
        let last = self.attributes(self.spec.threads).cookie;
        last.unwrap_or(Cookie::NONE)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        let number = task.index();
        if number == 0 {
            return self.main_op();
        }
        if std::mem::replace(&mut self.tired[number], false) {
            return Op::Sleep(Ns(self.spec.sleep.draw(rng).0 + TIMER_SLACK.0));
        }
        if self.left[number] == 0 {
            return Op::Exit;
        }
        self.left[number] -= 1;
        self.tired[number] = true;
        Op::Work(self.spec.work.draw(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<WorkSleep, WorkloadError> {
        WorkSleep::parse(line.split_whitespace())
    }

    #[test]
    fn the_mails_load_is_the_default() {
        let line = "-t 10 -n 1200 --work 0-10ms --sleep 0-30ms --cookies none";
        assert_eq!(read(line).unwrap(), WorkSleep::default());
        let pairs = read("--cookies=pairs").unwrap();
        assert_eq!(pairs.cookies, Cookies::Pairs);
    }

    #[test]
    fn pairs_share_a_cookie_and_no_two_pairs_do() {
        let cookies = |line| {
            let run = Run::new(&read(line).unwrap());
            (1..=5)
                .map(|role| run.attributes(role).cookie)
                .collect::<Vec<_>>()
        };
        let of = |number| Some(Cookie(number));
        assert_eq!(
            cookies("-t 5 -c pairs"),
            [of(1), of(1), of(2), of(2), of(3)]
        );
        assert_eq!(cookies("-t 5"), [None; 5]);
    }

    #[test]
    fn by_prctl_each_pair_gets_a_cookie_when_all_threads_are_made() {
        let mut run = Run::new(&read("-t 3 -c pairs,by=prctl").unwrap());
        assert_eq!(run.attributes(1).cookie, None);
        run.spawned(0, TaskId(0));
        let mut rng = wakelab_sim::rng::Rng::stream(1, 0);
        let ops: Vec<Op> = (0..10).map(|_| run.next_op(TaskId(0), &mut rng)).collect();
        let call = |command, thread| {
            let (pid, scope) = (Some(TaskId(thread)), Scope::Thread);
            Op::CoreSched(CoreSchedCall {
                command,
                pid,
                scope,
            })
        };
        let expected = [
            call(Command::Create, 1),
            call(Command::ShareFrom, 1),
            call(Command::ShareTo, 2),
            call(Command::Create, 3),
            call(Command::ShareFrom, 3),
            Op::Join,
        ];
        assert_eq!(ops[4..], expected);
    }

    #[test]
    fn scale_shortens_the_cycles() {
        let cycles = |factor| {
            let line = WorkSleep::default().scaled(factor).command_line();
            read(line.strip_prefix(NAME).unwrap()).unwrap().cycles
        };
        assert_eq!(cycles(0.01), 12);
        assert_eq!(cycles(1e-9), 1);
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("-x", "'-x'"),
            ("-t", "'-t' needs a number"),
            ("-t 0", "0 for '-t'"),
            ("-t 99999", "99999"),
            ("-n x", "'x' for '-n'"),
            ("--work", "'--work' needs a time"),
            ("--work 10", "'10' for '--work'"),
            ("--sleep 30ms-0ms", "'30ms-0ms'"),
            ("--cookies triples", "'triples'"),
            ("stray", "'stray'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_words_give_a_result_or_an_error(line in "[-=a-z0-9 .é]{0,40}") {
            let _ = read(&line);
        }

        #[test]
        fn what_it_prints_it_reads(
            threads in 1u32..1000, cycles in 1u64..100_000, work: u32, sleep: u32, cookies in 0usize..3,
        ) {
            let up_to = |ns: u32| Uniform { low: Ns(u64::from(ns) / 3), high: Ns(ns.into()) };
            let cookies = [Cookies::None, Cookies::Pairs, Cookies::PairsByPrctl][cookies];
            let spec = WorkSleep { threads, cycles, work: up_to(work), sleep: up_to(sleep), cookies };
            let line = spec.command_line();
            prop_assert_eq!(read(line.strip_prefix(NAME).unwrap()).unwrap(), spec);
        }
    }
}
