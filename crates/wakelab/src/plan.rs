//! What is to be run: an experiment or a comparison with every choice made.

use crate::costs::{CostPoint, figures, machine_at};
use crate::experiment::{Experiment, PlacedSetting, Variant};
use crate::text_file;
use anyhow::Context as _;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use wakelab_machine::import::is_synthetic;
use wakelab_machine::{Band, DomainRules, Import, Machine, MachineError, SchedTopology, presets};
use wakelab_report::precision::FIRST_RUNS;
use wakelab_report::sensitivity::FACTORS;
use wakelab_report::{Published, Setup};
use wakelab_sched::rules::Release;
use wakelab_workload::{Companion, Grouping, Workload};

/// Everything that decides the result.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a report says was run.
    pub setup: Setup,
    /// The machine.
    pub machine: Machine,
    /// The kernel release.
    pub release: Release,
    /// How tasks are grouped.
    pub grouping: Grouping,
    /// Settings of scheduling domains of every variant.
    pub domains: Vec<PlacedSetting>,
    /// The variants, the baseline first.
    pub variants: Vec<Variant>,
    /// The workload of each variant with what runs beside it, already scaled.
    pub workloads: Vec<Workload>,
    /// The command line of each variant's workload at full length, if it is not the experiment's.
    pub own_workloads: Vec<Option<String>>,
    /// Whether SMT is on, for each variant.
    pub smt: Vec<bool>,
    /// What was published.
    pub published: Published,
    /// The costs to run at, the machine's own first.
    pub points: Vec<CostPoint>,
    /// How near to know the changes, if more runs are to be made until then.
    pub precision: Option<PrecisionAsked>,
}

/// Runs until the changes are known closely enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrecisionAsked {
    /// Half of the width of a 95 % interval, in per cent points.
    pub half_width_pp: f64,
    /// The most runs of each variant.
    pub max_runs: usize,
}

fn set_domains(topology: &mut SchedTopology, settings: &[PlacedSetting]) -> anyhow::Result<()> {
    settings.iter().try_for_each(|placed| {
        let set = topology.set(&placed.setting);
        set.with_context(|| placed.at.clone())
    })
}

/// Settings as words.
pub fn words_of(settings: &[PlacedSetting]) -> Vec<String> {
    let words = settings.iter().map(|placed| placed.setting.to_string());
    words.collect()
}

/// The choices that the command line makes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// What runs beside every variant's workload, and what it says itself.
    pub with: Vec<Companion>,
    /// What loops are multiplied by.
    pub scale: Option<f64>,
    /// Runs of each variant.
    pub runs: Option<u32>,
    /// The seed.
    pub seed: u64,
    /// How tasks are grouped.
    pub grouping: Option<Grouping>,
    /// The metrics that the conclusion is about; none for the experiment's.
    pub metrics: Vec<&'static str>,
    /// Whether to make more runs until the changes are known closely enough.
    pub precision: Option<PrecisionAsked>,
    /// Whether SMT is on in all variants.
    pub smt: Option<bool>,
    /// Whether to repeat at the ends of the cost ranges.
    pub band: bool,
    /// Whether to repeat with each cost figure at half and at double.
    pub sensitivity: bool,
}

impl Plan {
    /// An experiment on its machine, with the command line's choices before the experiment's.
    ///
    /// # Errors
    /// If its workloads cannot be run there.
    pub fn new(experiment: Experiment, machine: Machine, choices: Choices) -> anyhow::Result<Plan> {
        let scale = choices.scale.unwrap_or(experiment.scale);
        let grouping = choices.grouping.unwrap_or(experiment.grouping);
        let full = |workload: &Option<Workload>, with: &Option<Vec<Companion>>| {
            let workload = workload.as_ref().unwrap_or(&experiment.workload);
            let with = with.as_ref().unwrap_or(&experiment.with);
            workload.with(with)?.with(&choices.with)
        };
        let of_experiment = full(&None, &None)?;
        let of_variant = |variant: &Variant| full(&variant.workload, &variant.with);
        let of_variants: Vec<Workload> = experiment
            .variants
            .iter()
            .map(of_variant)
            .collect::<Result<_, _>>()?;
        let smt = |variant: &Variant| variant.smt.unwrap_or(experiment.smt);
        let smt = |variant: &Variant| choices.smt.unwrap_or_else(|| smt(variant));
        let smt: Vec<bool> = experiment.variants.iter().map(smt).collect();
        for (workload, smt) in of_variants.iter().zip(&smt) {
            workload.check(&with_smt(machine.clone(), *smt))?;
            workload.check_release(experiment.release)?;
        }
        let own = |(variant, workload): (&Variant, &Workload)| {
            let is_own = variant.workload.is_some() || variant.with.is_some();
            is_own.then(|| workload.command_line())
        };
        let own_workloads = experiment
            .variants
            .iter()
            .zip(&of_variants)
            .map(own)
            .collect();
        let scaled = |workload: &Workload| match scale {
            1.0 => workload.clone(),
            scale => workload.scaled(scale),
        };
        let setup = Setup {
            experiment: experiment.name,
            title: experiment.title,
            machine: machine.name.clone(),
            kernel: experiment.release.name().to_owned(),
            grouping: grouping_name(grouping),
            features: experiment.words,
            domains: words_of(&experiment.domains),
            workload: of_experiment.command_line(),
            scale,
            runs_asked: runs_asked(&choices, experiment.runs),
            seed: choices.seed,
            main_metrics: if choices.metrics.is_empty() {
                vec![experiment.metric]
            } else {
                choices.metrics.clone()
            },
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let points = points(&machine, &choices);
        Ok(Plan {
            setup,
            machine,
            release: experiment.release,
            grouping,
            domains: experiment.domains,
            variants: experiment.variants,
            workloads: of_variants.iter().map(scaled).collect(),
            own_workloads,
            smt,
            published: experiment.published,
            points,
            precision: choices.precision,
        })
    }

    /// The machine at each point, as each variant has it.
    pub fn machines(&self) -> Vec<Vec<Arc<Machine>>> {
        let at = |point: &CostPoint| {
            let machine = machine_at(&self.machine, point);
            let both = self.with_and_without_smt(|smt| Arc::new(with_smt(machine.clone(), smt)));
            self.of_variants(&both)
        };
        self.points.iter().map(at).collect()
    }

    /// Something for SMT off and on, made only if a variant has it so.
    fn with_and_without_smt<T>(&self, make: impl Fn(bool) -> T) -> [Option<T>; 2] {
        [false, true].map(|smt| self.smt.contains(&smt).then(|| make(smt)))
    }

    fn of_variants<T: Clone>(&self, both: &[Option<T>; 2]) -> Vec<T> {
        let of = |smt: &bool| both[usize::from(*smt)].clone();
        self.smt.iter().filter_map(of).collect()
    }

    /// The machine's scheduling domains as each variant has them; costs do not change them.
    ///
    /// # Errors
    /// If it has no domain of a name that is set.
    pub fn topologies(&self) -> anyhow::Result<Vec<Arc<SchedTopology>>> {
        let rules = domain_rules(self.release);
        let both = self.with_and_without_smt(|smt| {
            let machine = with_smt(self.machine.clone(), smt);
            let mut topology = SchedTopology::build(&machine, &rules);
            set_domains(&mut topology, &self.domains).map(|()| Arc::new(topology))
        });
        let [off, on] = both.map(Option::transpose);
        let shared = self.of_variants(&[off?, on?]);
        let of_variant = |(variant, topology): (&Variant, Arc<SchedTopology>)| {
            if variant.domains.is_empty() {
                return Ok(topology);
            }
            let mut own = SchedTopology::clone(&topology);
            set_domains(&mut own, &variant.domains)?;
            Ok(Arc::new(own))
        };
        self.variants.iter().zip(shared).map(of_variant).collect()
    }

    /// The most runs that could be made, all variants and points counted.
    pub fn most_jobs(&self) -> usize {
        let runs = self
            .precision
            .map_or(self.setup.runs_asked, |asked| asked.max_runs);
        self.points.len() * self.variants.len() * runs
    }

    /// What the user should know before trusting the result.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        let release = self.release.name();
        let of_variants = self.variants.iter().flat_map(|variant| &variant.words);
        for word in self.setup.features.iter().chain(of_variants) {
            let reason = not_acted(self.release, word);
            warnings
                .extend(reason.map(|reason| format!("the model does not act on {word}: {reason}")));
        }
        for (variant, own) in self.variants.iter().zip(&self.own_workloads) {
            let same = variant.features == self.variants[0].features;
            let own = !variant.domains.is_empty() || own.is_some() || variant.smt.is_some();
            if !variant.words.is_empty() && same && !own {
                warnings.push(format!(
                    "{} is the default of {release}: the variant is the baseline",
                    variant.name
                ));
            }
        }
        for workload in &self.workloads {
            warnings.extend(workload.warnings());
        }
        // A word may stand in several variants.
        let mut seen = BTreeSet::new();
        warnings.retain(|warning| seen.insert(warning.clone()));
        warnings
    }
}

/// How many runs of each variant come first.
fn runs_asked(choices: &Choices, of_experiment: u32) -> usize {
    let runs = choices.runs.unwrap_or(of_experiment) as usize;
    match choices.precision {
        None => runs,
        Some(asked) => runs.max(FIRST_RUNS).min(asked.max_runs),
    }
}

/// The machine's own costs, then the ends of their ranges, then each figure at half and double.
fn points(machine: &Machine, choices: &Choices) -> Vec<CostPoint> {
    let mut points = vec![CostPoint::At(Band::Nominal)];
    if choices.band {
        points.extend([Band::Low, Band::High].map(CostPoint::At));
    }
    if choices.sensitivity {
        for figure in figures(machine) {
            points.extend(FACTORS.map(|factor| CostPoint::Moved {
                name: figure.name.clone(),
                factor,
            }));
        }
    }
    points
}

fn with_smt(machine: Machine, on: bool) -> Machine {
    if on { machine } else { machine.without_smt() }
}

/// Why the model does not act on a feature word; none if it does.
fn not_acted(release: Release, word: &str) -> Option<&'static str> {
    let name = word.split('=').next().unwrap_or(word);
    let name = name.strip_prefix("NO_").unwrap_or(name);
    wakelab_sched::Feat::from_name(name).and_then(|feat| feat.word().not_acted(release))
}

/// The rules by which a release builds scheduling domains.
pub fn domain_rules(release: Release) -> DomainRules {
    let (major, minor) = release.number();
    DomainRules::for_release(major, minor)
}

/// What reports call it.
pub fn grouping_name(grouping: Grouping) -> String {
    match grouping {
        Grouping::Autogroup => "autogroup".to_owned(),
        Grouping::Root => "root".to_owned(),
        Grouping::Cgroup { shares } => format!("cgroup shares {shares}"),
    }
}

/// The machine that the word names: `host`, a file `*.toml`, a preset, or what can be imported.
///
/// # Errors
/// If there is no such machine or its description is bad.
pub fn find_machine(word: &str) -> Result<Machine, MachineError> {
    if word == "host" {
        return Machine::from_sysfs(Path::new("/sys"));
    }
    let path = Path::new(word);
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return Machine::from_toml(&text_file::read(word)?, word);
    }
    let is_preset = presets().iter().any(|(name, _)| *name == word);
    let is_other = path.exists() || is_synthetic(word) || word.contains('/');
    if is_preset || !is_other {
        return Machine::preset(word);
    }
    Ok(Import::read(word)?.machine)
}
