//! An archive of a sysfs tree from lines of `path content`: a machine whose description reads as the
//! same machine, or an error.
#![no_main]

#[path = "common/imported.rs"]
mod imported;

use libfuzzer_sys::fuzz_target;
use wakelab_machine::Import;

fuzz_target!(|text: &str| {
    let mut builder = tar::Builder::new(Vec::new());
    for line in text.lines().take(256) {
        let Some((path, content)) = line.split_once(' ') else { continue };
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        let path = format!("sys/devices/system/{path}");
        let _ = builder.append_data(&mut header, path, content.as_bytes());
    }
    let Ok(bytes) = builder.into_inner() else { return };
    if let Ok(import) = Import::from_reader(&*bytes, "fuzz.tar") {
        imported::check(&import);
    }
});
