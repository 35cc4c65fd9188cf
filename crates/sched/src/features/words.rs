//! Setting features in the kernel's syntax: `NAME` turns a feature on, `NO_NAME` off.

use super::table::words_of;
use super::{Feat, Features};
use crate::rules::Release;

/// Features, and the one threshold that goes with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureSet {
    /// Which features are on.
    pub features: Features,
    /// Threshold of WAKEUP_BIAS_PREV_IDLE as a load average (1024 is one nice-0 task always
    /// runnable); a CPU of at most this load without the task is almost idle. 47 in the patch
    /// (LOAD_AVG_MAX / 1000).
    pub almost_idle_load: u64,
}

/// Why a word could not be taken.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FeatureError {
    /// No release has such a word.
    #[error("there is no scheduler feature '{word}'{}", did_you_mean(near))]
    Unknown {
        /// The word as given.
        word: String,
        /// Words of the release that look like it, the nearest first.
        near: Vec<&'static str>,
    },
    /// Another release has it.
    #[error("kernel {} has no scheduler feature '{word}'", release.name())]
    NotInRelease {
        /// The feature's name.
        word: &'static str,
        /// The release.
        release: Release,
    },
    /// A value for a word that takes none.
    #[error("'{word}': only WAKEUP_BIAS_PREV_IDLE takes a value")]
    NoValue {
        /// The word as given.
        word: String,
    },
    /// Words to be applied at once that say both.
    #[error("'{first}' and '{second}' stand in one variant: it is on or off")]
    Opposite {
        /// The word that stands first.
        first: String,
        /// The one that takes it back.
        second: String,
    },
    /// A threshold that is not a number.
    #[error("'{word}': the threshold is a load average from 0 to 1000000, such as 47")]
    BadValue {
        /// The word as given.
        word: String,
    },
}

/// The largest threshold taken: well above any load that a CPU can have for long.
const MAX_ALMOST_IDLE_LOAD: u64 = 1_000_000;

impl FeatureSet {
    /// What a release starts with.
    pub fn defaults(release: Release) -> FeatureSet {
        FeatureSet {
            features: Features::defaults(release),
            almost_idle_load: 47,
        }
    }

    /// The defaults of a release with words applied one after the other.
    ///
    /// # Errors
    /// See [`FeatureSet::apply`].
    pub fn parse_words(release: Release, words: &[&str]) -> Result<FeatureSet, FeatureError> {
        let mut set = FeatureSet::defaults(release);
        words.iter().try_for_each(|word| set.apply(release, word))?;
        Ok(set)
    }

    /// Applies one word as a write to the kernel's file would: blanks around it do not count, its
    /// case does (kernel `sched/debug.c`, `sched_feat_set()`). `WAKEUP_BIAS_PREV_IDLE=47` also sets
    /// the threshold, which the kernel cannot.
    ///
    /// # Errors
    /// If there is no such word in the release, or it has a value that it does not take.
    pub fn apply(&mut self, release: Release, word: &str) -> Result<(), FeatureError> {
        let given = word.trim();
        let value = given.split_once('=').map(|(_, value)| value);
        let (name, on) = told(given);
        let feat = find(release, name, given)?;
        if let Some(value) = value {
            self.almost_idle_load = threshold(feat, on, value, given)?;
        }
        self.features.set(feat, on);
        Ok(())
    }

    /// Applies words that are to hold together, as of one variant.
    ///
    /// # Errors
    /// As [`FeatureSet::apply`], and if one word turns off what another turns on.
    pub fn apply_together(&mut self, release: Release, words: &[&str]) -> Result<(), FeatureError> {
        for (place, word) in words.iter().enumerate() {
            self.apply(release, word)?;
            let (name, on) = told(word);
            let opposite = words[..place]
                .iter()
                .find(|other| told(other) == (name, !on));
            if let Some(first) = opposite {
                return Err(FeatureError::Opposite {
                    first: (*first).to_owned(),
                    second: (*word).to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// The feature that a word names, and whether it turns it on.
fn told(word: &str) -> (&str, bool) {
    let word = word.split_once('=').map_or(word, |(word, _)| word);
    word.strip_prefix("NO_")
        .map_or((word, true), |name| (name, false))
}

fn find(release: Release, name: &str, given: &str) -> Result<Feat, FeatureError> {
    let Some(feat) = Feat::from_name(name) else {
        return Err(FeatureError::Unknown {
            word: given.to_owned(),
            near: near(release, name),
        });
    };
    if feat.word().default_in(release).is_none() {
        return Err(FeatureError::NotInRelease {
            word: feat.name(),
            release,
        });
    }
    Ok(feat)
}

fn threshold(feat: Feat, on: bool, value: &str, given: &str) -> Result<u64, FeatureError> {
    if feat != Feat::WAKEUP_BIAS_PREV_IDLE || !on {
        return Err(FeatureError::NoValue {
            word: given.to_owned(),
        });
    }
    let bad = || FeatureError::BadValue {
        word: given.to_owned(),
    };
    // `parse` alone would take a sign.
    if !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    value
        .parse()
        .ok()
        .filter(|&load| load <= MAX_ALMOST_IDLE_LOAD)
        .ok_or_else(bad)
}

/// The words of a release that look like a name: at most a third of its letters are different.
fn near(release: Release, name: &str) -> Vec<&'static str> {
    let name: Vec<char> = name.to_uppercase().chars().take(64).collect();
    let mut found: Vec<(usize, &'static str)> = words_of(release)
        .map(|word| (edit_distance(&name, word.name), word.name))
        .filter(|&(distance, word)| distance * 3 <= word.len())
        .collect();
    found.sort();
    found.into_iter().take(3).map(|(_, word)| word).collect()
}

/// Insertions, deletions and replacements that make one word of the other (Levenshtein).
fn edit_distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (line, letter) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 0..a.len() {
            let replaced = diagonal + usize::from(a[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[a.len()]
}

fn did_you_mean(near: &[&'static str]) -> String {
    if near.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Release::{V5_2, V5_19, V6_5, V6_12};

    const STOCK_6_5: &str = "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY \
        CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK NO_HRTICK_DL NO_DOUBLE_TICK NONTASK_CAPACITY \
        TTWU_QUEUE NO_SIS_PROP SIS_UTIL NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI NO_RT_RUNTIME_SHARE \
        NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP \
        NO_LATENCY_WARN ALT_PERIOD BASE_SLICE ";

    const STOCK_5_2: &str = "GENTLE_FAIR_SLEEPERS START_DEBIT NO_NEXT_BUDDY LAST_BUDDY \
        CACHE_HOT_BUDDY WAKEUP_PREEMPTION NO_HRTICK NO_DOUBLE_TICK NO_LB_BIAS NONTASK_CAPACITY \
        TTWU_QUEUE NO_SIS_AVG_CPU SIS_PROP NO_WARN_DOUBLE_CLOCK RT_PUSH_IPI RT_RUNTIME_SHARE \
        NO_LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST ";

    #[test]
    fn the_defaults_print_as_the_stock_kernel_prints_them() {
        assert_eq!(Features::defaults(V6_5).to_words(V6_5), STOCK_6_5);
        assert_eq!(Features::defaults(V5_2).to_words(V5_2), STOCK_5_2);
        assert_eq!(Features::defaults(V5_19).to_words(V5_19), STOCK_6_5);
    }

    #[test]
    fn words_come_and_go_with_releases() {
        for (release, word) in [
            (V5_2, "SIS_UTIL"),
            (V5_2, "UTIL_EST_FASTUP"),
            (V5_2, "WAKEUP_BIAS_PREV_IDLE"),
            (V5_19, "SIS_AVG_CPU"),
            (V5_19, "PLACE_LAG"),
            (V6_5, "LB_BIAS"),
            (V6_12, "SIS_AVG_CPU"),
        ] {
            let error = FeatureSet::parse_words(release, &[word]);
            assert_eq!(error, Err(FeatureError::NotInRelease { word, release }));
        }
    }

    #[test]
    fn what_is_printed_can_be_read_back() {
        for release in Release::ALL {
            let (words, end): (&[&str], _) = match release {
                Release::V5_2 | Release::V5_19 => {
                    (&["NO_WA_IDLE", " NO_SIS_CORE\n"], "NO_SIS_CORE ")
                }
                _ => (
                    &["NO_SIS_UTIL", "NO_SIS_CORE", " WAKEUP_BIAS_PREV_IDLE\n"],
                    "WAKEUP_BIAS_PREV_IDLE NO_SIS_CORE ",
                ),
            };
            let set = FeatureSet::parse_words(release, words).unwrap();
            let line = set.features.to_words(release);
            assert!(line.ends_with(end), "{line}");
            let again: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(FeatureSet::parse_words(release, &again), Ok(set));
        }
    }

    #[test]
    fn the_last_word_wins_and_the_case_counts() {
        let set = FeatureSet::parse_words(V6_5, &["NO_WA_IDLE", "WA_IDLE", "NO_WA_BIAS"]).unwrap();
        assert!(set.features.has(Feat::WA_IDLE) && !set.features.has(Feat::WA_BIAS));
        let error = FeatureSet::parse_words(V6_5, &["sis_util"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no scheduler feature 'sis_util'; did you mean SIS_UTIL?"
        );
    }

    #[test]
    fn an_unknown_word_names_its_neighbours() {
        let error = FeatureSet::parse_words(V6_5, &["NO_WA_WIEGHT"]).unwrap_err();
        let FeatureError::Unknown { word, near } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (word.as_str(), near.as_slice()),
            ("NO_WA_WIEGHT", ["WA_WEIGHT"].as_slice())
        );
        for nonsense in ["", "NO_", "=", "ÄÖ_€", "NO_NO_WA_IDLE"] {
            let error = FeatureSet::parse_words(V6_5, &[nonsense]);
            assert!(
                matches!(error, Err(FeatureError::Unknown { .. })),
                "{nonsense}"
            );
        }
    }

    #[test]
    fn a_word_of_another_release_is_told_apart() {
        assert_eq!(
            FeatureSet::parse_words(V6_12, &["SIS_PROP"]),
            Err(FeatureError::NotInRelease {
                word: "SIS_PROP",
                release: V6_12
            })
        );
        assert!(FeatureSet::parse_words(V6_5, &["NO_PLACE_LAG"]).is_err());
    }

    #[test]
    fn only_the_bias_takes_a_threshold() {
        let set = FeatureSet::parse_words(V6_5, &["WAKEUP_BIAS_PREV_IDLE=100"]).unwrap();
        assert!(set.features.has(Feat::WAKEUP_BIAS_PREV_IDLE));
        assert_eq!(set.almost_idle_load, 100);
        for word in [
            "WAKEUP_BIAS_PREV_IDLE=",
            "WAKEUP_BIAS_PREV_IDLE=-1",
            "WAKEUP_BIAS_PREV_IDLE=+1",
            "WAKEUP_BIAS_PREV_IDLE=1000001",
            "WAKEUP_BIAS_PREV_IDLE=99999999999999999999",
        ] {
            let error = FeatureSet::parse_words(V6_5, &[word]);
            assert_eq!(
                error,
                Err(FeatureError::BadValue {
                    word: word.to_owned()
                })
            );
        }
        for word in ["SIS_UTIL=1", "NO_WAKEUP_BIAS_PREV_IDLE=3"] {
            let error = FeatureSet::parse_words(V6_5, &[word]);
            assert_eq!(
                error,
                Err(FeatureError::NoValue {
                    word: word.to_owned()
                })
            );
        }
    }
}
