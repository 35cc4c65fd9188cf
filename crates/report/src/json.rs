//! A report as JSON.

use crate::factorial::Factorial;
use crate::model::{Comparison, Host, Report, VariantReport};
use crate::precision::Precision;
use crate::sensitivity::Sensitivity;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    experiment: &'a str,
    machine: &'a str,
    kernel: &'a str,
    grouping: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    features: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    domains: &'a [String],
    workload: &'a str,
    scale: f64,
    runs: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_asked: Option<usize>,
    seed: u64,
    main_metrics: &'a [&'static str],
    version: &'a str,
    variants: &'a [VariantReport],
    comparisons: &'a [Comparison],
    #[serde(skip_serializing_if = "Option::is_none")]
    factorial: Option<&'a Factorial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<&'a Precision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<&'a Sensitivity>,
    host: &'a Host,
}

/// The report as one indented JSON object and a newline. Everything but `host` depends on the inputs
/// and the seed alone. `features` and `domains` are there only if all variants have some, `runs_asked` only if the
/// report was interrupted, `factorial` only if the variants are all combinations of some features,
/// `precision` and `sensitivity` only if they were asked for; a value that is not a number is `null`.
///
/// # Errors
/// None of the report's values can fail to be written; the type is serde_json's.
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    let setup = &report.setup;
    let document = Document {
        experiment: &setup.experiment,
        machine: &setup.machine,
        kernel: &setup.kernel,
        grouping: &setup.grouping,
        features: &setup.features,
        domains: &setup.domains,
        workload: &setup.workload,
        scale: setup.scale,
        runs: report.runs,
        runs_asked: report.is_partial().then_some(setup.runs_asked),
        seed: setup.seed,
        main_metrics: &setup.main_metrics,
        version: &setup.version,
        variants: &report.variants,
        comparisons: &report.comparisons,
        factorial: report.factorial.as_ref(),
        precision: report.precision.as_ref(),
        sensitivity: report.sensitivity.as_ref(),
        host: &report.host,
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
