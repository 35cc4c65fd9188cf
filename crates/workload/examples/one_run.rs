//! One run of a workload on a preset, for looking at what the engine does and how fast.
//!
//! `cargo run --release -p wakelab-workload --example one_run -- MACHINE 'hackbench ...' [WORD...]`
//! with words `kernel=6.12`, `seed=N`, `root`, and features.

use std::sync::Arc;
use std::time::Instant;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let machine = Machine::preset(&args.next().ok_or("no machine")?)?;
    let workload = Workload::parse(&args.next().ok_or("no workload")?)?;
    let words: Vec<String> = args.collect();
    let root = words.iter().any(|word| word == "root");
    let seed = words
        .iter()
        .find_map(|w| w.strip_prefix("seed="))
        .map_or(Ok(1), str::parse)?;
    let kernel = words.iter().find_map(|w| w.strip_prefix("kernel="));
    let release = Release::from_name(kernel.unwrap_or("6.5")).ok_or("no such kernel")?;
    let mut features = FeatureSet::defaults(release);
    let plain = |w: &&String| *w != "root" && !w.starts_with("seed=") && !w.starts_with("kernel=");
    for word in words.iter().filter(plain) {
        features.apply(release, word)?;
    }
    let (major, minor) = release.number();
    let rules = DomainRules::for_release(major, minor);
    let config = RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &rules)),
        machine: Arc::new(machine),
        release,
        features,
        grouping: if root {
            Grouping::Root
        } else {
            Grouping::Autogroup
        },
        start: Start::Spread,
        seed,
    };
    let start = Instant::now();
    let outcome = run(&workload, &config, &|| false)?;
    let wall = start.elapsed().as_secs_f64();
    for metric in &outcome.metrics {
        println!("{:32} {:>16.3}", metric.name, metric.value);
    }
    for row in &outcome.audit {
        println!("{row:?}");
    }
    for row in &outcome.lines {
        println!("{row:?}");
    }
    let host = outcome.host;
    println!(
        "host: {wall:.2} s, {} events ({:.0} ns each), {} switches ({:.0} ns each)",
        host.events,
        wall * 1e9 / host.events as f64,
        host.switches,
        wall * 1e9 / host.switches as f64
    );
    Ok(())
}
