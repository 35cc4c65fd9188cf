//! `wakelab machine`.

use crate::cli::{ImportArgs, MachineCommand, ShowArgs, ShowFormat};
use crate::experiment::release;
use crate::plan::{domain_rules, find_machine};
use anyhow::anyhow;
use wakelab_machine::{Import, Machine, SchedTopology, presets, show};
use wakelab_report::table::{Align, Table};

/// What the verb shows.
///
/// # Errors
/// If the machine or the release is not known.
pub fn text(verb: &MachineCommand) -> anyhow::Result<String> {
    match verb {
        MachineCommand::List => list(),
        MachineCommand::Show(args) => one(args),
        MachineCommand::Import(args) => import(args),
    }
}

fn list() -> anyhow::Result<String> {
    let columns = [
        ("machine", Align::Left),
        ("CPUs", Align::Right),
        ("LLCs", Align::Right),
        ("nodes", Align::Right),
        ("what", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for (name, _) in presets() {
        let machine = Machine::preset(name)?;
        let counts =
            [machine.ncpu(), machine.nllcs(), machine.nnodes()].map(|count| count.to_string());
        let [cpus, llcs, nodes] = counts;
        table.row(vec![machine.name, cpus, llcs, nodes, machine.description]);
    }
    Ok(table.render())
}

fn one(args: &ShowArgs) -> anyhow::Result<String> {
    let machine = find_machine(&args.name)?;
    let release = release(&args.kernel).map_err(|message| anyhow!(message))?;
    let topology = SchedTopology::build(&machine, &domain_rules(release));
    Ok(match args.format {
        ShowFormat::Text => show::machine_show(&machine, &topology),
        ShowFormat::Json => {
            serde_json::to_string_pretty(&show::machine_report(&machine, &topology))? + "\n"
        }
    })
}

fn import(args: &ImportArgs) -> anyhow::Result<String> {
    let import = Import::read(&args.source)?;
    Ok(match args.format {
        ShowFormat::Text => import.to_toml(),
        ShowFormat::Json => serde_json::to_string_pretty(&import)? + "\n",
    })
}
