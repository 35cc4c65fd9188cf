//! The report as text.

use super::{CpuDomains, DomainReport, MachineReport};
use crate::costs::Figure;
use std::fmt::Write;

/// How many LLCs or groups are listed before the rest is only counted.
const LISTED_MAX: usize = 8;
/// How long a line of sources may become.
const WIDTH: usize = 100;

pub(super) fn render(report: &MachineReport) -> String {
    let mut text = String::new();
    write_all(&mut text, report).expect("writing to a String does not fail");
    text
}

fn write_all(out: &mut String, report: &MachineReport) -> std::fmt::Result {
    writeln!(out, "{}: {}", report.name, report.description)?;
    write_counts(out, report)?;
    write_places(out, report)?;
    for cpu in &report.domains {
        write_domains(out, cpu)?;
    }
    writeln!(out, "\nIdle states")?;
    for state in &report.idle_states {
        let polling = if state.polling {
            ", wakes without an interrupt"
        } else {
            ""
        };
        let exit = state.exit_latency.0 as f64 / 1000.0;
        let residency = state.target_residency.0 as f64 / 1000.0;
        writeln!(
            out,
            "  {:<12} exit {exit} us, residency {residency} us{polling}",
            state.name
        )?;
        write_source(out, &state.source)?;
    }
    writeln!(out, "\nCosts (value, range, source)")?;
    report
        .costs
        .iter()
        .try_for_each(|(name, figure)| write_cost(out, name, figure))
}

fn write_counts(out: &mut String, report: &MachineReport) -> std::fmt::Result {
    let counts = &report.counts;
    let things = [
        (counts.clusters, "clusters", counts.clusters != counts.cores),
        (counts.llcs, "LLCs", true),
        (counts.dies, "dies", counts.dies != counts.packages),
        (counts.packages, "packages", true),
        (counts.nodes, "nodes", true),
    ];
    let threads = if counts.threads_per_core == 1 {
        "thread"
    } else {
        "threads"
    };
    let up_to = if counts.cpus == counts.cores * counts.threads_per_core {
        ""
    } else {
        "up to "
    };
    write!(
        out,
        "{} CPUs, {} cores of {up_to}{} {threads}",
        counts.cpus, counts.cores, counts.threads_per_core
    )?;
    for (count, name, told) in things {
        if told {
            let name = if count == 1 {
                name.trim_end_matches('s')
            } else {
                name
            };
            write!(out, ", {count} {name}")?;
        }
    }
    writeln!(
        out,
        "; {}, HZ {}; {}",
        report.arch, report.hz, report.numbering
    )?;
    let keys = [
        ("sched_smt_present", report.smt_active),
        ("sched_cluster_active", report.cluster_active),
        ("sched_asym_cpucapacity", report.asym_cpucap),
    ];
    let active: Vec<&str> = keys
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| *name)
        .collect();
    writeln!(
        out,
        "Static keys: {}",
        if active.is_empty() {
            "none".into()
        } else {
            active.join(", ")
        }
    )
}

fn write_places(out: &mut String, report: &MachineReport) -> std::fmt::Result {
    writeln!(out, "\nLLCs")?;
    for (id, cpus) in report.llcs.iter().enumerate().take(LISTED_MAX) {
        writeln!(out, "  {id:<3} {cpus}")?;
    }
    if report.llcs.len() > LISTED_MAX {
        writeln!(out, "  and {} more", report.llcs.len() - LISTED_MAX)?;
    }
    writeln!(
        out,
        "\nNodes (CPUs; distances; reclaim distance {})",
        report.node_reclaim_distance
    )?;
    for (id, cpus) in report.nodes.iter().enumerate() {
        let row: Vec<String> = report.node_distance[id]
            .iter()
            .map(u32::to_string)
            .collect();
        writeln!(out, "  {id:<3} {cpus}; {}", row.join(" "))?;
    }
    if report.capacities.len() > 1 {
        writeln!(out, "\nCapacities")?;
        for (capacity, cpus) in &report.capacities {
            writeln!(out, "  {capacity:<5} {cpus}")?;
        }
    }
    if !report.isolated.is_empty() {
        writeln!(out, "\nIsolated CPUs: {}", report.isolated)?;
    }
    Ok(())
}

fn write_domains(out: &mut String, cpu: &CpuDomains) -> std::fmt::Result {
    let (id, size) = (cpu.cpu, cpu.sd_llc_size);
    writeln!(
        out,
        "\nDomains of CPU {id} (the same shape: {}), sd_llc_size {size}",
        cpu.alike
    )?;
    if cpu.domains.is_empty() {
        writeln!(out, "  none")?;
    }
    cpu.domains
        .iter()
        .try_for_each(|domain| write_domain(out, domain))
}

fn write_domain(out: &mut String, domain: &DomainReport) -> std::fmt::Result {
    let llc = if domain.sd_llc { ", sd_llc" } else { "" };
    let (name, level) = (domain.name, domain.level);
    writeln!(
        out,
        "  {name} (level {level}{llc}): {} CPUs {}",
        domain.span_weight, domain.span
    )?;
    writeln!(out, "    flags {}", domain.flags.join(" "))?;
    writeln!(
        out,
        "    imbalance_pct {}, interval {}..{} ms x{} busy, cache_nice_tries {}, imb_numa_nr {}",
        domain.imbalance_pct,
        domain.min_interval,
        domain.max_interval,
        domain.busy_factor,
        domain.cache_nice_tries,
        domain.imb_numa_nr
    )?;
    let spans: Vec<&str> = domain
        .groups
        .iter()
        .take(LISTED_MAX)
        .map(|g| g.span.as_str())
        .collect();
    let more = domain.groups.len() - spans.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    writeln!(
        out,
        "    {} groups: {}{more}",
        domain.groups.len(),
        spans.join(" | ")
    )
}

fn write_cost(out: &mut String, name: &str, figure: &Figure) -> std::fmt::Result {
    let (value, low, high) = (figure.value, figure.low, figure.high);
    let range = if low == high {
        String::new()
    } else {
        format!("{low} .. {high}")
    };
    writeln!(out, "  {name:<26} {value:>7}  {range}")?;
    write_source(out, &figure.source)
}

/// The source under its figure, broken into lines.
fn write_source(out: &mut String, source: &str) -> std::fmt::Result {
    let mut line = String::new();
    for word in source.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() >= WIDTH - 6 {
            writeln!(out, "      {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "      {line}")
}
