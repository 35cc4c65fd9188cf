//! A cpulist: what is read prints as a list that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_machine::CpuMask;

fuzz_target!(|text: &str| {
    if let Ok(mask) = CpuMask::from_cpulist(text) {
        assert_eq!(CpuMask::from_cpulist(&mask.to_string()), Ok(mask));
    }
});
