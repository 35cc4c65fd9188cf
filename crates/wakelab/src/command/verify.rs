//! `wakelab verify`: recorded calls of a real kernel, made again.

mod csv;
mod json;
mod text;

use crate::Ending;
use crate::cli::{Format, VerifyArgs};
use crate::host::jobs;
use crate::interrupt;
use crate::output::Output;
use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wakelab_verify::{
    Count, FileReport, KINDS, Noticed, ReadError, Recording, mutate, unknown_kind, verify,
};

/// A file whose kind has no comparison.
struct Skipped {
    file: PathBuf,
    kind: String,
}

/// What is reported of a comparison.
struct Report {
    /// Files in the order of the command line.
    files: Vec<FileReport>,
    skipped: Vec<Skipped>,
    /// How many disagreements to show.
    show: usize,
}

impl Report {
    fn counted(&self) -> Count {
        let mut count = Count::default();
        self.files.iter().for_each(|file| count.merge(file.counted));
        count
    }

    /// Per cent of the records that can be told and are not racy; none if there is no such record.
    fn agree_pct(&self) -> Option<f64> {
        percent(self.counted())
    }
}

fn percent(count: Count) -> Option<f64> {
    (count.all() > 0).then(|| 100.0 * count.agree as f64 / count.all() as f64)
}

/// Compares recordings, or breaks rules under them.
///
/// # Errors
/// If one of them cannot be read, or is of a kind that is not known.
pub fn recordings(args: &VerifyArgs) -> anyhow::Result<Ending> {
    let output = Output::to(args.output.clone())?;
    let interrupted = interrupt::catch()?;
    let (files, skipped) = known(args)?;
    let ending = if args.mutate {
        let noticed = each(&files, args, &interrupted, mutate)?;
        output.write(&mutations(&noticed, args)?)?;
        Ending::Done
    } else {
        let compare = |recording, stop: &dyn Fn() -> bool| verify(recording, args.show, stop);
        let report = Report {
            files: each(&files, args, &interrupted, compare)?,
            skipped,
            show: args.show,
        };
        output.write(&comparison(&report, args.format)?)?;
        match args.min {
            Some(min) if report.agree_pct().is_none_or(|pct| pct < min) => Ending::Failed,
            _ => Ending::Done,
        }
    };
    Ok(if interrupted.load(Ordering::Relaxed) {
        eprintln!("interrupted: the files that were complete are reported");
        Ending::Interrupted
    } else {
        ending
    })
}

/// The files that can be compared, and those that cannot, which must be asked for.
fn known(args: &VerifyArgs) -> anyhow::Result<(Vec<&Path>, Vec<Skipped>)> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for file in &args.files {
        match unknown_kind(file)? {
            None => files.push(file.as_path()),
            Some(kind) if args.skip_unknown => skipped.push(Skipped {
                file: file.clone(),
                kind,
            }),
            Some(kind) => {
                let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                bail!(
                    "{}: the model has no comparison for records of kind '{kind}', only for decisions and {}; \
                     --skip-unknown leaves such files out",
                    file.display(),
                    names.join(", ")
                );
            }
        }
    }
    Ok((files, skipped))
}

/// Works through all files, some at the same time; what comes of them is in their order, without
/// those that an interruption cut short. Of several errors it is the first file's.
fn each<T: Send>(
    files: &[&Path],
    args: &VerifyArgs,
    interrupted: &AtomicBool,
    work: impl Fn(Recording, &dyn Fn() -> bool) -> Result<Option<T>, ReadError> + Sync,
) -> anyhow::Result<Vec<T>> {
    let progress = progress_bar(files.len());
    let stop = || interrupted.load(Ordering::Relaxed);
    let one = |file: &&Path| {
        let result = Recording::open(file).and_then(|recording| work(recording, &stop));
        progress.inc(1);
        result
    };
    let threads = jobs(args.jobs);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let results: Vec<Result<Option<T>, ReadError>> =
        pool.install(|| files.par_iter().with_max_len(1).map(one).collect());
    progress.finish_and_clear();
    let mut complete = Vec::with_capacity(results.len());
    for result in results {
        complete.extend(result?);
    }
    Ok(complete)
}

/// Shown on a terminal only.
fn progress_bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

fn comparison(report: &Report, format: Format) -> anyhow::Result<String> {
    Ok(match format {
        Format::Text => text::comparison(report),
        Format::Json => json::comparison(report)?,
        Format::Csv => csv::comparison(report),
    })
}

fn mutations(files: &[Noticed], args: &VerifyArgs) -> anyhow::Result<String> {
    let mut all = Noticed::none();
    files.iter().for_each(|noticed| all.merge(noticed.clone()));
    Ok(match args.format {
        Format::Text => text::mutations(&all),
        Format::Json => json::mutations(&all)?,
        Format::Csv => csv::mutations(&all),
    })
}
