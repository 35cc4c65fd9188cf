//! The `sched_features` words: which there are in a release, what they mean, whether the model acts
//! on them, and the kernel's syntax for setting them.

mod order;
mod rows;
mod table;
mod words;

pub use table::{Origin, Word, words_of};
pub use words::{FeatureError, FeatureSet};

use crate::rules::Release;

/// A `sched_features` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, non_camel_case_types, clippy::upper_case_acronyms)]
#[repr(u8)]
pub enum Feat {
    GENTLE_FAIR_SLEEPERS,
    START_DEBIT,
    NEXT_BUDDY,
    LAST_BUDDY,
    CACHE_HOT_BUDDY,
    WAKEUP_PREEMPTION,
    HRTICK,
    HRTICK_DL,
    DOUBLE_TICK,
    NONTASK_CAPACITY,
    TTWU_QUEUE,
    SIS_PROP,
    SIS_UTIL,
    WARN_DOUBLE_CLOCK,
    RT_PUSH_IPI,
    RT_RUNTIME_SHARE,
    LB_MIN,
    ATTACH_AGE_LOAD,
    WA_IDLE,
    WA_WEIGHT,
    WA_BIAS,
    UTIL_EST,
    UTIL_EST_FASTUP,
    LATENCY_WARN,
    ALT_PERIOD,
    BASE_SLICE,
    WAKEUP_BIAS_PREV_IDLE,
    UTIL_FITS_CAPACITY,
    SELECT_BIAS_PREV,
    PLACE_LAG,
    PLACE_DEADLINE_INITIAL,
    PLACE_REL_DEADLINE,
    RUN_TO_PARITY,
    PREEMPT_SHORT,
    PICK_BUDDY,
    DELAY_DEQUEUE,
    DELAY_ZERO,
    NI_RANDOM,
    SIS_CORE,
    SIS_COOKIE,
    FORCE_IDLE_PUSH,
    FORCE_IDLE_LB,
    LB_BIAS,
    SIS_AVG_CPU,
    CLUSTER_SCAN,
    SYNC_STAY,
    HZ_BW,
    MIGRATION_RATELIMIT,
}

impl Feat {
    /// The word as the kernel spells it.
    pub fn name(self) -> &'static str {
        self.word().name
    }

    /// What the table says of it.
    pub fn word(self) -> &'static Word {
        &rows::TABLE[self as usize]
    }

    /// The feature with exactly this name.
    pub fn from_name(name: &str) -> Option<Feat> {
        rows::TABLE
            .iter()
            .find(|word| word.name == name)
            .map(|word| word.feat)
    }
}

/// Which features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// What is on in a release unless somebody says otherwise.
    pub fn defaults(release: Release) -> Features {
        let mut features = Features(0);
        rows::TABLE
            .iter()
            .filter(|word| word.default_in(release) == Some(true))
            .for_each(|word| features.set(word.feat, true));
        features
    }

    /// Whether a feature is on.
    #[inline(always)]
    pub fn has(self, feat: Feat) -> bool {
        self.0 >> feat as u8 & 1 != 0
    }

    /// Turns a feature on or off.
    pub fn set(&mut self, feat: Feat, on: bool) {
        self.0 = self.0 & !(1 << feat as u8) | u64::from(on) << feat as u8;
    }

    /// The line that the kernel prints for `/sys/kernel/debug/sched/features`: `NAME` or `NO_NAME`
    /// and a blank for each word of the release, in its order (kernel `sched/debug.c`,
    /// `sched_feat_show()`). A posted patch's word is added only where it is not at its baseline, so
    /// that the line of a stock kernel comes out as that kernel prints it.
    pub fn to_words(self, release: Release) -> String {
        let mut line = String::new();
        for word in words_of(release) {
            let on = self.has(word.feat);
            if word.origin == Origin::Patch && word.default_in(release) == Some(on) {
                continue;
            }
            line.push_str(if on { "" } else { "NO_" });
            line.push_str(word.name);
            line.push(' ');
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::Feat::*;
    use super::rows::TABLE;
    use super::*;

    #[test]
    fn a_row_stands_where_its_feature_points() {
        for (index, word) in TABLE.iter().enumerate() {
            assert_eq!(word.feat as usize, index, "{}", word.name);
            assert_eq!(format!("{:?}", word.feat), word.name);
            assert!(word.doc.ends_with('.'));
        }
    }

    #[test]
    fn the_printed_order_holds_exactly_the_words_of_the_release() {
        for release in Release::ALL {
            let mut listed: Vec<Feat> = words_of(release).map(|word| word.feat).collect();
            assert!(
                listed
                    .iter()
                    .all(|feat| feat.word().default_in(release).is_some())
            );
            listed.sort();
            let known = TABLE
                .iter()
                .filter(|word| word.default_in(release).is_some());
            assert_eq!(listed, known.map(|word| word.feat).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_word_that_is_not_acted_on_says_why() {
        assert!(SIS_UTIL.word().acted(Release::V6_5));
        assert!(SIS_UTIL.word().acted(Release::V6_12));
        assert!(!START_DEBIT.word().acted(Release::V6_12));
        assert_eq!(
            HRTICK.word().not_acted(Release::V6_5),
            Some("the model has no high-resolution preemption timer")
        );
    }
}
