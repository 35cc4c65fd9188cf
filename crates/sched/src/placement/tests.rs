//! Tests of the steps, each on a small machine and a made-up situation.

mod capacity;
mod fixture;
mod live;
mod patches;
mod ratelimit;
mod search;
mod slow;
mod steps;
mod turns;
