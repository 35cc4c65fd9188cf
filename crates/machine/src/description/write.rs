//! Writing a machine's description, so that it reads as the same machine.

use crate::layout::costs_like;
use crate::mask::CpuMask;
use crate::topology::{Arch, Cpu, Machine};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use toml::Value;

impl Machine {
    /// The description of a machine that a reader of sysfs or hwloc gave: its costs are those of a
    /// preset, so `like` names it. CPUs are given by a regular shape where there is one, else one by
    /// one.
    pub(crate) fn describe(&self) -> String {
        let head = self.head();
        let tail = self.idle_and_costs();
        let whole = |places: String| format!("{head}\n{places}\n{tail}");
        let shape = self.shape().map(whole).filter(|text| {
            let read = Machine::from_toml(text, &self.name);
            read.is_ok_and(|read| {
                read.cpus == self.cpus && read.node_distance == self.node_distance
            })
        });
        shape.unwrap_or_else(|| whole(self.places()))
    }

    fn head(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        format!(
            "name = {}\ndescription = {}\narch = \"{}\"\nhz = {}\nnode_reclaim_distance = {}\n",
            quoted(&self.name),
            quoted(&self.description),
            self.arch,
            self.hz,
            self.node_reclaim_distance
        )
    }

    /// The shape that the machine has if it is regular. Whether it is, only reading it can tell.
    fn shape(&self) -> Option<String> {
        let first = self.cpus.first()?;
        let packages = self.npackages();
        let dies = self.count_of(|cpu| cpu.die);
        let llcs = self.nllcs();
        let within =
            |inner: usize, outer: usize| inner.is_multiple_of(outer).then(|| inner / outer);
        let mut text = format!("[topology]\npackages = {packages}\n");
        let mut line = |key: &str, count: usize| {
            let _ = writeln!(text, "{key} = {count}");
        };
        let dies_per_package = within(dies, packages)?;
        if dies_per_package > 1 {
            line("dies_per_package", dies_per_package);
        }
        line("llcs_per_die", within(llcs, dies)?);
        line("cores_per_llc", within(self.ncores(), llcs)?);
        if first.cluster.is_some() {
            let clusters = self.count_of(|cpu| cpu.cluster);
            line("cores_per_cluster", within(self.ncores(), clusters)?);
        }
        let threads = self.threads_per_core();
        line("threads_per_core", threads);
        let nodes_per_package = within(self.node_distance.len(), packages)?;
        if nodes_per_package > 1 {
            line("nodes_per_package", nodes_per_package);
        }
        let sibling = self.siblings(first.id).next(1);
        let numbering = match (sibling, self.arch) {
            (Some(cpu), _) if cpu.0 == 1 => "consecutive",
            (None, Arch::Power | Arch::Arm64) => "consecutive",
            _ => "siblings-last",
        };
        let _ = writeln!(text, "numbering = \"{numbering}\"");
        text += &self.distances_and_exceptions();
        Some(text)
    }

    fn places(&self) -> String {
        let mut text = "[places]\n".to_owned();
        let mut lists = |key: &str, masks: Vec<CpuMask>| {
            let _ = writeln!(text, "{key} = [");
            for mask in masks {
                let _ = writeln!(text, "  \"{mask}\",");
            }
            text += "]\n";
        };
        lists("cores", self.masks(|cpu| cpu.core));
        if self.cpus.iter().all(|cpu| cpu.cluster.is_some()) {
            lists("clusters", self.masks(|cpu| cpu.cluster));
        }
        lists("llcs", self.masks(|cpu| cpu.llc));
        if self.masks(|cpu| cpu.die) != self.masks(|cpu| cpu.package) {
            lists("dies", self.masks(|cpu| cpu.die));
        }
        lists("packages", self.masks(|cpu| cpu.package));
        if self.node_distance.len() > 1 {
            lists("nodes", self.masks(|cpu| cpu.node));
        }
        text + &self.distances_and_exceptions()
    }

    /// The CPUs of each place of a kind, in the order of the places' numbers.
    fn masks<K: Ord>(&self, place: impl Fn(&Cpu) -> K) -> Vec<CpuMask> {
        let mut masks = BTreeMap::<K, CpuMask>::new();
        for cpu in &self.cpus {
            masks.entry(place(cpu)).or_default().set(cpu.id);
        }
        masks.into_values().collect()
    }

    fn distances_and_exceptions(&self) -> String {
        let mut text = String::new();
        if self.node_distance.len() > 1 {
            text += "node_distance = [\n";
            for row in &self.node_distance {
                let _ = writeln!(text, "  {row:?},");
            }
            text += "]\n";
        }
        let isolated = self.mask_where(|cpu| cpu.isolated);
        if !isolated.is_empty() {
            let _ = writeln!(text, "isolated = \"{isolated}\"");
        }
        let mut capacities = BTreeMap::<u32, CpuMask>::new();
        let smaller = self.cpus.iter().filter(|cpu| cpu.capacity != 1024);
        smaller.for_each(|cpu| capacities.entry(cpu.capacity).or_default().set(cpu.id));
        if !capacities.is_empty() {
            text += "capacity = [\n";
            for (capacity, cpus) in capacities {
                let _ = writeln!(text, "  {{ cpus = \"{cpus}\", capacity = {capacity} }},");
            }
            text += "]\n";
        }
        text
    }

    fn idle_and_costs(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut text = String::new();
        for state in &self.idle_states {
            let us = |ns: crate::ids::Ns| ns.0 as f64 / 1000.0;
            let _ = write!(
                text,
                "[[idle_state]]\nname = {}\nexit_latency_us = {:?}\ntarget_residency_us = {:?}\n\
                 polling = {}\nsource = {}\n\n",
                quoted(&state.name),
                us(state.exit_latency),
                us(state.target_residency),
                state.polling,
                quoted(&state.source)
            );
        }
        let like = costs_like(self.arch, &self.cpus);
        let _ = write!(text, "[costs]\nlike = \"{like}\"\n");
        let lent = Machine::preset(like).map_or(0, |preset| preset.costs.smt_throughput.len());
        if self.costs.smt_throughput.len() > lent {
            text += "smt_throughput = [\n";
            for figure in &self.costs.smt_throughput {
                let _ = writeln!(
                    text,
                    "  {{ value = {:?}, low = {:?}, high = {:?}, source = {} }},",
                    figure.value,
                    figure.low,
                    figure.high,
                    quoted(&figure.source)
                );
            }
            text += "]\n";
        }
        text
    }
}
