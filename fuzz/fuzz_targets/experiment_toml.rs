//! An experiment's file, or whatever: it is read, or refused with an error that names a place.
#![no_main]

// The command is no library: its reader is compiled in, and finds `text_file` where it looks for it.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/wakelab/src"]
mod command {
    pub mod experiment;
    pub mod text_file;
}

use command::experiment::Experiment;
use command::text_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // That would be read from standard input.
    if text.contains("rt-app") {
        return;
    }
    match Experiment::from_toml("fuzz", text, "fuzz.toml") {
        Ok(experiment) => assert!(!experiment.variants.is_empty()),
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml")),
    }
});
