//! What came of making a recorded call again.

use std::fmt::Debug;

/// How a recorded call and the model's compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that the call left behind is the same.
    Agree,
    /// The record is marked: its inputs changed while the call ran. Whether it agrees all the same.
    Racy {
        /// It does.
        agrees: bool,
    },
    /// The record does not hold what it would take to tell; why.
    Undetermined(&'static str),
    /// It is not the same.
    Differ(Difference),
}

/// Where the kernel and the model part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The first step or result that is not the same.
    pub step: &'static str,
    /// What the kernel had there.
    pub kernel: String,
    /// What the model had.
    pub ours: String,
}

/// Compares the results of one call in their order and keeps the first difference.
#[derive(Debug, Default)]
pub struct Comparison {
    first: Option<Difference>,
}

impl Comparison {
    /// Nothing compared yet.
    pub fn new() -> Comparison {
        Comparison::default()
    }

    /// Compares one result.
    #[must_use]
    pub fn same<T: PartialEq + Debug>(mut self, step: &'static str, kernel: T, ours: T) -> Self {
        if self.first.is_none() && kernel != ours {
            self.first = Some(Difference {
                step,
                kernel: format!("{kernel:?}"),
                ours: format!("{ours:?}"),
            });
        }
        self
    }

    /// Goes on with what another has compared.
    #[must_use]
    pub fn and(mut self, other: Comparison) -> Self {
        self.first = self.first.or(other.first);
        self
    }

    /// The outcome of a record that cannot be racy.
    pub fn outcome(self) -> Outcome {
        self.first.map_or(Outcome::Agree, Outcome::Differ)
    }

    /// The outcome of a record that may be racy.
    pub fn outcome_if_racy(self, racy: bool) -> Outcome {
        if racy {
            Outcome::Racy {
                agrees: self.first.is_none(),
            }
        } else {
            self.outcome()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_kept() {
        let compare = || {
            let same = Comparison::new().same("a", 1, 1);
            same.same("b", Some(2), None).same("c", 3, 4)
        };
        let difference = Difference {
            step: "b",
            kernel: "Some(2)".to_owned(),
            ours: "None".to_owned(),
        };
        assert_eq!(compare().outcome(), Outcome::Differ(difference));
        assert_eq!(
            compare().outcome_if_racy(true),
            Outcome::Racy { agrees: false }
        );
        assert_eq!(
            Comparison::new().same("a", 1, 1).outcome_if_racy(false),
            Outcome::Agree
        );
    }
}
