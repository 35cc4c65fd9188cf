//! `wakelab list`.

use crate::experiment::{Experiment, Source, names_and_texts};
use wakelab_report::table::{Align, Table};

/// The experiments that come with the program.
pub fn text() -> anyhow::Result<String> {
    let mut table = Table::new(&[
        ("experiment", Align::Left),
        ("machine", Align::Left),
        ("what", Align::Left),
    ]);
    for known in names_and_texts() {
        let source = Source::embedded(known);
        let experiment = Experiment::from_toml(&source.name, &source.text, &source.file)?;
        table.row(vec![experiment.name, experiment.machine, experiment.title]);
    }
    Ok(table.render())
}
