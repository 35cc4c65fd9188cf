//! What a newly idle balance costs, remembered so that short idle periods are not spent on it.

use crate::state::DomainState;

/// `update_newidle_stats`: counts a newly idle balance and, weighted by its chance, its success.
pub fn update_newidle_stats(sd: &mut DomainState, success: u32) {
    sd.newidle_call += 1;
    sd.newidle_success += success;
    if sd.newidle_call >= 1024 {
        sd.newidle_ratio = sd.newidle_success;
        sd.newidle_call /= 2;
        sd.newidle_success /= 2;
    }
}

/// `update_newidle_cost`: the largest cost seen, which fades by about 1 % a second. `cost` 0 only
/// lets it fade. True if it did.
pub fn update_newidle_cost(
    sd: &mut DomainState,
    cost: u64,
    success: u32,
    jiffies: u64,
    hz: u64,
) -> bool {
    if cost > 0 {
        update_newidle_stats(sd, success);
    }
    if cost > sd.max_newidle_lb_cost {
        sd.max_newidle_lb_cost = cost;
        sd.last_decay_max_lb_cost = jiffies;
    } else if jiffies > sd.last_decay_max_lb_cost + hz {
        sd.max_newidle_lb_cost = sd.max_newidle_lb_cost * 253 / 256;
        sd.last_decay_max_lb_cost = jiffies;
        return true;
    }
    false
}

/// Whether the dice of NI_RANDOM let a balance happen: `roll` of 0..1024 against the domain's share
/// of successes. `Some` with the weight of a success, `None` if the dice lost.
pub fn newidle_dice(sd: &DomainState, roll: u32) -> Option<u32> {
    let chance = 1 + sd.newidle_ratio;
    (roll <= chance).then(|| (1024 + chance / 2) / chance)
}

/// Whether a newly idle balance is not worth starting: no CPU has more than one task, or the CPU's
/// average idle time is shorter than its lowest domain takes.
#[inline(always)]
pub fn newidle_gated(overload: bool, avg_idle: u64, lowest_cost: u64) -> bool {
    !overload || avg_idle < lowest_cost
}

/// Whether a newly idle balance ends before a domain: the time spent so far and the domain's cost
/// together are more than the CPU's average idle time.
#[inline(always)]
pub fn newidle_too_dear(avg_idle: u64, curr_cost: u64, domain_cost: u64) -> bool {
    avg_idle < curr_cost + domain_cost
}
