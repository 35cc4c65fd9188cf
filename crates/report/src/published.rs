//! What was published for an experiment: figures of each variant, and the changes between them.

use crate::metric::{self, Unit};
use crate::number;

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its low end; the same as `high` if one number was published.
    pub low: f64,
    /// Its high end.
    pub high: f64,
    /// The figure as its source prints it, where that says more than the number.
    pub printed: Option<String>,
}

impl Figure {
    /// A single number.
    pub fn exact(value: f64) -> Figure {
        Figure {
            low: value,
            high: value,
            printed: None,
        }
    }

    /// The number to compare with: the middle of a range.
    pub fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    /// As its source prints it, else as tables write a number of this unit.
    pub fn text(&self, unit: Unit) -> String {
        match &self.printed {
            Some(printed) => printed.clone(),
            None => number::value(self.middle(), unit),
        }
    }
}

/// A published figure of a variant for a metric.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    variant: String,
    metric: String,
    figure: Figure,
}

/// Everything that was published for an experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Published {
    /// Where: a message-id or an address.
    pub source: String,
    values: Vec<Entry>,
    changes: Vec<Entry>,
}

impl Published {
    /// Nothing published yet, to be filled from this source.
    pub fn from_source(source: impl Into<String>) -> Published {
        Published {
            source: source.into(),
            ..Published::default()
        }
    }

    /// Adds a figure of a variant.
    pub fn add_value(&mut self, variant: &str, metric: &str, figure: Figure) {
        self.values.push(Entry {
            variant: variant.to_owned(),
            metric: metric.to_owned(),
            figure,
        });
    }

    /// Adds a change against the baseline that the source itself prints, in per cent.
    pub fn add_change(&mut self, variant: &str, metric: &str, figure: Figure) {
        self.changes.push(Entry {
            variant: variant.to_owned(),
            metric: metric.to_owned(),
            figure,
        });
    }

    /// The published figure of a variant.
    pub fn value(&self, variant: &str, metric: &str) -> Option<&Figure> {
        find(&self.values, variant, metric)
    }

    /// The published change of a variant against the baseline, in per cent: as printed if the source
    /// prints one, else from the published figures of both.
    pub fn change_pct(&self, baseline: &str, variant: &str, metric: &str) -> Option<f64> {
        if let Some(printed) = find(&self.changes, variant, metric) {
            return Some(printed.middle());
        }
        let base = self.value(baseline, metric)?.middle();
        let new = self.value(variant, metric)?.middle();
        let pct = 100.0 * (new / base - 1.0);
        pct.is_finite().then_some(pct)
    }

    /// By how much a simulated mean misses the published figure, in per cent of that. A metric that
    /// grows with the work is first brought to full length.
    pub fn error_pct(
        &self,
        variant: &str,
        metric: &'static str,
        mean: f64,
        scale: f64,
    ) -> Option<f64> {
        let published = self.value(variant, metric)?.middle();
        let whole = if metric::of(metric).grows {
            mean / scale
        } else {
            mean
        };
        let error = 100.0 * (whole / published - 1.0);
        error.is_finite().then_some(error)
    }
}

fn find<'a>(entries: &'a [Entry], variant: &str, metric: &str) -> Option<&'a Figure> {
    entries
        .iter()
        .find(|entry| entry.variant == variant && entry.metric == metric)
        .map(|entry| &entry.figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> Published {
        let mut published = Published::from_source("a mail");
        let range = Figure {
            low: 48.0,
            high: 50.0,
            printed: Some("48-50".to_owned()),
        };
        published.add_value("baseline", "time_s", range);
        published.add_value("NEW", "time_s", Figure::exact(24.5));
        published.add_value("baseline", "cpu_migrations", Figure::exact(118e6));
        published.add_value("NEW", "cpu_migrations", Figure::exact(7e6));
        published.add_change("NEW", "cpu_migrations", Figure::exact(-94.0));
        published
    }

    #[test]
    fn a_range_counts_as_its_middle_and_prints_as_published() {
        let published = published();
        assert_eq!(
            published.change_pct("baseline", "NEW", "time_s"),
            Some(-50.0)
        );
        let figure = published.value("baseline", "time_s").expect("added");
        assert_eq!(figure.text(Unit::Seconds), "48-50");
    }

    #[test]
    fn a_printed_change_wins_over_the_computed_one() {
        assert_eq!(
            published().change_pct("baseline", "NEW", "cpu_migrations"),
            Some(-94.0)
        );
        assert_eq!(published().change_pct("baseline", "NEW", "idle_s"), None);
    }

    #[test]
    fn errors_bring_what_grows_to_full_length() {
        let error = published()
            .error_pct("NEW", "time_s", 0.49, 0.01)
            .expect("published");
        assert!((error - 100.0).abs() < 1e-9, "{error}");
    }
}
