//! tbench: clients that ask file servers for what a recorded client asked for, over TCP on loopback.
//!
//! *Measures* request and response between a client and its server process, of mixed sizes up to 64 KiB, one
//! pair a client. *Does not measure* files: the servers answer at once.
//!
//! `tbench -t 60 128` (dbench 4.0): so many clients for so long, after a fifth of that as warm-up. The servers
//! are those that `tbench_srv` forks. What is asked for is in [`load`].

pub mod load;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::gate::{self, GO, Gate};
use crate::options::{Grammar, MAX_TASKS, Opt, Takes, check_tasks};
use crate::printed;
use crate::quantity::{in_seconds, seconds};
use load::Request;
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Metric, Op, Outcome, Workload};

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tbench {
    /// Clients, each a process.
    pub clients: u32,
    /// `-t`: how long, after the warm-up.
    pub time: Ns,
}

const NAME: &str = "tbench";

const GRAMMAR: Grammar<Tbench> = Grammar {
    benchmark: NAME,
    expected: "expected -t/--timelimit SECONDS and the number of clients",
    options: &[Opt {
        short: 't',
        long: "timelimit",
        takes: Takes::Text {
            expected: "a time above 0, in seconds or with a unit",
            set: |tbench, text| {
                tbench.time = seconds(text)?;
                Some(())
            },
        },
    }],
};

impl Tbench {
    /// Reads the words after `tbench`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, no number of clients or two.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Tbench, WorkloadError> {
        let (mut options, mut clients) = (Vec::new(), None);
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let is_option = word.starts_with('-');
            if is_option || clients.is_some() {
                options.push(word);
                let value_follows = matches!(word, "-t" | "--timelimit");
                options.extend(words.next_if(|_| value_follows));
            } else {
                clients = Some(word);
            }
        }
        let default = Tbench {
            clients: 0,
            time: Ns(600_000_000_000),
        };
        let tbench = GRAMMAR.read(default, options.into_iter())?;
        let clients = clients.ok_or(WorkloadError::MissingOption {
            benchmark: NAME,
            option: "N",
            why: "how many clients there are",
        })?;
        let clients = GRAMMAR.number("N", clients, 1, MAX_TASKS)?;
        check_tasks(NAME, 2 * clients)?;
        Ok(Tbench {
            clients: clients as u32,
            ..tbench
        })
    }

    /// How long it runs before it counts.
    fn warmup(&self) -> Ns {
        Ns(self.time.0 / 5)
    }
}

impl Benchmark for Tbench {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Tbench {
            time: crate::scaled_time(self.time, factor),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        format!("{NAME} -t {} {}", in_seconds(self.time), self.clients)
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    /// Its last line.
    fn printed(&self, outcome: &Outcome) -> String {
        format!(
            "Throughput {} MB/sec  {clients} clients  {clients} procs  max_latency={:.3} ms\n",
            printed::general(printed::metric(outcome, "throughput_mb_per_s")),
            printed::metric(outcome, "request_latency_max_us") / 1e3,
            clients = self.clients,
        )
    }
}

/// Their names and what they mean.
pub(crate) const METRICS: &[(&str, &str)] = &[
    (
        "throughput_mb_per_s",
        "file data of all clients, million bytes a second",
    ),
    ("requests_per_s", "requests that were answered, a second"),
    (
        "request_latency_max_us",
        "longest time from a client's request to its next, us",
    ),
];

/// What a client does with each line of its load file before it sends the request: the user time of tbench
/// 4.0 by `time tbench -t 4 1`, 0.292 s for about 204,000 operations, on a Xeon of 2023.
const PARSE: Ns = Ns(1_400);

/// Bytes that say how long a message is, which are read first.
const HEADER: u32 = 4;

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    Main,
    /// A client awaits the go,
    AwaitGo,
    /// looks at the clock,
    Clock,
    /// reads a line of its load file,
    Parse,
    /// sends a request,
    Send,
    /// and reads the response.
    Header,
    Body,
    /// A server reads a request,
    ServeHeader,
    ServeBody,
    /// and answers.
    Answer,
}

/// What the main task does once the go is given.
#[derive(Clone, Copy, Debug)]
enum MainStep {
    Warmup,
    Count,
    Stop,
    Wait,
}

/// A pair of a client and its server.
#[derive(Clone, Copy, Debug)]
struct Pair {
    request: Request,
    last: Option<Ns>,
}

/// A run of tbench.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Tbench,
    gate: Gate,
    step: MainStep,
    states: Vec<(State, u32)>,
    pairs: Vec<Pair>,
    requests: u64,
    data: u64,
    longest: u64,
}

impl Run {
    /// A run from its start.
    pub fn new(spec: &Tbench) -> Run {
        let idle = Pair {
            request: Request {
                send: 8,
                expect: 8,
                data: 0,
            },
            last: None,
        };
        Run {
            spec: *spec,
            gate: Gate::new(2 * spec.clients, false),
            step: MainStep::Warmup,
            states: Vec::new(),
            pairs: vec![idle; spec.clients as usize],
            requests: 0,
            data: 0,
            longest: 0,
        }
    }

    fn main_op(&mut self) -> Op {
        if let Some(op) = self.gate.next_op() {
            return op;
        }
        let (op, next) = match self.step {
            MainStep::Warmup => (Op::Sleep(self.spec.warmup()), MainStep::Count),
            MainStep::Count => {
                (self.requests, self.data, self.longest) = (0, 0, 0);
                (Op::Start, MainStep::Stop)
            }
            MainStep::Stop => (Op::StopAfter(self.spec.time), MainStep::Wait),
            MainStep::Wait => (Op::Join, MainStep::Wait),
        };
        self.step = next;
        op
    }

    /// The next operation of a task of a pair, and its state after that.
    fn step(&mut self, state: State, number: u32, rng: &mut Rng) -> (Op, State) {
        let (requests, responses) = (ChanId(1 + 2 * number), ChanId(2 + 2 * number));
        let pair = &mut self.pairs[number as usize];
        let Request { send, expect, .. } = pair.request;
        match state {
            State::Main => (self.main_op(), state),
            State::AwaitGo => (Op::Poll(GO), State::Clock),
            State::Clock => (Op::Time, State::Parse),
            State::Parse => {
                pair.request = load::draw(rng);
                (Op::Compute(PARSE), State::Send)
            }
            State::Send => (Op::Write(requests, send), State::Header),
            State::Header => (Op::Read(responses, HEADER), State::Body),
            State::Body => {
                self.requests += 1;
                self.data += u64::from(pair.request.data);
                (Op::Read(responses, expect - HEADER), State::Clock)
            }
            State::ServeHeader => (Op::Read(requests, HEADER), State::ServeBody),
            State::ServeBody => (Op::Read(requests, send - HEADER), State::Answer),
            State::Answer => (Op::Write(responses, expect), State::ServeHeader),
        }
    }
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        gate::channels((0..2 * self.spec.clients).map(|_| Chan::tcp_pingpong()))
    }

    fn max_tasks(&self) -> usize {
        2 * self.spec.clients as usize + 1
    }

    /// Beside the stacks, the buffer as far as requests of the mean size use it.
    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB + 4
    }

    /// The server of a pair comes first.
    fn spawned(&mut self, role: u32, _task: TaskId) {
        self.states.push(match role.checked_sub(1) {
            None => (State::Main, 0),
            Some(number) if number % 2 == 0 => (State::ServeHeader, number / 2),
            Some(number) => (State::AwaitGo, number / 2),
        });
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        let (state, pair) = self.states[task.index()];
        let (op, next) = self.step(state, pair, rng);
        self.states[task.index()].0 = next;
        op
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        let (_, pair) = self.states[task.index()];
        let last = self.pairs[pair as usize].last.replace(now);
        let took = last.map_or(0, |last| now.0 - last.0);
        self.longest = self.longest.max(took);
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        let seconds = time.as_secs_f64();
        let values = [
            self.data as f64 / 1e6 / seconds,
            self.requests as f64 / seconds,
            self.longest as f64 / 1e3,
        ];
        crate::named(METRICS, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn read(line: &str) -> Result<Tbench, WorkloadError> {
        Tbench::parse(line.split_whitespace())
    }

    #[test]
    fn the_number_of_clients_stands_among_the_options() {
        let tbench = read("128").unwrap();
        assert_eq!((tbench.clients, tbench.time), (128, Ns(600_000_000_000)));
        for line in ["-t 60 128", "128 -t 60", "128 --timelimit=60", "-t60 128"] {
            assert_eq!(read(line).unwrap().command_line(), "tbench -t 60 128");
        }
        assert_eq!(tbench.warmup(), Ns(120_000_000_000));
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("", "'N' is needed"),
            ("-t 60", "'N' is needed"),
            ("x", "'x' for 'N'"),
            ("0", "0 for 'N'"),
            ("60000", "number of tasks"),
            ("4 localhost", "'localhost'"),
            ("4 -t", "'-t' needs"),
            ("4 -t 0", "'0' for '-t'"),
            ("4 -R 1", "'-R'"),
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
        fn what_it_prints_it_reads(clients in 1u32..1000, ns in 1u64..1_000_000_000_000) {
            let tbench = Tbench { clients, time: Ns(ns) };
            let line = tbench.command_line();
            prop_assert_eq!(read(line.strip_prefix(NAME).unwrap()).unwrap(), tbench);
        }
    }
}
