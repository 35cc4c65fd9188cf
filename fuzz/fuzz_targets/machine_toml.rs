//! A machine's description: a machine whose domains can be built, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_machine::{DomainRules, Machine, SchedTopology};

fuzz_target!(|text: &str| {
    if let Ok(machine) = Machine::from_toml(text, "fuzz.toml") {
        let topology = SchedTopology::build(&machine, &DomainRules::v6_5());
        assert_eq!(topology.cpus.len(), machine.ncpu());
    }
});
