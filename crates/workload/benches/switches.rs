//! How fast the engine is: simulated context switches a second of one host core, on the
//! machine and workload of `wakeup-bias-prev-idle` with the loops shortened.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::sync::Arc;
use wakelab_machine::domains::{DomainRules, SchedTopology};
use wakelab_machine::topology::Machine;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;
use wakelab_workload::{Grouping, RunConfig, Start, Workload, run};

fn config(word: &str) -> RunConfig {
    let machine = Machine::preset("epyc-9654-2s").expect("a preset");
    RunConfig {
        topology: Arc::new(SchedTopology::build(&machine, &DomainRules::v6_5())),
        machine: Arc::new(machine),
        release: Release::V6_5,
        features: FeatureSet::parse_words(Release::V6_5, &[word]).expect("a known word"),
        grouping: Grouping::Autogroup,
        start: Start::Spread,
        seed: 1,
    }
}

fn switches(criterion: &mut Criterion) {
    let line = "hackbench -g 32 -f 20 --threads --pipe -l 200 -s 100";
    let workload = Workload::parse(line).expect("a command line");
    let mut group = criterion.benchmark_group("switches");
    group.sample_size(10);
    for word in ["NO_WAKEUP_BIAS_PREV_IDLE", "WAKEUP_BIAS_PREV_IDLE"] {
        let config = config(word);
        let once = || run(&workload, &config, &|| false).expect("it ends");
        group.throughput(Throughput::Elements(once().host.switches));
        group.bench_function(word, |bencher| bencher.iter(once));
    }
    group.finish();
}

criterion_group!(benches, switches);
criterion_main!(benches);
