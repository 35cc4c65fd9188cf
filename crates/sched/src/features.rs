//! The `sched_features` words.

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
}

/// Which features are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// Whether a feature is on.
    #[inline(always)]
    pub fn has(self, feat: Feat) -> bool {
        self.0 >> feat as u8 & 1 != 0
    }

    /// Turns a feature on or off.
    pub fn set(&mut self, feat: Feat, on: bool) {
        self.0 = self.0 & !(1 << feat as u8) | u64::from(on) << feat as u8;
    }
}
