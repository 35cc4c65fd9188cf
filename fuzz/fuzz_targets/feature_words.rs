//! Feature words: known ones, or an error that names the word.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wakelab_sched::Release;
use wakelab_sched::features::FeatureSet;

fuzz_target!(|text: &str| {
    let words: Vec<&str> = text.split(' ').collect();
    for release in Release::ALL {
        if let Ok(set) = FeatureSet::parse_words(release, &words) {
            let line = set.features.to_words(release);
            let again: Vec<&str> = line.split_whitespace().collect();
            let read = FeatureSet::parse_words(release, &again).expect("it reads what it prints");
            assert_eq!(read.features, set.features);
        }
    }
});
