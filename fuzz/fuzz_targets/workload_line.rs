//! A benchmark's command line: what is read prints as a line that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_workload::Workload;

fuzz_target!(|text: &str| {
    // `rt-app -` would wait for standard input.
    if text.contains("rt-app") {
        return;
    }
    if let Ok(workload) = Workload::parse(text) {
        assert_eq!(Workload::parse(&workload.command_line()), Ok(workload));
    }
});
