//! A file of rt-app, or whatever: it is read or refused with an error of one line that names a place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_workload::rtapp::check;

fuzz_target!(|bytes: &[u8]| {
    match check("fuzz.json", bytes) {
        Ok(warnings) => assert!(warnings.iter().all(|line| line.starts_with("fuzz.json:"))),
        Err(error) => assert!(error.to_string().starts_with("fuzz.json:")),
    }
});
