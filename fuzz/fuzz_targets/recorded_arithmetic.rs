//! Records of arithmetic: the first byte chooses the kind, the rest are its records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;
use wakelab_verify::{KINDS, Recording, verify};

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, records)) = bytes.split_first() else {
        return;
    };
    let kind = KINDS[usize::from(*choice) % KINDS.len()].name;
    let header = format!(
        r#"{{"k":"hdr","schema":2,"kind":"{kind}","kernel":"6.12.117","ncpu":8,"hz":250,"nrec":1000000,
        "sets":[{{"feats":{{"UTIL_EST":1,"SIS_UTIL":1,"LB_MIN":0,"CACHE_HOT_BUDDY":1}},"base_slice":2800000}}]}}"#
    )
    .replace('\n', "");
    let text = [header.as_bytes(), b"\n", records].concat();
    let recording = Recording::from_reader(Path::new("fuzz"), Cursor::new(text));
    let _ = verify(recording.expect("the header is right"), 1, &|| false);
});
