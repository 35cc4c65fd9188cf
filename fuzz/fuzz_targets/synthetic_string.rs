//! A synthetic string: a machine whose description reads as the same machine, or an error.
#![no_main]

#[path = "common/imported.rs"]
mod imported;

use libfuzzer_sys::fuzz_target;
use wakelab_machine::Import;

fuzz_target!(|text: &str| {
    if let Ok(import) = Import::from_synthetic(text) {
        imported::check(&import);
    }
});
