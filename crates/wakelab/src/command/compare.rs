//! `wakelab compare`: an experiment from the command line.

use super::run::choices;
use crate::cli::CompareArgs;
use crate::experiment::{DEFAULT_METRIC, Experiment, Variant, release};
use crate::plan::{Plan, find_machine};
use anyhow::{Context as _, anyhow, bail};
use wakelab_report::Published;
use wakelab_sched::features::FeatureSet;
use wakelab_sched::rules::Release;
use wakelab_workload::{Grouping, Workload};

/// The most features of a factorial comparison: 256 variants.
const MAX_FACTORIAL: usize = 8;

/// The comparison that the arguments describe.
///
/// # Errors
/// If one of them is not known.
pub fn plan(args: &CompareArgs) -> anyhow::Result<Plan> {
    let release = release(&args.kernel).map_err(|message| anyhow!(message))?;
    let experiment = Experiment {
        name: "compare".to_owned(),
        title: args.features.join(", "),
        source: String::new(),
        notes: String::new(),
        metric: DEFAULT_METRIC,
        machine: args.machine.clone(),
        machine_at: "--machine".to_owned(),
        release,
        words: Vec::new(),
        workload: Workload::parse(&args.workload).context("--workload")?,
        with: Vec::new(),
        grouping: Grouping::Autogroup,
        variants: variants(release, &args.features, args.factorial)?,
        runs: 5,
        scale: 1.0,
        published: Published::default(),
    };
    let machine = find_machine(&args.machine).context(experiment.machine_at.clone())?;
    Plan::new(experiment, machine, choices(&args.options)?)
}

/// The baseline, then each argument alone; with `factorial` all their combinations, counted in
/// binary with the first argument as the lowest digit.
fn variants(
    release: Release,
    arguments: &[String],
    factorial: bool,
) -> anyhow::Result<Vec<Variant>> {
    if factorial && arguments.len() > MAX_FACTORIAL {
        bail!(
            "--factorial takes at most {MAX_FACTORIAL} features, {} are given",
            arguments.len()
        );
    }
    let base = FeatureSet::defaults(release);
    let mut variants = vec![Variant::baseline(base)];
    for argument in arguments {
        add(&mut variants, Variant::parse(release, base, argument)?)?;
    }
    if factorial {
        for combination in 1..1usize << arguments.len() {
            if combination.is_power_of_two() {
                continue;
            }
            let chosen = arguments
                .iter()
                .enumerate()
                .filter(|(place, _)| combination >> place & 1 == 1);
            let words: Vec<&str> = chosen.map(|(_, argument)| argument.as_str()).collect();
            add(
                &mut variants,
                Variant::parse(release, base, &words.join(" "))?,
            )?;
        }
    }
    Ok(variants)
}

fn add(variants: &mut Vec<Variant>, variant: Variant) -> anyhow::Result<()> {
    if variants.iter().any(|other| other.name == variant.name) {
        bail!("the variant '{}' is given twice", variant.name);
    }
    variants.push(variant);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str], factorial: bool) -> anyhow::Result<Vec<String>> {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        let variants = variants(Release::V6_5, &arguments, factorial)?;
        Ok(variants.into_iter().map(|variant| variant.name).collect())
    }

    #[test]
    fn each_word_stands_against_the_baseline() {
        assert_eq!(
            names(&["NO_SIS_UTIL", "NO_WA_IDLE"], false).unwrap(),
            ["baseline", "NO_SIS_UTIL", "NO_WA_IDLE"]
        );
    }

    #[test]
    fn a_factorial_has_every_combination_once() {
        let names = names(&["NO_SIS_UTIL", "NO_WA_IDLE", "NO_WA_BIAS"], true).unwrap();
        assert_eq!(names.len(), 8);
        assert_eq!(
            names[4..],
            [
                "NO_SIS_UTIL NO_WA_IDLE",
                "NO_SIS_UTIL NO_WA_BIAS",
                "NO_WA_IDLE NO_WA_BIAS",
                "NO_SIS_UTIL NO_WA_IDLE NO_WA_BIAS",
            ]
        );
    }

    #[test]
    fn what_is_given_twice_or_not_known_is_refused() {
        assert!(names(&["NO_SIS_UTIL", "NO_SIS_UTIL"], false).is_err());
        assert!(names(&["NO_SUCH_WORD"], false).is_err());
        assert!(names(&["baseline"], false).is_err());
        assert!(names(&["A"; 9], true).is_err());
    }
}
