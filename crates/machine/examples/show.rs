//! Prints a machine as `wakelab machine show` does: a preset by name, or the host as `host`.

use wakelab_machine::{DomainRules, Machine, MachineError, SchedTopology, show};

fn main() -> Result<(), MachineError> {
    let name = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "epyc-9654-2s".to_owned());
    let machine = match name.as_str() {
        "host" => Machine::from_sysfs("/sys".as_ref())?,
        _ => Machine::preset(&name)?,
    };
    let topology = SchedTopology::build(&machine, &DomainRules::v6_5());
    print!("{}", show::machine_show(&machine, &topology));
    Ok(())
}
