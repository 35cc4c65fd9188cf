//! What holds of every machine that an importer gives.

use wakelab_machine::{DomainRules, Import, Machine, SchedTopology};

/// Its description reads as the same machine, and domains can be built on it.
pub fn check(import: &Import) {
    let text = import.to_toml();
    let again = Machine::from_toml(&text, "fuzz.toml").expect("it reads what it prints");
    assert_eq!(again.cpus, import.machine.cpus);
    assert_eq!(again.node_distance, import.machine.node_distance);
    assert_eq!(again.costs, import.machine.costs);
    assert_eq!(again.idle_states, import.machine.idle_states);
    let topology = SchedTopology::build(&again, &DomainRules::v6_12());
    assert_eq!(topology.cpus.len(), again.ncpu());
}
