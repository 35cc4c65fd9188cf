//! `wakelab features`.

use crate::cli::{FeaturesArgs, ShowFormat};
use crate::experiment::release;
use anyhow::anyhow;
use serde::Serialize;
use wakelab_report::table::{Align, Table};
use wakelab_sched::features::{Features, Origin, Word, words_of};
use wakelab_sched::rules::Release;

#[derive(Serialize)]
struct Row {
    word: &'static str,
    default: bool,
    acts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_modelled: Option<&'static str>,
    origin: &'static str,
    what: &'static str,
}

/// The features of a release: the line that its kernel prints, and a table of what each word is.
///
/// # Errors
/// If the release is not known.
pub fn text(args: &FeaturesArgs) -> anyhow::Result<String> {
    let release = release(&args.kernel).map_err(|message| anyhow!(message))?;
    let rows: Vec<Row> = words_of(release).map(|word| row(release, word)).collect();
    Ok(match args.format {
        ShowFormat::Text => format!(
            "{}\n\n{}",
            Features::defaults(release).to_words(release),
            table(&rows)
        ),
        ShowFormat::Json => serde_json::to_string_pretty(&rows)? + "\n",
    })
}

fn row(release: Release, word: &Word) -> Row {
    let not_modelled = word.not_acted(release);
    Row {
        word: word.name,
        default: word.default_in(release) == Some(true),
        acts: not_modelled.is_none(),
        not_modelled,
        origin: match word.origin {
            Origin::Release => "release",
            Origin::Patch => "patch",
        },
        what: word.doc,
    }
}

fn table(rows: &[Row]) -> String {
    let columns = ["word", "default", "origin", "model", "what"];
    let mut table = Table::new(&columns.map(|name| (name, Align::Left)));
    for row in rows {
        let model = row.not_modelled.map_or_else(
            || "acts".to_owned(),
            |reason| format!("does not act: {reason}"),
        );
        let default = if row.default { "on" } else { "off" };
        table.row(vec![
            row.word.into(),
            default.into(),
            row.origin.into(),
            model,
            row.what.into(),
        ]);
    }
    table.render()
}
