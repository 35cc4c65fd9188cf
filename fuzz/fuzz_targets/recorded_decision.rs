//! Records of wake-up decisions under a header that is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::sync::LazyLock;
use wakelab_verify::{Lines, Recording, mutate, verify};

/// The header of a machine with clusters and core scheduling.
static HEADER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let gzipped = include_bytes!("../../recordings/decisions/E__def-mixaff.jsonl.gz");
    let mut lines = Lines::new(Cursor::new(gzipped)).expect("memory can be read");
    let header = lines.next_line().expect("the recording is whole");
    header.expect("a recording has a header").to_vec()
});

fuzz_target!(|records: &[u8]| {
    let open = || {
        let text = Cursor::new(HEADER.as_slice())
            .chain(Cursor::new(b"\n"))
            .chain(Cursor::new(records.to_vec()));
        Recording::from_reader(Path::new("fuzz"), text).expect("the header is right")
    };
    if let Ok(report) = verify(open(), 1, &|| false) {
        assert!(report.is_some_and(|report| report.records() > 0));
    }
    let _ = mutate(open(), &|| false);
});
