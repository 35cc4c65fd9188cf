//! The command: reads what is asked for, has it run, and writes the result.

// They panic where nobody listens: what a user is told goes through `output` and `complain`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;
mod command;
mod complain;
mod costs;
mod experiment;
mod host;
mod interrupt;
mod matrix;
mod output;
mod plan;
mod runner;
mod text_file;

use clap::Parser as _;
use std::process::ExitCode;

/// How the program ended, but for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All is done.
    Done,
    /// A check that was asked for failed; the result has been reported.
    Failed,
    /// Ctrl-C; what was complete has been reported.
    Interrupted,
}

/// A check failed.
const FAILED: u8 = 1;
/// Bad input, or something that could not be read or written.
const BAD_INPUT: u8 = 2;
/// As a shell reports SIGINT.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match command::execute(cli.command) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::from(FAILED),
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            complain::complain(&format!("error: {error:#}"));
            ExitCode::from(BAD_INPUT)
        }
    }
}
