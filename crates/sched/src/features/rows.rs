//! The table of words: one row each.

use super::Feat::*;
use super::table::Part::{self, Modelled};
use super::table::{Word, patch, word};

const ON: Option<bool> = Some(true);
const OFF: Option<bool> = Some(false);
const NONE: Option<bool> = None;

const NO_HRTICK: Part = Part::Outside("the model has no high-resolution preemption timer");
const NO_RT: Part = Part::Outside("the model has no real-time class");
const NO_WARNING: Part = Part::Outside("a debugging aid of the kernel's own code");
const NO_CPU_LOAD: Part = Part::Outside("the model keeps no past loads of CPUs (`cpu_load[]`)");
const NO_BANDWIDTH: Part =
    Part::Outside("the model has no bandwidth control and no full-dynticks CPUs");
const NO_IRQ_TIME: Part = Part::Outside("the model accounts no interrupt or real-time time");

/// The rows, by [`Feat`].
pub(super) static TABLE: [Word; 48] = [
    word(
        GENTLE_FAIR_SLEEPERS,
        "GENTLE_FAIR_SLEEPERS",
        [ON, ON, ON, NONE, NONE],
        Modelled,
        "A sleeper is credited half a latency period instead of a whole one.",
    ),
    word(
        START_DEBIT,
        "START_DEBIT",
        [ON, ON, ON, NONE, NONE],
        Modelled,
        "A new task starts one slice behind those already queued.",
    ),
    word(
        NEXT_BUDDY,
        "NEXT_BUDDY",
        [OFF, OFF, OFF, OFF, OFF],
        Modelled,
        "Prefer to pick the task woken last.",
    ),
    word(
        LAST_BUDDY,
        "LAST_BUDDY",
        [ON, ON, ON, NONE, NONE],
        Modelled,
        "Prefer to pick the task that a wake-up preempted last.",
    ),
    word(
        CACHE_HOT_BUDDY,
        "CACHE_HOT_BUDDY",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Balancing takes buddies for cache hot and leaves them.",
    ),
    word(
        WAKEUP_PREEMPTION,
        "WAKEUP_PREEMPTION",
        [ON, ON, ON, ON, ON],
        Modelled,
        "A wake-up may preempt the running task.",
    ),
    word(
        HRTICK,
        "HRTICK",
        [OFF, OFF, OFF, OFF, OFF],
        NO_HRTICK,
        "End a fair slice by a timer instead of at the tick.",
    ),
    word(
        HRTICK_DL,
        "HRTICK_DL",
        [NONE, OFF, OFF, OFF, OFF],
        NO_HRTICK,
        "End a deadline task's budget by a timer.",
    ),
    word(
        DOUBLE_TICK,
        "DOUBLE_TICK",
        [OFF, OFF, OFF, OFF, OFF],
        NO_HRTICK,
        "Keep the tick's preemption check beside the timer's.",
    ),
    word(
        NONTASK_CAPACITY,
        "NONTASK_CAPACITY",
        [ON, ON, ON, ON, ON],
        NO_IRQ_TIME,
        "Time spent in interrupts lowers a CPU's capacity.",
    ),
    word(
        TTWU_QUEUE,
        "TTWU_QUEUE",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Leave the activation of a remote wake-up to the CPU chosen.",
    ),
    word(
        SIS_PROP,
        "SIS_PROP",
        [ON, OFF, OFF, OFF, NONE],
        Modelled,
        "Limit the idle search by its average cost against the average idle time.",
    ),
    word(
        SIS_UTIL,
        "SIS_UTIL",
        [NONE, ON, ON, ON, ON],
        Modelled,
        "Limit the idle search by the utilisation of the last-level cache's CPUs.",
    ),
    word(
        WARN_DOUBLE_CLOCK,
        "WARN_DOUBLE_CLOCK",
        [OFF, OFF, OFF, OFF, OFF],
        NO_WARNING,
        "Warn of a run queue clock updated twice under one lock.",
    ),
    word(
        RT_PUSH_IPI,
        "RT_PUSH_IPI",
        [ON, ON, ON, ON, OFF],
        NO_RT,
        "Ask overloaded CPUs by interrupt to push real-time tasks.",
    ),
    word(
        RT_RUNTIME_SHARE,
        "RT_RUNTIME_SHARE",
        [ON, OFF, OFF, OFF, OFF],
        NO_RT,
        "CPUs lend each other real-time budget.",
    ),
    word(
        LB_MIN,
        "LB_MIN",
        [OFF, OFF, OFF, OFF, OFF],
        Modelled,
        "Balancing leaves tasks of very small load where they are.",
    ),
    word(
        ATTACH_AGE_LOAD,
        "ATTACH_AGE_LOAD",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Age the load of a task that is attached again.",
    ),
    word(
        WA_IDLE,
        "WA_IDLE",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Affine wake-ups look at whether the waking or the previous CPU is idle.",
    ),
    word(
        WA_WEIGHT,
        "WA_WEIGHT",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Affine wake-ups compare the loads of the waking and the previous CPU.",
    ),
    word(
        WA_BIAS,
        "WA_BIAS",
        [ON, ON, ON, ON, ON],
        Modelled,
        "That comparison favours the waking CPU by half the imbalance percentage.",
    ),
    word(
        UTIL_EST,
        "UTIL_EST",
        [ON, ON, ON, ON, ON],
        Modelled,
        "Remember a task's utilisation over its sleep.",
    ),
    word(
        UTIL_EST_FASTUP,
        "UTIL_EST_FASTUP",
        [NONE, ON, ON, ON, NONE],
        Modelled,
        "The remembered utilisation rises at once and only falls slowly.",
    ),
    word(
        LATENCY_WARN,
        "LATENCY_WARN",
        [NONE, OFF, OFF, OFF, OFF],
        NO_WARNING,
        "Warn when need_resched stays set for long.",
    ),
    word(
        ALT_PERIOD,
        "ALT_PERIOD",
        [NONE, ON, ON, NONE, NONE],
        Modelled,
        "The latency period grows with all tasks of the CPU, not with one level's.",
    ),
    word(
        BASE_SLICE,
        "BASE_SLICE",
        [NONE, ON, ON, NONE, NONE],
        Modelled,
        "No slice is below the minimum granularity.",
    ),
    patch(
        WAKEUP_BIAS_PREV_IDLE,
        "WAKEUP_BIAS_PREV_IDLE",
        [NONE, NONE, OFF, OFF, OFF],
        "A previous CPU of almost no load counts as idle; =N sets the load (47).",
    ),
    patch(
        UTIL_FITS_CAPACITY,
        "UTIL_FITS_CAPACITY",
        [NONE, NONE, OFF, OFF, NONE],
        "A busy candidate is taken if what is queued there and the task fit together.",
    ),
    patch(
        SELECT_BIAS_PREV,
        "SELECT_BIAS_PREV",
        [NONE, NONE, OFF, OFF, NONE],
        "Look at the previous CPU before the target, and fall back to it.",
    ),
    word(
        PLACE_LAG,
        "PLACE_LAG",
        [NONE, NONE, NONE, ON, ON],
        Modelled,
        "A task keeps its lag over sleep and wake-up.",
    ),
    word(
        PLACE_DEADLINE_INITIAL,
        "PLACE_DEADLINE_INITIAL",
        [NONE, NONE, NONE, ON, ON],
        Modelled,
        "A new task's first deadline is half a slice away.",
    ),
    word(
        PLACE_REL_DEADLINE,
        "PLACE_REL_DEADLINE",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "A migrating task keeps its distance to its deadline.",
    ),
    word(
        RUN_TO_PARITY,
        "RUN_TO_PARITY",
        [NONE, NONE, NONE, ON, ON],
        Modelled,
        "The running task is left alone until its lag or its slice is used up.",
    ),
    word(
        PREEMPT_SHORT,
        "PREEMPT_SHORT",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "A task with a shorter slice may preempt in spite of that.",
    ),
    word(
        PICK_BUDDY,
        "PICK_BUDDY",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "The pick honours a buddy at all.",
    ),
    word(
        DELAY_DEQUEUE,
        "DELAY_DEQUEUE",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "A sleeper stays queued until its negative lag is gone.",
    ),
    word(
        DELAY_ZERO,
        "DELAY_ZERO",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "Such a sleeper's lag ends at zero, not above.",
    ),
    word(
        NI_RANDOM,
        "NI_RANDOM",
        [NONE, NONE, NONE, NONE, ON],
        Modelled,
        "Newly idle balancing is tried in proportion to its success.",
    ),
    patch(
        SIS_CORE,
        "SIS_CORE",
        [ON, ON, ON, ON, ON],
        "Search for a wholly idle core; off, only for an idle CPU.",
    ),
    patch(
        SIS_COOKIE,
        "SIS_COOKIE",
        [NONE, NONE, NONE, NONE, OFF],
        "Target, previous, recent CPU and SMT sibling must match the task's cookie.",
    ),
    patch(
        FORCE_IDLE_PUSH,
        "FORCE_IDLE_PUSH",
        [NONE, NONE, NONE, NONE, OFF],
        "A CPU that is forced idle sends a task that waits to where it can run.",
    ),
    patch(
        FORCE_IDLE_LB,
        "FORCE_IDLE_LB",
        [NONE, NONE, NONE, NONE, OFF],
        "Idle CPUs pull tasks that are forced idle and match their core's cookie.",
    ),
    word(
        LB_BIAS,
        "LB_BIAS",
        [OFF, NONE, NONE, NONE, NONE],
        NO_CPU_LOAD,
        "Balancing looks at past loads of CPUs, too.",
    ),
    word(
        SIS_AVG_CPU,
        "SIS_AVG_CPU",
        [OFF, NONE, NONE, NONE, NONE],
        Modelled,
        "No idle search at all if its average cost exceeds the average idle time.",
    ),
    patch(
        CLUSTER_SCAN,
        "CLUSTER_SCAN",
        [NONE, NONE, NONE, NONE, ON],
        "Idle CPUs are looked for in the target's cluster first; off, as before 6.7.",
    ),
    patch(
        SYNC_STAY,
        "SYNC_STAY",
        [OFF, OFF, OFF, OFF, OFF],
        "On a sync wake-up by a task alone on its CPU the woken task stays with it.",
    ),
    word(
        HZ_BW,
        "HZ_BW",
        [NONE, NONE, NONE, ON, NONE],
        NO_BANDWIDTH,
        "The tick of a full-dynticks CPU goes on while its task's bandwidth is limited.",
    ),
    patch(
        MIGRATION_RATELIMIT,
        "MIGRATION_RATELIMIT",
        [NONE, NONE, OFF, OFF, OFF],
        "An affine wake-up leaves a task that changed CPU in the last 2 ms where it was.",
    ),
];
