//! A sysfs tree from lines of `path content`: a machine, or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use wakelab_machine::Machine;

fuzz_target!(|text: &str| {
    let Ok(root) = tempfile::tempdir() else { return };
    for line in text.lines().take(64) {
        let Some((path, content)) = line.split_once(' ') else { continue };
        if path.is_empty() || path.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
            continue;
        }
        let file = root.path().join("devices/system").join(path);
        let _ = file.parent().map(fs::create_dir_all);
        let _ = fs::write(file, content);
    }
    let _ = Machine::from_sysfs(root.path());
});
