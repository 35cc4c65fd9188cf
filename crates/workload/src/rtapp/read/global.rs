//! `global`, and what is left of `resources`.

use super::Reader;
use super::properties::AS_FAIR;
use crate::quantity::MAX_NS;
use crate::rtapp::fields::{Checked, Fields, count, mismatch, text};
use crate::rtapp::file::{Calibration, Class, Global};
use crate::rtapp::json::{Node, Value};
use wakelab_machine::Ns;

const KEYS: [&str; 13] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];

/// The longest `duration`, as of other workloads.
const MAX_SECONDS: i32 = (MAX_NS / 1_000_000_000) as i32;

/// The names that `ftrace` takes, in a list with commas.
const FTRACE: [&str; 6] = ["none", "main", "task", "loop", "event", "stats"];

/// The types that a resource may have (`string_to_resource`).
const RESOURCES: [&str; 9] = [
    "mutex",
    "wait",
    "signal",
    "broadcast",
    "sync",
    "timer",
    "sleep",
    "run",
    "barrier",
];

pub(super) fn read(reader: &mut Reader, fields: Fields) -> Checked<Global> {
    let default = Global::default();
    for member in fields.members {
        reader.check_key(member, &KEYS);
    }
    check_effectless(fields)?;
    let duration = fields.int("duration")?.unwrap_or(-1);
    if let Some(node) = fields.get("duration")
        && duration > MAX_SECONDS
    {
        return Err(mismatch(node, "duration", "at most 1000000 seconds"));
    }
    let policy = match fields.get("default_policy") {
        Some(node) => class(node, "default_policy")?,
        None => default.policy,
    };
    if let (Some(node), Class::RealTime | Class::Deadline) = (fields.get("default_policy"), policy)
    {
        reader.warn(node.at, AS_FAIR);
    }
    let mem_buffer_size = match fields.get("mem_buffer_size") {
        Some(node) => count(node, "mem_buffer_size")?,
        None => default.mem_buffer_size,
    };
    if let Some(node) = fields.get("mem_buffer_size")
        && mem_buffer_size == 0
    {
        return Err(mismatch(node, "mem_buffer_size", "a number above 0"));
    }
    if fields
        .text("io_device")?
        .is_some_and(|device| device != "/dev/null")
    {
        let at = fields.get("io_device").map_or(0, |node| node.at);
        reader.warn(
            at,
            "every 'io_device' takes writes as /dev/null does, at once",
        );
    }
    Ok(Global {
        duration: (duration > 0).then_some(Ns(duration.max(0) as u64 * 1_000_000_000)),
        calibration: calibration(reader, fields)?.unwrap_or(default.calibration),
        policy,
        pi_enabled: fields.bool("pi_enabled")?.unwrap_or(false),
        cumulative_slack: fields.bool("cumulative_slack")?.unwrap_or(false),
        mem_buffer_size,
    })
}

/// Keys that say where rt-app writes and what: they are checked, and do nothing here.
fn check_effectless(fields: Fields) -> Checked<()> {
    fields.bool("gnuplot")?;
    fields.bool("lock_pages")?;
    fields.text("logdir")?;
    fields.text("log_basename")?;
    if let Some(node) = fields.get("log_size")
        && !matches!(node.value, Value::Int(_) | Value::Text(_))
    {
        let expected = "a number of MB, \"file\", \"disable\" or \"auto\"";
        return Err(mismatch(node, "log_size", expected));
    }
    let Some(node) = fields.get("ftrace") else {
        return Ok(());
    };
    let known = match &node.value {
        Value::Bool(_) => true,
        Value::Text(list) => {
            let mut names = list
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            names.all(|name| FTRACE.contains(&name))
        }
        _ => false,
    };
    if known {
        return Ok(());
    }
    let expected = "true, false or a list of none, main, task, loop, event and stats";
    Err(mismatch(node, "ftrace", expected))
}

/// A number of ns, or `CPU` with a number.
fn calibration(reader: &mut Reader, fields: Fields) -> Checked<Option<Calibration>> {
    let Some(node) = fields.get("calibration") else {
        return Ok(None);
    };
    if let Value::Int(_) = node.value {
        return Ok(match count(node, "calibration")? {
            0 => None,
            ns => Some(Calibration::NsPerLoop(ns)),
        });
    }
    let expected = "ns for each loop, or a CPU such as \"CPU0\"";
    let Value::Text(text) = &node.value else {
        return Err(mismatch(node, "calibration", expected));
    };
    let digits = text.strip_prefix("CPU").unwrap_or_default();
    let cpu: u32 = digits
        .parse()
        .map_err(|_| mismatch(node, "calibration", expected))?;
    reader.names_cpu(cpu, node.at);
    Ok(Some(Calibration::Cpu(cpu)))
}

/// A policy.
pub(super) fn class(node: &Node, key: &str) -> Checked<Class> {
    let expected = "SCHED_OTHER, SCHED_BATCH, SCHED_IDLE, SCHED_FIFO, SCHED_RR or SCHED_DEADLINE";
    Class::named(text(node, key)?).ok_or_else(|| mismatch(node, key, expected))
}

/// The type of a resource is checked; what it is follows from how events use it.
pub(super) fn check_resource(node: &Node) -> Checked<()> {
    if RESOURCES.contains(&text(node, "type")?) {
        return Ok(());
    }
    Err(mismatch(
        node,
        "type",
        &format!("one of {}", RESOURCES.join(", ")),
    ))
}
