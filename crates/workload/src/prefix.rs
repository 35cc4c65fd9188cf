//! Words before a command, as they are typed: `taskset -c 0-7`, `nice -n 5`, `chrt --idle 0`,
//! `numactl --cpunodebind=0`, `coresched new --`. What they set for its first task, the others inherit.

use crate::command_line::WorkloadError;
use std::fmt;
use std::iter::Peekable;
use std::str::SplitWhitespace;
use wakelab_machine::topology::Machine;
use wakelab_machine::{CpuId, CpuMask};
use wakelab_sched::state::Policy;
use wakelab_sim::Attributes;
use wakelab_sim::combined::PREFIX_COOKIE;

/// A program that starts another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// `taskset -c CPULIST`.
    Taskset(CpuMask),
    /// `nice -n N`, which adds to the niceness.
    Nice(i8),
    /// `chrt --other|--batch|--idle 0`.
    Chrt(Policy),
    /// `numactl --cpunodebind=NODES`: nodes, in a list as CPUs are.
    Numactl(CpuMask),
    /// `coresched new -t TYPE --`. A command begins as one thread, so that all types are the same.
    Coresched(&'static str),
}

type Words<'a> = Peekable<SplitWhitespace<'a>>;

/// A program, what it takes, and the reader of the words after its name.
struct Program {
    name: &'static str,
    expected: &'static str,
    read: fn(&Program, &mut Words) -> Result<Prefix, WorkloadError>,
}

const PROGRAMS: [Program; 5] = [
    Program {
        name: "taskset",
        expected: "expected -c CPULIST",
        read: taskset,
    },
    Program {
        name: "nice",
        expected: "expected -n N",
        read: nice,
    },
    Program {
        name: "chrt",
        expected: "expected --other 0, --batch 0 or --idle 0, the policies of the fair class",
        read: chrt,
    },
    Program {
        name: "numactl",
        expected: "expected --cpunodebind=NODES",
        read: numactl,
    },
    Program {
        name: "coresched",
        expected: "expected new, then perhaps -t pid|tgid|pgid, then --",
        read: coresched,
    },
];

const POLICIES: [(&str, &str, Policy); 3] = [
    ("--other", "-o", Policy::Normal),
    ("--batch", "-b", Policy::Batch),
    ("--idle", "-i", Policy::Idle),
];

/// Whose cookie it can be; the second is what `coresched` takes unless it is told.
const TYPES: [&str; 3] = ["pid", "tgid", "pgid"];

/// What `nice` adds unless it is told.
const NICE_DEFAULT: i8 = 10;

/// Takes the programs at the beginning of a command line off it.
pub(crate) fn take(words: &mut Words) -> Result<Vec<Prefix>, WorkloadError> {
    let mut prefixes = Vec::new();
    let known = |word: &&str| PROGRAMS.iter().find(|program| program.name == *word);
    while let Some(program) = words.peek().and_then(known) {
        words.next();
        prefixes.push((program.read)(program, words)?);
        if words.peek().is_none() {
            return Err(WorkloadError::NoCommand(program.name));
        }
    }
    Ok(prefixes)
}

impl Program {
    fn unknown(&self, word: Option<&str>) -> WorkloadError {
        match word {
            None => WorkloadError::NoCommand(self.name),
            Some(word) => WorkloadError::Option {
                benchmark: self.name,
                word: word.to_owned(),
                expected: self.expected,
            },
        }
    }

    /// The value of one of the options, which must come next: `-N 0`, `--cpunodebind 0`,
    /// `--cpunodebind=0`, `-n5`.
    fn value<'a>(
        &self,
        words: &mut Words<'a>,
        [short, long]: [&'static str; 2],
        expected: &'static str,
    ) -> Result<(&'static str, &'a str), WorkloadError> {
        let word = words.next().ok_or_else(|| self.unknown(None))?;
        let (option, value) = if word == short || word == long {
            let option = if word == short { short } else { long };
            (option, words.next())
        } else if let Some(value) = word.strip_prefix(long).and_then(|v| v.strip_prefix('=')) {
            (long, Some(value))
        } else {
            let joined = word.strip_prefix(short).filter(|_| short.starts_with('-'));
            let joined = joined.filter(|_| !word.starts_with("--"));
            (short, Some(joined.ok_or_else(|| self.unknown(Some(word)))?))
        };
        match value {
            Some(value) => Ok((option, value)),
            None => Err(WorkloadError::MissingValue {
                benchmark: self.name,
                option: option.to_owned(),
                expected,
            }),
        }
    }

    fn bad(&self, (option, value): (&str, &str), expected: &'static str) -> WorkloadError {
        WorkloadError::Value {
            benchmark: self.name,
            option: option.to_owned(),
            value: value.to_owned(),
            expected,
        }
    }

    fn list(
        &self,
        words: &mut Words,
        options: [&'static str; 2],
        expected: &'static str,
    ) -> Result<CpuMask, WorkloadError> {
        let given = self.value(words, options, expected)?;
        let list = CpuMask::from_cpulist(given.1);
        let list = list.ok().filter(|list| !list.is_empty());
        list.ok_or_else(|| self.bad(given, expected))
    }
}

fn taskset(program: &Program, words: &mut Words) -> Result<Prefix, WorkloadError> {
    let expected = "a list of CPUs such as 0-7,16";
    let list = program.list(words, ["-c", "--cpu-list"], expected)?;
    Ok(Prefix::Taskset(list))
}

fn numactl(program: &Program, words: &mut Words) -> Result<Prefix, WorkloadError> {
    let expected = "a list of nodes such as 0,2-3";
    let list = program.list(words, ["-N", "--cpunodebind"], expected)?;
    Ok(Prefix::Numactl(list))
}

fn nice(program: &Program, words: &mut Words) -> Result<Prefix, WorkloadError> {
    if words.peek().is_none_or(|word| !word.starts_with('-')) {
        return Ok(Prefix::Nice(NICE_DEFAULT));
    }
    let expected = "a number from -20 to 19";
    let given = program.value(words, ["-n", "--adjustment"], expected)?;
    let number = given.1.parse().ok();
    let number = number.filter(|number| (-20..=19).contains(number));
    Ok(Prefix::Nice(
        number.ok_or_else(|| program.bad(given, expected))?,
    ))
}

fn chrt(program: &Program, words: &mut Words) -> Result<Prefix, WorkloadError> {
    let word = words.next();
    let known = POLICIES
        .iter()
        .find(|(long, short, _)| word == Some(*long) || word == Some(*short));
    let (option, _, policy) = known.ok_or_else(|| program.unknown(word))?;
    let expected = "the priority 0";
    match words.next() {
        Some("0") => Ok(Prefix::Chrt(*policy)),
        Some(value) => Err(program.bad((option, value), expected)),
        None => Err(WorkloadError::MissingValue {
            benchmark: program.name,
            option: (*option).to_owned(),
            expected,
        }),
    }
}

fn coresched(program: &Program, words: &mut Words) -> Result<Prefix, WorkloadError> {
    let word = words.next();
    if word != Some("new") {
        return Err(program.unknown(word));
    }
    let mut destination = TYPES[1];
    if words.peek().is_some_and(|word| *word != "--") {
        let expected = "pid, tgid or pgid";
        let given = program.value(words, ["-t", "--dest-type"], expected)?;
        let known = TYPES.into_iter().find(|known| *known == given.1);
        destination = known.ok_or_else(|| program.bad(given, expected))?;
    }
    match words.next() {
        Some("--") => Ok(Prefix::Coresched(destination)),
        word => Err(program.unknown(word)),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefix::Taskset(cpus) => write!(f, "taskset -c {cpus}"),
            Prefix::Nice(number) => write!(f, "nice -n {number}"),
            Prefix::Chrt(policy) => {
                let of = POLICIES.iter().find(|(.., known)| known == policy);
                write!(f, "chrt {} 0", of.map_or("--other", |(long, ..)| long))
            }
            Prefix::Numactl(nodes) => write!(f, "numactl --cpunodebind={nodes}"),
            Prefix::Coresched(destination) => write!(f, "coresched new -t {destination} --"),
        }
    }
}

impl Prefix {
    /// What it sets beside what those before it have set.
    fn apply(self, machine: &Machine, to: Attributes) -> Attributes {
        match self {
            Prefix::Taskset(_) | Prefix::Numactl(_) => Attributes {
                cpus: self.cpus(machine),
                ..to
            },
            Prefix::Nice(number) => Attributes {
                nice: Some(to.nice.unwrap_or(0).saturating_add(number).clamp(-20, 19)),
                ..to
            },
            Prefix::Chrt(policy) => Attributes {
                policy: Some(policy),
                ..to
            },
            Prefix::Coresched(_) => Attributes {
                cookie: Some(PREFIX_COOKIE),
                ..to
            },
        }
    }

    /// The CPUs of the machine that it binds to, if it binds.
    fn cpus(self, machine: &Machine) -> Option<CpuMask> {
        match self {
            Prefix::Taskset(cpus) => Some(cpus.and(&CpuMask::first_n(machine.ncpu()))),
            Prefix::Numactl(nodes) => {
                let within = |node: usize| nodes.contains(CpuId::from_index(node));
                Some(machine.mask_where(|cpu| within(cpu.node.index())))
            }
            _ => None,
        }
    }
}

/// How a command's first task is to be scheduled.
pub(crate) fn attributes(prefixes: &[Prefix], machine: &Machine) -> Attributes {
    let none = Attributes::default();
    let each = prefixes.iter();
    each.fold(none, |to, prefix| prefix.apply(machine, to))
}

/// The words that give a cookie, if they do.
pub(crate) fn cookies(prefixes: &[Prefix]) -> Option<String> {
    let gives = |prefix: &Prefix| matches!(prefix, Prefix::Coresched(_));
    prefixes
        .iter()
        .any(gives)
        .then(|| "coresched new".to_owned())
}

/// Whether the machine has CPUs where the prefixes bind to.
pub(crate) fn check(prefixes: &[Prefix], machine: &Machine) -> Result<(), WorkloadError> {
    let nowhere = |prefix: &&Prefix| prefix.cpus(machine).is_some_and(|cpus| cpus.is_empty());
    match prefixes.iter().find(nowhere) {
        None => Ok(()),
        Some(prefix) => Err(WorkloadError::Nowhere {
            prefix: prefix.to_string(),
            machine: machine.name.clone(),
            last: machine.ncpu() - 1,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<(Vec<Prefix>, Vec<&str>), WorkloadError> {
        let mut words = line.split_whitespace().peekable();
        take(&mut words).map(|prefixes| (prefixes, words.collect()))
    }

    fn cpus(list: &str) -> CpuMask {
        CpuMask::from_cpulist(list).unwrap()
    }

    #[test]
    fn each_program_is_read_as_it_is_typed() {
        let cases = [
            ("taskset -c 0-3,8", Prefix::Taskset(cpus("0-3,8"))),
            ("taskset --cpu-list 5", Prefix::Taskset(cpus("5"))),
            ("nice", Prefix::Nice(10)),
            ("nice -n -5", Prefix::Nice(-5)),
            ("nice -n19", Prefix::Nice(19)),
            ("nice --adjustment=3", Prefix::Nice(3)),
            ("chrt --idle 0", Prefix::Chrt(Policy::Idle)),
            ("chrt -b 0", Prefix::Chrt(Policy::Batch)),
            ("chrt --other 0", Prefix::Chrt(Policy::Normal)),
            ("numactl --cpunodebind=1", Prefix::Numactl(cpus("1"))),
            ("numactl -N 0-1", Prefix::Numactl(cpus("0-1"))),
            ("coresched new --", Prefix::Coresched("tgid")),
            ("coresched new -t pgid --", Prefix::Coresched("pgid")),
            ("coresched new --dest-type=pid --", Prefix::Coresched("pid")),
        ];
        for (line, prefix) in cases {
            let whole = format!("{line} spin -n 4");
            let (prefixes, rest) = read(&whole).unwrap();
            assert_eq!((prefixes, rest.len()), (vec![prefix], 3), "{line}");
        }
        let (none, rest) = read("spin -c nice").unwrap();
        assert_eq!((none.len(), rest.len()), (0, 3));
    }

    #[test]
    fn wrong_words_are_named() {
        for (line, word) in [
            ("taskset 0xff spin", "taskset: unknown option '0xff'"),
            ("taskset -c", "'-c' needs a list of CPUs"),
            ("taskset -c x spin", "'x' for '-c'"),
            ("taskset -c 3-1 spin", "'3-1' for '-c'"),
            ("taskset -c 0", "no command after 'taskset'"),
            ("taskset", "no command after 'taskset'"),
            ("nice -n spin", "'spin' for '-n'"),
            ("nice -n 20 spin", "'20' for '-n'"),
            ("nice -5 spin", "unknown option '-5'"),
            ("nice -n 5", "no command after 'nice'"),
            ("chrt -f 1 spin", "chrt: unknown option '-f'"),
            ("chrt --idle 1 spin", "'1' for '--idle'"),
            ("chrt --idle", "'--idle' needs the priority 0"),
            ("numactl --membind=0 spin", "unknown option '--membind=0'"),
            (
                "numactl --cpunodebind=all spin",
                "'all' for '--cpunodebind'",
            ),
            ("coresched get spin", "coresched: unknown option 'get'"),
            ("coresched new spin", "unknown option 'spin'"),
            ("coresched new -t pgid spin", "unknown option 'spin'"),
            ("coresched new -t uid -- spin", "'uid' for '-t'"),
            ("coresched new --", "no command after 'coresched'"),
        ] {
            let error = read(line).unwrap_err().to_string();
            assert!(error.contains(word), "{line}: {error}");
        }
    }

    #[test]
    fn the_last_says_where_and_niceness_adds_up() {
        let machine = Machine::preset("xeon-8360y-2s").unwrap();
        let of = |line: &str| {
            let (prefixes, _) = read(line).unwrap();
            check(&prefixes, &machine).map(|()| attributes(&prefixes, &machine))
        };
        let both = of("nice -n 15 taskset -c 3-5 nice -n 10 chrt --batch 0 spin").unwrap();
        assert_eq!((both.nice, both.policy), (Some(19), Some(Policy::Batch)));
        assert_eq!(both.cpus, Some(cpus("3-5")));
        let node = of("taskset -c 3 numactl -N 1 coresched new -- spin").unwrap();
        let expected = machine.mask_where(|cpu| cpu.node.index() == 1);
        assert_eq!(node.cpus, Some(expected));
        assert_eq!(node.cookie, Some(PREFIX_COOKIE));
        // The CPUs that there are, as sched_setaffinity takes them.
        let some = of("taskset -c 100-200 spin").unwrap();
        assert_eq!(some.cpus, Some(cpus("100-143")));
        for line in ["taskset -c 144-200 spin", "numactl -N 2-5 spin"] {
            let error = of(line).unwrap_err().to_string();
            let named = line
                .strip_suffix(" spin")
                .unwrap()
                .replace("-N ", "--cpunodebind=");
            assert!(
                error.contains(&named) && error.contains("xeon-8360y-2s"),
                "{error}"
            );
        }
    }

    fn prefix() -> impl Strategy<Value = Prefix> {
        let list = prop::collection::vec(0usize..1024, 1..6);
        let list = list.prop_map(|cpus| cpus.into_iter().map(CpuId::from_index).collect());
        prop_oneof![
            list.clone().prop_map(Prefix::Taskset),
            (-20i8..=19).prop_map(Prefix::Nice),
            (0..3usize).prop_map(|n| Prefix::Chrt(POLICIES[n].2)),
            list.prop_map(Prefix::Numactl),
            (0..3usize).prop_map(|n| Prefix::Coresched(TYPES[n])),
        ]
    }

    proptest! {
        #[test]
        fn what_they_print_they_read(prefixes in prop::collection::vec(prefix(), 0..5)) {
            let line: String = prefixes.iter().map(|prefix| format!("{prefix} ")).collect();
            let line = line + "spin -n 4";
            let (read, rest) = read(&line).unwrap();
            prop_assert_eq!((read, rest.len()), (prefixes, 3));
        }

        #[test]
        fn any_words_give_a_result_or_an_error(
            line in "((taskset|nice|chrt|numactl|coresched|new|--|-[cntNi]|0|[-=a-z0-9é]{0,6}) ){0,8}",
        ) {
            let _ = read(&line);
        }
    }
}
