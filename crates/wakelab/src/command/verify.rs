//! `wakelab verify`: recorded calls of a real kernel, made again.

mod csv;
mod json;
mod text;

use crate::Ending;
use crate::cli::{Format, VerifyArgs};
use crate::complain::complain;
use crate::host::jobs;
use crate::interrupt;
use crate::output::Output;
use anyhow::bail;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use wakelab_verify::{
    Count, FileReport, KINDS, Noticed, Problem, ReadError, Recording, mutate, verify,
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
    /// Whether an interruption left files out.
    interrupted: bool,
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
        let noticed = each(files, args, &interrupted, mutate)?;
        let stopped = interrupted.load(Ordering::Relaxed);
        output.write(&mutations(&noticed, args.format, stopped)?)?;
        Ending::Done
    } else {
        let compare = |recording, stop: &dyn Fn() -> bool| verify(recording, args.show, stop);
        let files = each(files, args, &interrupted, compare)?;
        let report = Report {
            files,
            skipped,
            show: args.show,
            interrupted: interrupted.load(Ordering::Relaxed),
        };
        output.write(&comparison(&report, args.format)?)?;
        match args.min {
            Some(min) if report.agree_pct().is_none_or(|pct| pct < min) => Ending::Failed,
            _ => Ending::Done,
        }
    };
    Ok(if interrupted.load(Ordering::Relaxed) {
        complain("interrupted: the files that were complete are reported");
        Ending::Interrupted
    } else {
        ending
    })
}

/// What is to be compared.
enum Input<'a> {
    /// A file, opened again when its turn comes: there may be more than can be open at once.
    File(&'a Path),
    /// A pipe or the like, which can be read only once.
    Stream(Box<Recording>),
}

impl Input<'_> {
    fn open(self) -> Result<Recording, ReadError> {
        match self {
            Input::File(file) => Recording::open(file),
            Input::Stream(recording) => Ok(*recording),
        }
    }
}

/// The files that can be compared, and those that cannot, which must be asked for.
fn known(args: &VerifyArgs) -> anyhow::Result<(Vec<Input<'_>>, Vec<Skipped>)> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for file in &args.files {
        match Recording::open(file) {
            Ok(_) if file.is_file() => files.push(Input::File(file)),
            Ok(recording) => files.push(Input::Stream(Box::new(recording))),
            Err(ReadError {
                problem: Problem::UnknownKind(kind),
                ..
            }) if args.skip_unknown => skipped.push(Skipped {
                file: file.clone(),
                kind,
            }),
            Err(ReadError {
                problem: problem @ Problem::UnknownKind(_),
                ..
            }) => {
                let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                bail!(
                    "{}: {problem}, only for decisions and {}; \
                     --skip-unknown leaves such files out",
                    file.display(),
                    names.join(", ")
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok((files, skipped))
}

/// Works through all files, some at the same time; what comes of them is in their order, without
/// those that an interruption cut short. Of several errors it is the first file's.
fn each<T: Send>(
    files: Vec<Input<'_>>,
    args: &VerifyArgs,
    interrupted: &AtomicBool,
    work: impl Fn(Recording, &dyn Fn() -> bool) -> Result<Option<T>, ReadError> + Sync,
) -> anyhow::Result<Vec<T>> {
    let progress = progress_bar(files.len());
    let stop = || interrupted.load(Ordering::Relaxed);
    let threads = jobs(args.jobs, files.len());
    let one = |file: Input<'_>| {
        let result = file.open().and_then(|recording| work(recording, &stop));
        progress.inc(1);
        result
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()?;
    let results: Vec<Result<Option<T>, ReadError>> =
        pool.install(|| files.into_par_iter().with_max_len(1).map(one).collect());
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

fn mutations(files: &[Noticed], format: Format, interrupted: bool) -> anyhow::Result<String> {
    let mut all = Noticed::none();
    files.iter().for_each(|noticed| all.merge(noticed.clone()));
    Ok(match format {
        Format::Text => text::mutations(&all),
        Format::Json => json::mutations(&all, interrupted)?,
        Format::Csv => csv::mutations(&all),
    })
}
