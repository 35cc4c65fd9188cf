//! A recording, gzipped or plain: whatever the bytes are, a report or an error that names the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use wakelab_verify::{Recording, verify};

fuzz_target!(|bytes: &[u8]| {
    let recording = Recording::from_reader(Path::new("fuzz"), Cursor::new(bytes.to_vec()));
    let report = recording.and_then(|recording| verify(recording, 1, &|| false));
    if let Err(error) = report {
        assert!(error.to_string().starts_with("fuzz:"));
    }
});
