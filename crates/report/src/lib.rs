//! Statistics, comparisons and tables: what a set of runs says, and how it is written down.
//!
//! [`stats`] and [`mod@percentile`] reduce runs to means, percentiles and paired changes with intervals,
//! [`factorial`] tells what features do together, [`precision`] when there are runs enough, and
//! [`sensitivity`] on which costs of the machine a change depends; [`model`] joins them with what was
//! published, and [`text`], [`json`] and [`csv`] write the result. [`mod@result`] reads one back, and
//! [`document`] writes those of many experiments. Nothing here runs a simulation or
//! reads a file.

pub mod csv;
pub mod document;
pub mod factorial;
pub mod forced_idle;
pub mod json;
pub mod metric;
pub mod model;
pub mod number;
pub mod percentile;
pub mod precision;
pub mod published;
pub mod quantile;
pub mod result;
pub mod sensitivity;
pub mod stats;
pub mod table;
pub mod text;
pub mod totals;

pub use factorial::Factorial;
pub use model::{Comparison, Host, Report, Setup, VariantReport, VariantRuns};
pub use precision::Precision;
pub use published::{Figure, Published};
pub use sensitivity::Sensitivity;
pub use stats::{Change, Summary};
