//! What came out in each cell, as a value that is also the file in which a matrix goes on.

use super::cell::{Better, Cell};
use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use wakelab_report::stats::Change;

/// What holds for every cell. Results under other conditions are no part of the same matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    /// Feature words of the change.
    pub features: Vec<String>,
    /// The kernel release.
    pub kernel: String,
    /// How tasks are grouped.
    pub grouping: String,
    /// What loops and times are multiplied by.
    pub scale: f64,
    /// Paired runs of each cell.
    pub runs: usize,
    /// The seed.
    pub seed: u64,
    /// The version of the program.
    pub version: String,
}

/// What can be said of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The interval of the change is all on the better side.
    Helps,
    /// It is all on the worse side.
    Hurts,
    /// Every run came out the same with the change as without.
    Same,
    /// The interval includes no change, or there is no interval.
    Unclear,
    /// The workload does not come in this size.
    Unfit,
}

impl Verdict {
    /// What a change of a metric says.
    pub fn of(change: Option<Change>, better: Better) -> Verdict {
        let Some([low, high]) = change.and_then(|change| change.ci95) else {
            return Verdict::Unclear;
        };
        let down = match better {
            Better::Lower => Verdict::Helps,
            Better::Higher => Verdict::Hurts,
        };
        let up = match better {
            Better::Lower => Verdict::Hurts,
            Better::Higher => Verdict::Helps,
        };
        match (low, high) {
            (0.0, 0.0) => Verdict::Same,
            _ if high < 0.0 => down,
            _ if low > 0.0 => up,
            _ => Verdict::Unclear,
        }
    }
}

/// A cell that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Where.
    #[serde(flatten)]
    pub cell: Cell,
    /// The workload's command line at full length; none if it does not come in this size.
    pub workload: Option<String>,
    /// The metric that the verdict is about.
    pub metric: String,
    /// Which way it is better.
    pub better: Better,
    /// Its mean without the change.
    pub baseline: Option<f64>,
    /// Its mean with the change.
    pub changed: Option<f64>,
    /// The change in per cent; none if the baseline's mean is zero.
    pub change_pct: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// What that says.
    pub verdict: Verdict,
}

impl CellResult {
    /// A cell whose workload does not come in this size.
    pub fn unfit(cell: Cell) -> CellResult {
        let (metric, better) = cell.kind.metric();
        CellResult {
            cell,
            workload: None,
            metric: metric.to_owned(),
            better,
            baseline: None,
            changed: None,
            change_pct: None,
            ci95: None,
            verdict: Verdict::Unfit,
        }
    }
}

/// A matrix, done or in part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix {
    /// What holds for every cell.
    #[serde(flatten)]
    pub conditions: Conditions,
    /// How many cells were asked for.
    pub cells_asked: usize,
    /// The cells that are done, in the order of tables.
    pub cells: Vec<CellResult>,
}

impl Matrix {
    /// None done.
    pub fn new(conditions: Conditions) -> Matrix {
        Matrix {
            conditions,
            cells_asked: 0,
            cells: Vec::new(),
        }
    }

    /// What an earlier run left in the text of its file.
    ///
    /// # Errors
    /// If it is no matrix, or one under other conditions.
    pub fn go_on(text: &str, conditions: &Conditions) -> anyhow::Result<Matrix> {
        let matrix: Matrix = serde_json::from_str(text).context("this is no matrix")?;
        let json = |of: &Conditions| serde_json::to_value(of);
        let (theirs, ours) = (json(&matrix.conditions)?, json(conditions)?);
        let (Some(theirs), Some(ours)) = (theirs.as_object(), ours.as_object()) else {
            bail!("this is no matrix");
        };
        for (key, value) in ours {
            if theirs.get(key) != Some(value) {
                let other = theirs.get(key).cloned().unwrap_or_default();
                bail!("it has {key} {other} and not {value}: give another file, or remove it");
            }
        }
        Ok(matrix)
    }

    /// Of these cells, those that are done, in the order of the cells asked for.
    pub fn restricted_to(mut self, cells: &[Cell]) -> Matrix {
        let place = |result: &CellResult| cells.iter().position(|cell| *cell == result.cell);
        self.cells.retain(|result| place(result).is_some());
        self.cells.sort_by_key(place);
        self.cells.dedup_by(|a, b| a.cell == b.cell);
        self.cells_asked = cells.len();
        self
    }

    /// What is known of a cell.
    pub fn of(&self, cell: &Cell) -> Option<&CellResult> {
        self.cells.iter().find(|result| result.cell == *cell)
    }

    /// How many cells have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let has = |result: &&CellResult| result.verdict == verdict;
        self.cells.iter().filter(has).count()
    }

    /// The file's text.
    ///
    /// # Errors
    /// Never: everything in it has a form in JSON.
    pub fn to_json(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Kind;

    fn conditions() -> Conditions {
        Conditions {
            features: vec!["A".to_owned()],
            kernel: "6.5".to_owned(),
            grouping: "autogroup".to_owned(),
            scale: 0.01,
            runs: 5,
            seed: 1,
            version: "1".to_owned(),
        }
    }

    fn cell(load_pct: u32) -> Cell {
        Cell {
            machine: "m".to_owned(),
            kind: Kind::Rr,
            load_pct,
        }
    }

    #[test]
    fn the_better_side_depends_on_the_metric() {
        let change = |low, high| {
            Some(Change {
                pct: (low + high) / 2.0,
                ci95: Some([low, high]),
            })
        };
        let verdict = |low, high, better| Verdict::of(change(low, high), better);
        assert_eq!(verdict(-3.0, -1.0, Better::Lower), Verdict::Helps);
        assert_eq!(verdict(-3.0, -1.0, Better::Higher), Verdict::Hurts);
        assert_eq!(verdict(1.0, 3.0, Better::Lower), Verdict::Hurts);
        assert_eq!(verdict(1.0, 3.0, Better::Higher), Verdict::Helps);
        assert_eq!(verdict(-1.0, 3.0, Better::Higher), Verdict::Unclear);
        assert_eq!(verdict(0.0, 0.0, Better::Higher), Verdict::Same);
        assert_eq!(Verdict::of(None, Better::Lower), Verdict::Unclear);
        let single = Some(Change {
            pct: 4.0,
            ci95: None,
        });
        assert_eq!(Verdict::of(single, Better::Lower), Verdict::Unclear);
    }

    #[test]
    fn a_file_goes_on_under_the_same_conditions_only() {
        let mut matrix = Matrix::new(conditions());
        matrix.cells.push(CellResult::unfit(cell(50)));
        let text = matrix.to_json().unwrap();
        assert_eq!(Matrix::go_on(&text, &conditions()).unwrap(), matrix);
        let other = Conditions {
            runs: 6,
            ..conditions()
        };
        let error = Matrix::go_on(&text, &other).unwrap_err().to_string();
        assert!(error.contains("runs 5 and not 6"), "{error}");
        assert!(Matrix::go_on("{}", &conditions()).is_err());
        assert!(Matrix::go_on("", &conditions()).is_err());
    }

    #[test]
    fn only_cells_that_are_asked_for_count_and_in_their_order() {
        let mut matrix = Matrix::new(conditions());
        for load in [200, 25, 25, 100] {
            matrix.cells.push(CellResult::unfit(cell(load)));
        }
        let matrix = matrix.restricted_to(&[cell(25), cell(50), cell(200)]);
        let loads: Vec<u32> = matrix
            .cells
            .iter()
            .map(|result| result.cell.load_pct)
            .collect();
        assert_eq!((loads, matrix.cells_asked), (vec![25, 200], 3));
        assert!(matrix.of(&cell(50)).is_none());
        assert_eq!(matrix.count(Verdict::Unfit), 2);
    }
}
