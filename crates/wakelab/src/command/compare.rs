//! `wakelab compare`: an experiment from the command line.

use super::run::choices;
use crate::cli::CompareArgs;
use crate::experiment::{DEFAULT_METRIC, Experiment, PlacedSetting, Variant, release};
use crate::plan::{Plan, find_machine, words_of};
use anyhow::{Context as _, anyhow, bail};
use wakelab_machine::DomainSetting;
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
    let arguments = arguments(args);
    let experiment = Experiment {
        name: "compare".to_owned(),
        title: names(&arguments).join(", "),
        source: String::new(),
        notes: String::new(),
        metric: DEFAULT_METRIC,
        machine: args.machine.clone(),
        machine_at: "--machine".to_owned(),
        release,
        words: Vec::new(),
        domains: Vec::new(),
        workload: Workload::parse(&args.workload).context("--workload")?,
        with: Vec::new(),
        smt: true,
        grouping: Grouping::Autogroup,
        variants: variants(release, &arguments, args.factorial)?,
        runs: 5,
        scale: 1.0,
        published: Published::default(),
    };
    let machine = find_machine(&args.machine).context(experiment.machine_at.clone())?;
    Plan::new(experiment, machine, choices(&args.options)?)
}

/// What is compared with the baseline.
enum Argument<'a> {
    /// Feature words.
    Words(&'a str),
    /// A setting of scheduling domains.
    Domain(&'a DomainSetting),
}

fn arguments(args: &CompareArgs) -> Vec<Argument<'_>> {
    let words = args.features.iter().map(|words| Argument::Words(words));
    words
        .chain(args.domain.iter().map(Argument::Domain))
        .collect()
}

fn names(arguments: &[Argument<'_>]) -> Vec<String> {
    let name = |argument: &Argument<'_>| match argument {
        Argument::Words(words) => (*words).to_owned(),
        Argument::Domain(setting) => setting.to_string(),
    };
    arguments.iter().map(name).collect()
}

/// The variant that has all of these.
fn variant<'a>(
    release: Release,
    arguments: impl Iterator<Item = &'a Argument<'a>>,
) -> anyhow::Result<Variant> {
    let (mut words, mut domains) = (Vec::new(), Vec::new());
    for argument in arguments {
        match argument {
            Argument::Words(given) => words.push(*given),
            Argument::Domain(setting) => domains.push(PlacedSetting {
                setting: (*setting).clone(),
                at: "--domain".to_owned(),
            }),
        }
    }
    let words = words.join(" ");
    if words.trim().is_empty() && domains.is_empty() {
        bail!(
            "an argument is empty: it takes feature words, such as NO_SIS_UTIL; the baseline is compared with anyway"
        );
    }
    let base = FeatureSet::defaults(release);
    let mut variant = Variant::parse(release, base, &words)?;
    if !domains.is_empty() {
        let own = words_of(&domains).join(" ");
        variant.name = match words.is_empty() {
            true => own,
            false => format!("{} {own}", variant.name),
        };
        variant.domains = domains;
    }
    Ok(variant)
}

/// The baseline, then each argument alone; with `factorial` all their combinations, counted in
/// binary with the first argument as the lowest digit.
fn variants(
    release: Release,
    arguments: &[Argument<'_>],
    factorial: bool,
) -> anyhow::Result<Vec<Variant>> {
    if factorial && arguments.len() > MAX_FACTORIAL {
        bail!(
            "--factorial takes at most {MAX_FACTORIAL} features, {} are given",
            arguments.len()
        );
    }
    let mut variants = vec![Variant::baseline(FeatureSet::defaults(release))];
    for argument in arguments {
        add(&mut variants, variant(release, [argument].into_iter())?)?;
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
            let chosen = chosen.map(|(_, argument)| argument);
            add(&mut variants, variant(release, chosen)?)?;
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
        let arguments: Vec<Argument<'_>> = arguments
            .iter()
            .map(|argument| Argument::Words(argument))
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
    fn a_domains_setting_is_a_variant_like_a_feature() {
        let setting: DomainSetting = "MC:cache_nice_tries=7".parse().unwrap();
        let arguments = [Argument::Words("NO_WA_IDLE"), Argument::Domain(&setting)];
        let variants = variants(Release::V6_12, &arguments, true).unwrap();
        let own: Vec<_> = variants
            .iter()
            .map(|v| (v.name.as_str(), v.domains.len()))
            .collect();
        let setting = "MC:cache_nice_tries=7";
        let both = format!("NO_WA_IDLE {setting}");
        assert_eq!(
            own,
            [("baseline", 0), ("NO_WA_IDLE", 0), (setting, 1), (&both, 1)]
        );
        assert_eq!(variants[2].features, variants[0].features);
        assert_eq!(variants[3].features, variants[1].features);
    }

    #[test]
    fn what_is_given_twice_or_not_known_is_refused() {
        assert!(names(&["NO_SIS_UTIL", "NO_SIS_UTIL"], false).is_err());
        assert!(names(&["NO_SUCH_WORD"], false).is_err());
        assert!(names(&["baseline"], false).is_err());
        assert!(names(&["A"; 9], true).is_err());
    }

    #[test]
    fn what_says_nothing_or_two_things_at_once_is_refused() {
        let refused = |arguments: &[&str], factorial| {
            let error = names(arguments, factorial).expect_err("it is refused");
            error.to_string()
        };
        for empty in ["", "  "] {
            assert!(refused(&[empty], false).starts_with("an argument is empty"));
        }
        let both = "'NO_SIS_UTIL' and 'SIS_UTIL' stand in one variant: it is on or off";
        assert_eq!(refused(&["NO_SIS_UTIL SIS_UTIL"], false), both);
        assert_eq!(refused(&["NO_SIS_UTIL", "SIS_UTIL"], true), both);
        assert!(names(&["NO_SIS_UTIL", "SIS_UTIL"], false).is_ok());
        let threshold = "'WAKEUP_BIAS_PREV_IDLE=3' and 'NO_WAKEUP_BIAS_PREV_IDLE' stand in one \
             variant: it is on or off";
        let words = ["WAKEUP_BIAS_PREV_IDLE=3 NO_WAKEUP_BIAS_PREV_IDLE"];
        assert_eq!(refused(&words, false), threshold);
    }
}
