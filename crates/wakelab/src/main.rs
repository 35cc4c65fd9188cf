//! The command: reads what is asked for, has it run, and writes the result.

mod cli;
mod command;
mod experiment;
mod host;
mod output;
mod plan;
mod runner;

use clap::Parser as _;
use std::process::ExitCode;

/// How the program ended, but for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All is done.
    Done,
    /// Ctrl-C; what was complete has been reported.
    Interrupted,
}

/// Bad input, or something that could not be read or written.
const BAD_INPUT: u8 = 2;
/// As a shell reports SIGINT.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match command::execute(cli.command) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}
