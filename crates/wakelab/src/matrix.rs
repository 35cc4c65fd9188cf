//! A change over a table of machines, workloads and loads: what a patch author is asked for by reviewers.

mod cell;
mod results;
mod table;

pub use cell::{Cell, Kind};
pub use results::{CellResult, Conditions, Matrix, Verdict};
