//! Statistics, comparisons and tables: what a set of runs says, and how it is written down.
//!
//! [`stats`] reduces runs to means and paired changes with intervals, [`model`] joins them with what
//! was published, and [`text`], [`json`] and [`csv`] write the result. Nothing here runs a simulation
//! or reads a file.

pub mod csv;
pub mod forced_idle;
pub mod json;
pub mod metric;
pub mod model;
pub mod number;
pub mod published;
pub mod quantile;
pub mod stats;
pub mod table;
pub mod text;
pub mod totals;

pub use model::{Comparison, Host, Report, Setup, VariantReport, VariantRuns};
pub use published::{Figure, Published};
pub use stats::{Change, Summary};
