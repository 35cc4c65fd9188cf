//! The fair class as kernel 6.12 has it (EEVDF): of the entities that are owed service the one with
//! the earliest virtual deadline runs (kernel `sched/fair.c`; the paper is Stoica and Abdel-Wahab,
//! "Earliest Eligible Virtual Deadline First", 1995).
//!
//! What differs from CFS stands here: the average of virtual times (`vtime`), where an entity joins
//! and how its request renews (`place`), accounting (`curr`), the tree and the pick, queueing with
//! delayed dequeueing (`delay`, `queue`), and preemption. The averages of load, groups, buddies and
//! the switch itself are shared; they ask `rules.eevdf` where the releases part.

mod curr;
mod delay;
mod pick;
mod place;
mod preempt;
mod protect;
mod queue;
mod tree;
mod vtime;
