//! CSV with a header line.

use super::Report;
use wakelab_report::csv::quote;
use wakelab_verify::{Count, FileReport, Noticed};

/// A line for each file and step, reason, kind of race, and cause of being undetermined.
pub fn comparison(report: &Report) -> String {
    let mut text = "file,kind,part,name,records,agree,disagree\n".to_owned();
    report.files.iter().for_each(|of| file(&mut text, of));
    text
}

fn file(text: &mut String, file: &FileReport) {
    let name = quote(&file.file.display().to_string());
    let mut line = |part: &str, of: &str, records: u64, count: Option<Count>| {
        let cell = |of: fn(Count) -> u64| count.map(|count| of(count).to_string());
        let agree = cell(|count| count.agree).unwrap_or_default();
        let disagree = cell(|count| count.disagree).unwrap_or_default();
        let cells = [
            &name,
            file.kind,
            part,
            &quote(of),
            &records.to_string(),
            &agree,
            &disagree,
        ];
        text.push_str(&(cells.join(",") + "\n"));
    };
    line("counted", "", file.counted.all(), Some(file.counted));
    line("racy", "", file.racy.all(), Some(file.racy));
    for (why, records) in &file.undetermined {
        line("undetermined", why, *records, None);
    }
    for (step, count) in &file.by_step {
        line("step", step.name(), count.all(), Some(*count));
    }
    for (reason, count) in &file.by_reason {
        line("reason", reason, count.all(), Some(*count));
    }
}

/// A line for each mutation.
pub fn mutations(noticed: &Noticed) -> String {
    let mut text = "mutation,step,caught_by,file,record,parts_at,what\n".to_owned();
    for row in &noticed.rows {
        let first = row.first.as_ref();
        let cells = [
            row.mutation.name().to_owned(),
            row.mutation.step().to_owned(),
            row.caught.to_string(),
            first.map_or(String::new(), |first| first.file.display().to_string()),
            first.map_or(String::new(), |first| first.record.to_string()),
            first.map_or("", |first| first.step).to_owned(),
            row.mutation.what().to_owned(),
        ];
        text.push_str(&(cells.map(|cell| quote(&cell)).join(",") + "\n"));
    }
    text
}
