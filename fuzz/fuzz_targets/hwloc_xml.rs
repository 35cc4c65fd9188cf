//! A file, XML of hwloc or whatever: a machine whose description reads as the same machine, or an error.
#![no_main]

#[path = "common/imported.rs"]
mod imported;

use libfuzzer_sys::fuzz_target;
use wakelab_machine::Import;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(import) = Import::from_reader(bytes, "fuzz") {
        imported::check(&import);
    }
});
