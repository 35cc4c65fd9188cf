//! The command line.

use crate::experiment::{check_scale, metric};
use crate::matrix::Kind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use wakelab_machine::DomainSetting;

/// The exit codes, as `--help` prints them.
const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a check failed: fewer records agree than verify --min asks for
  2    bad input: an unknown name, option, key or value, a file that cannot be read or written,
       a recording that is broken or of an unknown kind, a workload that can never end
  130  interrupted; what was complete is reported";

/// A laboratory for the Linux wake-up path.
///
/// Simulates the scheduler's decisions on any machine, compares features with statistics, and puts
/// the published numbers beside its own.
#[derive(Debug, Parser)]
#[command(name = "wakelab", version, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the experiments
    List,
    /// Run an experiment and compare its variants with its baseline
    Run(RunArgs),
    /// Compare features under a workload on a machine
    Compare(CompareArgs),
    /// Run a benchmark once and print what it would print itself, in its own format
    Bench(BenchArgs),
    /// Run a change over a table of machines, workloads and loads
    Matrix(MatrixArgs),
    /// Write a document of experiments, published against predicted, from results of `run`
    Document(DocumentArgs),
    /// Make recorded decisions and arithmetic of a real kernel again, and compare
    Verify(VerifyArgs),
    /// Show the machines
    #[command(subcommand)]
    Machine(MachineCommand),
    /// Show the sched_features of a kernel release, and which of them the model acts on
    Features(FeaturesArgs),
}

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// An experiment's name as `wakelab list` shows it, or a file `*.toml`
    pub experiment: String,
    /// How the runs are made and shown.
    #[command(flatten)]
    pub options: RunOptions,
}

/// `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// A machine's name as `wakelab machine list` shows it, `host`, a file `*.toml`, or what
    /// `machine import` reads
    #[arg(long, value_name = "NAME|host|FILE")]
    pub machine: String,
    /// A kernel release, such as 6.5
    #[arg(long)]
    pub kernel: String,
    /// The benchmark's own command line, such as 'hackbench -g 8 -T -p -l 1000'
    #[arg(long, value_name = "COMMAND LINE")]
    pub workload: String,
    /// Also run all combinations of the features
    #[arg(long)]
    pub factorial: bool,
    /// Words of sched_features, each compared with the baseline; NO_WORD turns one off
    #[arg(value_name = "FEATURE", required_unless_present = "domain")]
    pub features: Vec<String>,
    /// A field of all scheduling domains of a name, as written under debugfs `sched/domains`, such as
    /// MC:cache_nice_tries=3; compared with the baseline like a feature. Fields are min_interval,
    /// max_interval, busy_factor, imbalance_pct and cache_nice_tries
    #[arg(long, value_name = "DOMAIN:FIELD=N")]
    pub domain: Vec<DomainSetting>,
    /// How the runs are made and shown.
    #[command(flatten)]
    pub options: RunOptions,
}

/// What `run` and `compare` have in common.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Multiply the workload's loops, or its time, by F [default: the experiment's; 1 for compare]
    #[arg(long, value_name = "F", value_parser = parse_scale)]
    pub scale: Option<f64>,
    /// Runs of each variant [default: the experiment's, else 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: Option<u32>,
    /// Run r of every variant has a seed drawn from S and r
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Runs at the same time [default: the CPUs of this host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// How the result is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Show why tasks were placed where they were, and what became of them
    #[arg(long)]
    pub audit: bool,
    /// Show spread and percentiles of every metric too; json and csv always have them
    #[arg(long)]
    pub stats: bool,
    /// The metrics that the conclusion is about, separated by commas [default: the experiment's, else
    /// time_s]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_metric)]
    pub metric: Vec<&'static str>,
    /// Make more runs until the 95 % interval of the change of --metric is within P per cent points, for
    /// every variant
    #[arg(long, value_name = "P", value_parser = parse_precision)]
    pub precision: Option<f64>,
    /// The most runs of each variant that --precision makes
    #[arg(long, value_name = "N", default_value_t = 200, requires = "precision", value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub max_runs: u32,
    /// Repeat at both ends of the machine's cost ranges
    #[arg(long)]
    pub band: bool,
    /// Repeat with each cost figure of the machine halved and doubled, and tell on which of them the
    /// conclusion depends [with run at a quarter of the experiment's scale and at most 5 runs by default]
    #[arg(long)]
    pub sensitivity: bool,
    /// Write the result to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Run another command beside the workload, from before its beginning to its end; can be given
    /// several times
    #[arg(long, value_name = "COMMAND LINE")]
    pub with: Vec<String>,
    /// Whether cores run several threads, for all variants, as in /sys/devices/system/cpu/smt/control
    /// [default: the experiment's; on for compare]
    #[arg(long, value_enum)]
    pub smt: Option<SmtArg>,
    /// How tasks are grouped [default: the experiment's; autogroup for compare]
    #[arg(long, value_enum)]
    pub grouping: Option<GroupingArg>,
}

/// `bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// A machine's name as `wakelab machine list` shows it, `host`, a file `*.toml`, or what
    /// `machine import` reads
    #[arg(long, value_name = "NAME|host|FILE")]
    pub machine: String,
    /// A kernel release, such as 6.5
    #[arg(long)]
    pub kernel: String,
    /// Words of sched_features, separated by blanks; NO_WORD turns one off
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub features: String,
    /// Run this command too, beside the benchmark; may be given several times
    #[arg(long, value_name = "COMMAND LINE")]
    pub with: Vec<String>,
    /// The seed: the run is the first of `run` and `compare` with the same one
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// How tasks are grouped
    #[arg(long, value_enum, default_value_t = GroupingArg::Autogroup)]
    pub grouping: GroupingArg,
    /// The benchmark's own command line, after `--`
    #[arg(value_name = "COMMAND LINE", required = true, last = true)]
    pub command_line: Vec<String>,
}

/// `matrix`.
#[derive(Debug, Args)]
pub struct MatrixArgs {
    /// Words of sched_features that together are the change; NO_WORD turns one off
    #[arg(value_name = "FEATURE", required = true)]
    pub features: Vec<String>,
    /// A kernel release, such as 6.5 [default: the newest that knows the words]
    #[arg(long)]
    pub kernel: Option<String>,
    /// Machines, separated by commas [default: all that `wakelab machine list` shows]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub machine: Vec<String>,
    /// Workloads, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    pub workload: Vec<Kind>,
    /// Loads in per cent of the CPUs, separated by commas
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_values_t = [25, 50, 100, 200],
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub load: Vec<u32>,
    /// Paired runs of each cell
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: u32,
    /// Multiply the workloads' loops, or their times, by F [default: 0.01]
    #[arg(long, value_name = "F", value_parser = parse_scale)]
    pub scale: Option<f64>,
    /// Run r of every cell has a seed drawn from S and r
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Runs at the same time [default: the CPUs of this host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// How tasks are grouped [default: autogroup]
    #[arg(long, value_enum)]
    pub grouping: Option<GroupingArg>,
    /// Keep the cells that are done in FILE, and go on from what is there
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
    /// How the result is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the result to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `document`.
#[derive(Debug, Args)]
pub struct DocumentArgs {
    /// Results that `run EXPERIMENT --format json --output FILE` wrote
    #[arg(value_name = "FILE", required = true)]
    pub results: Vec<PathBuf>,
    /// Write the document to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Recordings: JSON lines, gzipped or plain
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Show the first N disagreements: the state, the kernel's choice, the model's, and the step at
    /// which they part
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "mutate")]
    pub show: usize,
    /// Exit with 1 if less than PERCENT of the records agree, racy ones aside
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "mutate")]
    pub min: Option<f64>,
    /// Break one rule of wake-up placement at a time, and tell which the recorded decisions notice
    #[arg(long)]
    pub mutate: bool,
    /// Leave out recordings of kinds that the model has no comparison for, instead of refusing them
    #[arg(long)]
    pub skip_unknown: bool,
    /// Files at the same time [default: the CPUs of this host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub jobs: Option<u32>,
    /// How the result is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Write the result to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `machine`.
#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// List the machines
    List,
    /// Show a machine's CPUs, scheduling domains and costs
    Show(ShowArgs),
    /// Make a machine's file from a sysfs tree, an archive of one, hwloc's XML or a synthetic string
    Import(ImportArgs),
}

/// `machine show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A machine's name, `host`, a file `*.toml`, or what `machine import` reads
    pub name: String,
    /// The kernel release whose scheduling domains are built
    #[arg(long, default_value = "6.5")]
    pub kernel: String,
    /// How it is written
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    pub format: ShowFormat,
}

/// `machine import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A directory such as /sys, a tar archive of one, an XML file of hwloc (lstopo, `--of xml`), or a
    /// synthetic string such as 'Package:2 L3Cache:4 Core:8 PU:2'
    #[arg(value_name = "FILE|DIR|'SYNTHETIC STRING'")]
    pub source: String,
    /// How it is written: as a machine's file in TOML, or as JSON
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    pub format: ShowFormat,
}

/// `features`.
#[derive(Debug, Args)]
pub struct FeaturesArgs {
    /// A kernel release, such as 6.5
    #[arg(long)]
    pub kernel: String,
    /// How they are written
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    pub format: ShowFormat,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// One line a figure.
    Csv,
}

/// How a description is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For people.
    Text,
    /// JSON.
    Json,
}

/// How tasks are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupingArg {
    /// All tasks of a command in one autogroup, that of its session.
    Autogroup,
    /// All tasks in the root group.
    Root,
}

/// Whether cores run several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SmtArg {
    /// All threads that there are.
    On,
    /// One thread a core.
    Off,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().map_err(|_| "expected a number".to_owned())?;
    check_scale(scale)
}

fn parse_metric(text: &str) -> Result<&'static str, String> {
    metric(text).ok_or_else(|| "there is no such metric".to_owned())
}

/// `1` or `1%`.
fn parse_precision(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse() {
        Ok(points) if points > 0.0 && points <= 100.0 => Ok(points),
        _ => Err("expected per cent points above 0 and at most 100".to_owned()),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("expected a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_precision_is_in_per_cent_points() {
        assert_eq!(
            (parse_precision("1"), parse_precision("0.5 %")),
            (Ok(1.0), Ok(0.5))
        );
        for bad in ["0", "-1", "NaN", "inf", "101", "%", "", "1%x"] {
            assert!(parse_precision(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_scale_is_finite_and_above_zero() {
        assert_eq!(parse_scale("0.01"), Ok(0.01));
        for bad in ["0", "-1", "NaN", "inf", "1e9", "", "x"] {
            assert!(parse_scale(bad).is_err(), "{bad}");
        }
    }
}
