//! What things cost in time on a machine. Each figure has a source and a range, and none was fitted
//! to an experiment: a cost belongs to the machine and serves every experiment on it.

use crate::topology::Distance;
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// A cost with the range within which sources disagree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The value used by default. The unit ends the field's name in [`Costs`].
    pub value: f64,
    /// The low end of the range.
    pub low: f64,
    /// The high end of the range.
    pub high: f64,
    /// Where it comes from. Begins with `stand-in:` if nothing was published for this machine.
    pub source: String,
}

/// Which end of the ranges to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Band {
    /// Every figure at its low end.
    Low,
    /// Every figure at its value.
    Nominal,
    /// Every figure at its high end.
    High,
}

/// A figure as a description writes it: the ends of the range are the value where left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "{ value = ..., source = \"...\" }")]
pub(crate) struct RawFigure {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub source: String,
}

impl RawFigure {
    /// The figure, or what is wrong with it.
    pub(crate) fn check(&self) -> Result<Figure, &'static str> {
        let (low, high) = (
            self.low.unwrap_or(self.value),
            self.high.unwrap_or(self.value),
        );
        if ![low, self.value, high]
            .iter()
            .all(|n| n.is_finite() && (0.0..=1e9).contains(n))
        {
            return Err("numbers from 0 to 1e9");
        }
        if low > self.value || self.value > high {
            return Err("low <= value <= high");
        }
        if self.source.trim().is_empty() {
            return Err("a source that is not empty");
        }
        Ok(Figure {
            value: self.value,
            low,
            high,
            source: self.source.clone(),
        })
    }
}

impl Figure {
    /// The figure's number at this end of its range.
    pub fn at(&self, band: Band) -> f64 {
        match band {
            Band::Low => self.low,
            Band::Nominal => self.value,
            Band::High => self.high,
        }
    }

    /// Whether it stands in for a figure that was never published for this machine.
    pub fn is_stand_in(&self) -> bool {
        self.source.starts_with("stand-in:")
    }

    /// The same figure standing in for one that another machine lacks.
    pub(crate) fn borrowed_from(&self, machine: &str) -> Figure {
        if self.is_stand_in() {
            return self.clone();
        }
        Figure {
            source: format!("stand-in: as on {machine}: {}", self.source),
            ..self.clone()
        }
    }

    fn fixed_at(&self, band: Band) -> Figure {
        let value = self.at(band);
        Figure {
            value,
            low: value,
            high: value,
            source: self.source.clone(),
        }
    }
}

/// Defines [`Costs`] and the walk over its figures from one list.
macro_rules! costs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The costs of a machine. The unit ends each name: `_ns` nanoseconds, `_ns_per_kib`
        /// nanoseconds a KiB.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Costs {
            $($(#[$doc])* pub $name: Figure,)*
            /// Speed of one hardware thread, relative to it alone on its core, by the number of
            /// *other* busy threads of the core: `[0]` is 1.0, `[1]` with one busy sibling, and so
            /// on. As many entries as a core has threads.
            pub smt_throughput: Vec<Figure>,
        }

        impl Costs {
            /// The figures that have a name of their own, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            fn named(&self) -> Vec<(&'static str, &Figure)> {
                vec![$((stringify!($name), &self.$name),)*]
            }

            fn named_mut(&mut self, name: &str) -> Option<&mut Figure> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// Costs by asking `figure` for each named one.
            pub(crate) fn try_build<E>(
                mut figure: impl FnMut(&'static str) -> Result<Figure, E>,
                smt_throughput: Vec<Figure>,
            ) -> Result<Costs, E> {
                Ok(Costs { $($name: figure(stringify!($name))?,)* smt_throughput })
            }
        }

        /// Costs as a description writes them.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct RawCosts {
            /// The preset whose costs hold where none is given here.
            pub like: Option<Spanned<String>>,
            $($name: Option<Spanned<RawFigure>>,)*
            pub smt_throughput: Option<Spanned<Vec<RawFigure>>>,
        }

        impl RawCosts {
            pub(crate) fn get(&self, name: &str) -> Option<&Spanned<RawFigure>> {
                match name {
                    $(stringify!($name) => self.$name.as_ref(),)*
                    _ => None,
                }
            }
        }
    };
}

costs! {
    /// One-way transfer of a cache line between hardware threads of a core.
    transfer_smt_ns,
    /// One-way transfer of a cache line within a cluster; as in the LLC where there are no clusters.
    transfer_cluster_ns,
    /// One-way transfer of a cache line under one last-level cache.
    transfer_llc_ns,
    /// One-way transfer of a cache line between two last-level caches of a package.
    transfer_package_ns,
    /// One-way transfer of a cache line between packages.
    transfer_remote_ns,
    /// Direct cost of a switch between threads of one process.
    context_switch_ns,
    /// What a switch to another address space costs on top.
    process_switch_ns,
    /// Entry and exit of a system call, mitigations off.
    syscall_ns,
    /// Copying between user and kernel memory, lines in cache.
    copy_ns_per_kib,
    /// `try_to_wake_up`'s own instructions, without the transfer of lines.
    wakeup_ns,
    /// Going idle: `schedule` to the idle task, governor, state entry.
    idle_enter_ns,
    /// The sender's part of a reschedule interrupt.
    ipi_send_ns,
    /// The receiver's part of a reschedule interrupt, from arrival to `schedule`.
    ipi_receive_ns,
    /// From the store of `need_resched` until a polling CPU is in `schedule`, without the transfer.
    poll_wake_ns,
    /// The handler of one tick.
    tick_ns,
    /// One CPU looked at in a search for an idle one, its line in the LLC.
    scan_cpu_ns,
    /// One CPU whose statistics a balance pass reads.
    balance_cpu_ns,
    /// A pipe read's or write's own instructions, without transfers, system call and copy.
    pipe_op_ns,
    /// A socket send's or receive's own instructions, without transfers, system call and copy.
    socket_op_ns,
    /// The same for TCP over loopback, of a send or receive that emits a segment or acknowledgement.
    tcp_op_ns,
    /// Refill of a task's working set after a move within the LLC.
    refill_llc_ns_per_kib,
    /// Refill of a task's working set after a move to another LLC of the package.
    refill_package_ns_per_kib,
    /// Refill of a task's working set after a move to another package.
    refill_remote_ns_per_kib,
}

impl Costs {
    /// What a cache line's way over this distance costs, one way, in ns; nothing on the same CPU.
    pub fn transfer(&self, distance: Distance) -> Option<&Figure> {
        match distance {
            Distance::SameCpu => None,
            Distance::Smt => Some(&self.transfer_smt_ns),
            Distance::Cluster => Some(&self.transfer_cluster_ns),
            Distance::Llc => Some(&self.transfer_llc_ns),
            Distance::Package => Some(&self.transfer_package_ns),
            Distance::Remote => Some(&self.transfer_remote_ns),
        }
    }

    /// What refilling a KiB of working set costs after a move over this distance, in ns; nothing
    /// between threads of a core, which share the private caches.
    pub fn refill(&self, distance: Distance) -> Option<&Figure> {
        match distance {
            Distance::SameCpu | Distance::Smt => None,
            Distance::Cluster | Distance::Llc => Some(&self.refill_llc_ns_per_kib),
            Distance::Package => Some(&self.refill_package_ns_per_kib),
            Distance::Remote => Some(&self.refill_remote_ns_per_kib),
        }
    }

    /// The same costs with every figure at this end of its range, and no range left.
    ///
    /// The low end means *cheap*. For `smt_throughput` that is the high speed, so its ends are
    /// taken the other way round.
    pub fn at(&self, band: Band) -> Costs {
        let mut costs = self.clone();
        for name in Costs::NAMES {
            let figure = costs
                .named_mut(name)
                .expect("NAMES lists the named figures");
            *figure = figure.fixed_at(band);
        }
        let speed_band = match band {
            Band::Low => Band::High,
            Band::Nominal => Band::Nominal,
            Band::High => Band::Low,
        };
        for figure in &mut costs.smt_throughput {
            *figure = figure.fixed_at(speed_band);
        }
        costs
    }

    /// Every figure with its name, in the order of declaration; those of `smt_throughput` as
    /// `smt_throughput[0]` and on.
    pub fn figures(&self) -> impl Iterator<Item = (String, &Figure)> {
        let named = self
            .named()
            .into_iter()
            .map(|(name, figure)| (name.to_owned(), figure));
        let smt = self.smt_throughput.iter().enumerate();
        named.chain(smt.map(|(n, figure)| (format!("smt_throughput[{n}]"), figure)))
    }

    /// The figure of this name as [`Costs::figures`] gives it, to change it (sensitivity runs).
    pub fn figure_mut(&mut self, name: &str) -> Option<&mut Figure> {
        if let Some(index) = name
            .strip_prefix("smt_throughput[")
            .and_then(|s| s.strip_suffix(']'))
        {
            return self.smt_throughput.get_mut(index.parse::<usize>().ok()?);
        }
        self.named_mut(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Machine;

    fn costs() -> Costs {
        Machine::preset("epyc-9654-2s").unwrap().costs
    }

    #[test]
    fn the_ends_of_the_band_are_cheap_and_dear() {
        let costs = costs();
        let (low, high) = (costs.at(Band::Low), costs.at(Band::High));
        assert_eq!(
            (
                low.transfer_package_ns.value,
                high.transfer_package_ns.value
            ),
            (73.0, 113.0)
        );
        assert_eq!(low.transfer_package_ns.high, 73.0, "no range is left");
        // A fast sibling is what is cheap.
        assert!(low.smt_throughput[1].value > high.smt_throughput[1].value);
        assert_eq!(
            costs.at(Band::Nominal).wakeup_ns.value,
            costs.wakeup_ns.value
        );
    }

    #[test]
    fn figures_are_found_by_distance() {
        let costs = costs();
        assert!(
            costs.transfer(Distance::SameCpu).is_none() && costs.refill(Distance::Smt).is_none()
        );
        assert_eq!(
            costs.transfer(Distance::Remote),
            Some(&costs.transfer_remote_ns)
        );
        assert_eq!(
            costs.refill(Distance::Package),
            Some(&costs.refill_package_ns_per_kib)
        );
    }

    #[test]
    fn figures_are_walked_in_order_and_reached_by_name() {
        let mut costs = costs();
        let names: Vec<String> = costs.figures().map(|(name, _)| name).collect();
        assert_eq!(names[..Costs::NAMES.len()], *Costs::NAMES);
        assert_eq!(
            names[Costs::NAMES.len()..],
            ["smt_throughput[0]", "smt_throughput[1]"]
        );
        for name in &names {
            costs.figure_mut(name).unwrap().value = 7.0;
        }
        assert!(costs.figures().all(|(_, figure)| figure.value == 7.0));
        assert!(costs.figure_mut("smt_throughput[9]").is_none());
        assert!(costs.figure_mut("coffee_ns").is_none());
    }
}
