//! What can be wrong with a benchmark's command line, and what its parsers share.

/// Why a command line was not understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// Nothing there.
    #[error("no workload given; expected a benchmark's command line such as 'hackbench -g 10'")]
    Empty,
    /// An unknown benchmark, and the known ones.
    #[error("unknown benchmark '{0}'; known: {1}")]
    Benchmark(String, String),
    /// Words before a command, and no command.
    #[error("no command after '{0}'")]
    NoCommand(&'static str),
    /// Words before a command that bind it to CPUs that the machine has not.
    #[error("'{prefix}' leaves no CPU to run on: {machine} has CPUs 0 to {last}")]
    Nowhere {
        /// The words.
        prefix: String,
        /// The machine.
        machine: String,
        /// Its last CPU.
        last: usize,
    },
    /// Words by which tasks get cookies, in a kernel that knows none.
    #[error("kernel {release} has no '{word}': core scheduling came with 5.14")]
    NoCoreScheduling {
        /// The words.
        word: String,
        /// The release.
        release: &'static str,
    },
    /// Too many commands beside the measured one.
    #[error("{0} commands beside the measured one are more than the {1} that can be simulated")]
    Companions(usize, usize),
    /// An unknown option or stray word.
    #[error("{benchmark}: unknown option '{word}'; {expected}")]
    Option {
        /// The benchmark.
        benchmark: &'static str,
        /// The word.
        word: String,
        /// What it takes.
        expected: &'static str,
    },
    /// An option without its value.
    #[error("{benchmark}: option '{option}' needs {expected}")]
    MissingValue {
        /// The benchmark.
        benchmark: &'static str,
        /// The option.
        option: String,
        /// What it takes.
        expected: &'static str,
    },
    /// An option that must be there and is not.
    #[error("{benchmark}: option '{option}' is needed: {why}")]
    MissingOption {
        /// The benchmark.
        benchmark: &'static str,
        /// The option.
        option: &'static str,
        /// What for.
        why: &'static str,
    },
    /// A value in another syntax than the option's.
    #[error("{benchmark}: '{value}' for '{option}' is not understood; expected {expected}")]
    Value {
        /// The benchmark.
        benchmark: &'static str,
        /// The option.
        option: String,
        /// The value.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
    /// Each option is fine, and together they make no sense.
    #[error("{benchmark}: {message}")]
    Together {
        /// The benchmark.
        benchmark: &'static str,
        /// What does not fit.
        message: &'static str,
    },
    /// A value that is no number.
    #[error("{benchmark}: '{value}' for '{option}' is not a whole number")]
    NotANumber {
        /// The benchmark.
        benchmark: &'static str,
        /// The option.
        option: String,
        /// The value.
        value: String,
    },
    /// A value out of range.
    #[error("{benchmark}: {value} for '{option}' is out of range; expected {low} to {high}")]
    Range {
        /// The benchmark.
        benchmark: &'static str,
        /// The option.
        option: String,
        /// The value.
        value: u64,
        /// The smallest allowed.
        low: u64,
        /// The largest allowed.
        high: u64,
    },
    /// A file that says something else than it should.
    #[error("{file}:{line}:{column}: '{word}': expected {expected}")]
    File {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The character in it, from 1.
        column: usize,
        /// What is there.
        word: String,
        /// What was expected.
        expected: String,
    },
    /// A file that could not be read.
    #[error("{benchmark}: {file}: {message}")]
    Unreadable {
        /// The benchmark.
        benchmark: &'static str,
        /// The file.
        file: String,
        /// What the system says.
        message: String,
    },
    /// A file whose tasks go on for ever.
    #[error(
        "{file}: task '{task}' never ends; give the file a 'duration' or the command line '-t TIME'"
    )]
    NeverEnds {
        /// The file.
        file: String,
        /// The task.
        task: String,
    },
    /// Each number is fine, and together they are too much.
    #[error("{benchmark}: {what} is {value}, more than the {limit} that can be simulated")]
    TooMuch {
        /// The benchmark.
        benchmark: &'static str,
        /// What there is too much of.
        what: &'static str,
        /// How much.
        value: u128,
        /// The limit.
        limit: u128,
    },
}
