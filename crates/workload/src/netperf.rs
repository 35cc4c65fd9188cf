//! netperf's request/response tests over loopback: `netperf -H 127.0.0.1 -t TCP_RR -l 10`.
//!
//! *Measures* the wake-ups of a client and a server that wait for each other, and the search for a CPU
//! that each of them costs, at any number of pairs. *Does not measure* bulk transfer: one request is under way
//! at a time.
//!
//! netperf is one client, and netserver makes one server for it; N pairs are N times the command. Here
//! `--pairs N`, which netperf does not have, says that on one line. All pairs start together, or with
//! `--every TIME` one after the other, as a shell starts them; they end together, and the exchange of
//! set-up messages over the control connection is left out.

mod options;

use crate::benchmark::Benchmark;
use crate::command_line::WorkloadError;
use crate::gate::{self, GO, Gate};
use crate::printed;
use crate::quantity::{Written, in_seconds};
use wakelab_machine::Ns;
use wakelab_machine::topology::Machine;
use wakelab_sched::TaskId;
use wakelab_sim::object::{Chan, ChanId};
use wakelab_sim::rng::Rng;
use wakelab_sim::{Metric, Op, Outcome, Workload};

/// Which test: `-t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Over a TCP connection.
    TcpRr,
    /// Over UDP sockets.
    UdpRr,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::TcpRr => "TCP_RR",
            Test::UdpRr => "UDP_RR",
        }
    }

    /// The sizes of the send and receive buffers that Linux gives by default, and netperf prints.
    fn buffers(self) -> (u32, u32) {
        match self {
            Test::TcpRr => (16_384, 131_072),
            Test::UdpRr => (212_992, 212_992),
        }
    }
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Netperf {
    /// `-t`: the test.
    pub test: Test,
    /// `-l`: how long.
    pub time: Ns,
    /// `-r`, of the test's own options: bytes of a request.
    pub request: u32,
    /// Bytes of a response.
    pub response: u32,
    /// `--pairs`: how many clients with a server each.
    pub pairs: u32,
    /// `--every`: how long after one client the next one starts.
    pub every: Ns,
}

impl Netperf {
    /// Reads the words after `netperf`.
    ///
    /// # Errors
    /// Unknown or valueless options, values out of range, another host than this one.
    pub fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Netperf, WorkloadError> {
        options::parse(words)
    }
}

impl Benchmark for Netperf {
    fn scaled(&self, factor: f64) -> Box<dyn Benchmark> {
        Box::new(Netperf {
            time: crate::scaled_time(self.time, factor),
            ..*self
        })
    }

    fn command_line(&self) -> String {
        let mut line = format!(
            "netperf -H 127.0.0.1 -t {} -l {}",
            self.test.name(),
            in_seconds(self.time)
        );
        if self.pairs > 1 {
            line.push_str(&format!(" --pairs {}", self.pairs));
        }
        if self.every > Ns(0) {
            line.push_str(&format!(" --every {}", Written(self.every)));
        }
        if (self.request, self.response) != (1, 1) {
            line.push_str(&format!(" -- -r {},{}", self.request, self.response));
        }
        line
    }

    fn begin(&self, _machine: &Machine) -> Box<dyn Workload> {
        Box::new(Run::new(self))
    }

    /// What each netperf prints, one after the other.
    fn printed(&self, outcome: &Outcome) -> String {
        printed::log(outcome)
    }
}

/// Their names and what they mean.
pub(crate) const METRICS: &[(&str, &str)] = &[(
    "transactions_per_s",
    "requests that were answered, all pairs together, a second",
)];

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum State {
    Main,
    /// A client awaits the go,
    AwaitGo,
    /// and its turn to start,
    AwaitTurn,
    /// sends a request,
    Request,
    /// and waits for the response.
    Response,
    /// A server waits for a request,
    Serve,
    /// and answers.
    Answer,
}

/// A run of netperf.
#[derive(Clone, Debug)]
pub struct Run {
    spec: Netperf,
    gate: Gate,
    stops: bool,
    /// What each task does next, with its pair.
    states: Vec<(State, u32)>,
    /// Transactions of each pair.
    done: Vec<u64>,
}

impl Run {
    /// A run from its start.
    pub fn new(spec: &Netperf) -> Run {
        Run {
            spec: *spec,
            gate: Gate::new(2 * spec.pairs, false),
            stops: false,
            states: Vec::new(),
            done: vec![0; spec.pairs as usize],
        }
    }

    fn main_op(&mut self) -> Op {
        if let Some(op) = self.gate.next_op() {
            return op;
        }
        if std::mem::replace(&mut self.stops, true) {
            return Op::Join;
        }
        Op::StopAfter(self.spec.time)
    }

    /// What the netperf of a pair prints.
    fn print(&self, transactions: u64, time: Ns) -> String {
        let spec = &self.spec;
        let (send, receive) = spec.test.buffers();
        let seconds = time.as_secs_f64();
        let protocol = &spec.test.name()[..3];
        format!(
            "MIGRATED {protocol} REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to \
             127.0.0.1 () port 0 AF_INET : first burst 0\n\
             Local /Remote\n\
             Socket Size   Request  Resp.   Elapsed  Trans.\n\
             Send   Recv   Size     Size    Time     Rate         \n\
             bytes  Bytes  bytes    bytes   secs.    per sec   \n\n\
             {send:<6} {receive:<6} {:<6}   {:<6}  {seconds:<6.2}   {:>7.2}   \n\
             {send:<6} {receive:<6}",
            spec.request,
            spec.response,
            transactions as f64 / seconds,
        )
    }
}

/// The channels of a pair: requests, then responses.
fn channels_of(pair: u32) -> (ChanId, ChanId) {
    (ChanId(1 + 2 * pair), ChanId(2 + 2 * pair))
}

impl Workload for Run {
    fn channels(&self) -> Vec<Chan> {
        let one = || match self.spec.test {
            Test::TcpRr => Chan::tcp_pingpong(),
            Test::UdpRr => Chan::udp(),
        };
        gate::channels((0..2 * self.spec.pairs).map(|_| one()))
    }

    fn max_tasks(&self) -> usize {
        2 * self.spec.pairs as usize + 1
    }

    fn working_set_kib(&self) -> u64 {
        crate::SMALL_TASK_KIB + u64::from(self.spec.request.max(self.spec.response)) / 1024
    }

    /// The server of a pair comes first.
    fn spawned(&mut self, role: u32, _task: TaskId) {
        self.states.push(match role.checked_sub(1) {
            None => (State::Main, 0),
            Some(number) if number % 2 == 0 => (State::Serve, number / 2),
            Some(number) => (State::AwaitGo, number / 2),
        });
    }

    fn next_op(&mut self, task: TaskId, _rng: &mut Rng) -> Op {
        let (state, pair) = self.states[task.index()];
        let (requests, responses) = channels_of(pair);
        let (op, next) = match state {
            State::Main => (self.main_op(), state),
            State::AwaitGo if self.spec.every > Ns(0) => (Op::Poll(GO), State::AwaitTurn),
            State::AwaitGo => (Op::Poll(GO), State::Request),
            State::AwaitTurn => {
                let turn = self.spec.every.0.saturating_mul(u64::from(pair));
                (Op::Sleep(Ns(turn)), State::Request)
            }
            State::Request => (Op::Write(requests, self.spec.request), State::Response),
            State::Response => (Op::Read(responses, self.spec.response), State::Request),
            State::Serve => (Op::Read(requests, self.spec.request), State::Answer),
            State::Answer => {
                // The client counts when it has the response, which is on its way now.
                self.done[pair as usize] += 1;
                (Op::Write(responses, self.spec.response), State::Serve)
            }
        };
        self.states[task.index()].0 = next;
        op
    }

    fn metrics(&self, time: Ns) -> Vec<Metric> {
        let done: u64 = self.done.iter().sum();
        crate::named(METRICS, [done as f64 / time.as_secs_f64()])
    }

    fn log(&self, time: Ns) -> Vec<String> {
        let pairs = self.done.iter();
        pairs.map(|&done| self.print(done, time)).collect()
    }
}
