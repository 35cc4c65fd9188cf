//! An archive of a sysfs tree from lines of `path content`: a machine whose description reads as the
//! same machine, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_machine::{DomainRules, Import, Machine, SchedTopology};

fuzz_target!(|text: &str| {
    let mut builder = tar::Builder::new(Vec::new());
    for line in text.lines().take(256) {
        let Some((path, content)) = line.split_once(' ') else { continue };
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        let path = format!("sys/devices/system/{path}");
        let _ = builder.append_data(&mut header, path, content.as_bytes());
    }
    let Ok(bytes) = builder.into_inner() else { return };
    if let Ok(import) = Import::from_reader(&*bytes, "fuzz.tar") {
        check(&import);
    }
});

fn check(import: &Import) {
    let text = import.to_toml();
    let again = Machine::from_toml(&text, "fuzz.toml").expect("it reads what it prints");
    assert_eq!(again.cpus, import.machine.cpus);
    assert_eq!(again.node_distance, import.machine.node_distance);
    assert_eq!(again.costs, import.machine.costs);
    assert_eq!(again.idle_states, import.machine.idle_states);
    let topology = SchedTopology::build(&again, &DomainRules::v6_12());
    assert_eq!(topology.cpus.len(), again.ncpu());
}
