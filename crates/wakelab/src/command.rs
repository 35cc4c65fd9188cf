//! The verbs, one file each.

mod bench;
mod compare;
mod document;
mod features;
mod list;
mod machine;
mod matrix;
mod run;
mod verify;

use crate::Ending;
use crate::cli::Command;
use crate::output::Output;

/// Does what the command line asks for.
///
/// # Errors
/// Whatever is wrong with the input.
pub fn execute(command: Command) -> anyhow::Result<Ending> {
    match command {
        Command::List => print(&list::text()?),
        Command::Run(args) => run::experiment(&args),
        Command::Compare(args) => run::plan(compare::plan(&args)?, &args.options),
        Command::Bench(args) => bench::run(&args),
        Command::Matrix(args) => matrix::matrix(&args),
        Command::Document(args) => document::experiments(&args),
        Command::Verify(args) => verify::recordings(&args),
        Command::Machine(verb) => print(&machine::text(&verb)?),
        Command::Features(args) => print(&features::text(&args)?),
    }
}

fn print(text: &str) -> anyhow::Result<Ending> {
    Output::Stdout.write(text)?;
    Ok(Ending::Done)
}
