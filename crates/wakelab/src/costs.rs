//! The costs at which an experiment is run: the machine's own, an end of their ranges, or one of them
//! moved.

use wakelab_machine::{Band, Machine, Ns};

/// A choice of costs.
#[derive(Clone, Debug, PartialEq)]
pub enum CostPoint {
    /// All at one place of their ranges.
    At(Band),
    /// All at their values, but for one.
    Moved {
        /// Which, as [`figures`] names it.
        name: String,
        /// What it is multiplied by.
        factor: f64,
    },
}

/// A cost figure of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct CostFigure {
    /// Its name; the unit ends it, or the number of other busy threads of a speed.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Whether it stands in for one that was not published.
    pub stand_in: bool,
    /// Where it comes from.
    pub source: String,
}

/// The machine's cost figures that can be moved: all costs but those of zero, which nothing moves, and
/// the speed of a thread alone, which is 1 by definition; then the time that leaving each idle state takes.
pub fn figures(machine: &Machine) -> Vec<CostFigure> {
    let costs = machine.costs.figures().map(|(name, figure)| CostFigure {
        stand_in: figure.is_stand_in(),
        value: figure.value,
        source: figure.source.clone(),
        name,
    });
    let latencies = machine.idle_states.iter().map(|state| CostFigure {
        name: exit_latency(&state.name),
        value: state.exit_latency.0 as f64 / 1e3,
        stand_in: state.source.starts_with("stand-in:"),
        source: state.source.clone(),
    });
    costs
        .chain(latencies)
        .filter(|figure| figure.value > 0.0 && figure.name != "smt_throughput[0]")
        .collect()
}

fn exit_latency(state: &str) -> String {
    format!("{state} exit_latency_us")
}

/// The machine with these costs.
pub fn machine_at(machine: &Machine, point: &CostPoint) -> Machine {
    match point {
        CostPoint::At(band) => Machine {
            costs: machine.costs.at(*band),
            ..machine.clone()
        },
        CostPoint::Moved { name, factor } => {
            let nominal = machine_at(machine, &CostPoint::At(Band::Nominal));
            moved(nominal, name, *factor)
        }
    }
}

/// A speed is no cost: what is multiplied is the time that busy siblings add to that of a thread alone.
fn moved(mut machine: Machine, name: &str, factor: f64) -> Machine {
    if let Some(figure) = machine.costs.figure_mut(name) {
        let value = match name.starts_with("smt_throughput") {
            true => 1.0 / (1.0 + (1.0 / figure.value - 1.0) * factor),
            false => figure.value * factor,
        };
        (figure.value, figure.low, figure.high) = (value, value, value);
    }
    for state in &mut machine.idle_states {
        if exit_latency(&state.name) == name {
            state.exit_latency = Ns((state.exit_latency.0 as f64 * factor).round() as u64);
        }
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved_to(name: &str, factor: f64) -> Machine {
        let machine = Machine::preset("epyc-9654-2s").unwrap();
        let name = name.to_owned();
        machine_at(&machine, &CostPoint::Moved { name, factor })
    }

    #[test]
    fn one_figure_is_moved_and_all_others_stay() {
        let own = Machine::preset("epyc-9654-2s").unwrap();
        for figure in figures(&own) {
            let moved = figures(&moved_to(&figure.name, 2.0));
            for (before, after) in figures(&own).iter().zip(moved) {
                let same = before.value == after.value;
                assert_eq!(same, before.name != figure.name, "{}", before.name);
            }
        }
        assert_eq!(
            moved_to("transfer_package_ns", 0.5)
                .costs
                .transfer_package_ns
                .value,
            50.0
        );
        assert_eq!(
            moved_to("C1 exit_latency_us", 2.0).idle_states[1].exit_latency,
            Ns(2000)
        );
    }

    #[test]
    fn of_a_speed_the_time_that_siblings_add_is_moved() {
        // 0.63 of the speed is 0.5873 more time; half of it leaves 1 / 1.2937 of the speed.
        let half = moved_to("smt_throughput[1]", 0.5).costs.smt_throughput[1].value;
        assert!((half - 0.772_99).abs() < 1e-4, "{half}");
        let double = moved_to("smt_throughput[1]", 2.0).costs.smt_throughput[1].value;
        assert!((double - 0.459_85).abs() < 1e-4, "{double}");
    }

    #[test]
    fn what_cannot_be_moved_is_no_figure() {
        let names: Vec<String> = figures(&Machine::preset("epyc-9654-2s").unwrap())
            .into_iter()
            .map(|figure| figure.name)
            .collect();
        assert!(names.contains(&"smt_throughput[1]".to_owned()));
        assert!(names.contains(&"C1 exit_latency_us".to_owned()));
        assert!(
            !names
                .iter()
                .any(|name| name == "smt_throughput[0]" || name.starts_with("POLL"))
        );
    }
}
