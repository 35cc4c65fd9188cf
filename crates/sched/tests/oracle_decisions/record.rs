//! One line of a recording as the inputs of a decision.

use crate::header::{Header, list, mask, number};
use serde_json::Value;
use wakelab_machine::{CpuId, CpuMask};
use wakelab_sched::placement::{Cookies, RecordedCall};
use wakelab_sched::state::GroupCapacity;

/// Reads the inputs; the results stay in the line.
pub fn parse(header: &Header, line: &Value) -> RecordedCall {
    let ncpu = header.machine.topo.cpus.len();
    let task_cpu = cpu(&line["tcpu"]);
    let queued = flag(&line["onrq"]) && flag(&line["lut"]);
    let mut call = RecordedCall {
        this_cpu: cpu(&line["cpu"]),
        prev_cpu: cpu(&line["prev"]),
        wake_flags: number(&line["wf"]) as u32,
        in_task: flag(&line["it"]),
        curr_is_per_cpu_kthread: flag(&line["pck"]),
        curr_is_exiting: flag(&line["exi"]),
        curr_h_load: number(&line["chl"]),
        curr_wakee_flips: number(&line["fl"][1]) as u32,
        wakee_flips: number(&line["fl"][2]) as u32,
        allowed: mask(&line["mask"]).and(&CpuMask::first_n(ncpu)),
        task_h_load: number(&line["hl"]),
        task_util_est: number(&line["pu"]).max(number(&line["pe"])),
        task_running_on: queued.then_some(task_cpu),
        task_current_on: (0..ncpu)
            .find(|&cpu| line["pids"][cpu] == line["pid"])
            .map(CpuId::from_index),
        recent_used_cpu: cpu(&line["ruc"][0]),
        idle: mask(&line["idl"]),
        sched_idle: mask(&line["si"]),
        curr_idle: mask(&line["ci"]),
        ttwu_pending: mask(&line["tp"]),
        nr_running: numbers(&line["nr"]).map(|n| n as u32).collect(),
        nr_delayed: delayed(line),
        load: numbers(&line["ld"]).collect(),
        load_without: without(line, "ld", "ldw", task_cpu),
        runnable_without: without(line, "rn", "rnw", task_cpu),
        util_without: without(line, "ut", "utw", task_cpu),
        util_est: Vec::new(),
        capacity: per_cpu(&line["cap"], ncpu),
        idle_stamp: Vec::new(),
        exit_latency: Vec::new(),
        has_idle_cores: signed(&line["hic"]).map(|n| n > 0).collect(),
        nr_idle_scan: signed(&line["nis"]).map(|n| n as i32).collect(),
        groups: Vec::new(),
        cookies: flag(&line["core"]).then(|| cookies(line)),
    };
    if line["slow"].is_object() {
        slow_path(header, line, &mut call);
    }
    call
}

fn slow_path(header: &Header, line: &Value, call: &mut RecordedCall) {
    call.idle_stamp = numbers(&line["is"]).collect();
    if let Some(latencies) = line["xl"].as_array() {
        call.exit_latency = latencies
            .iter()
            .map(|n| n.as_u64().map(|n| n as u32))
            .collect();
    }
    for group in list(&line["slow"]["sg"]) {
        let id = header.group(number(&group["l"]) as u32, cpu(&group["f"]));
        let capacity = GroupCapacity {
            capacity: number(&group["cap"]),
            imbalance: flag(&group["imb"]),
            ..GroupCapacity::default()
        };
        call.groups.push((id, capacity));
    }
}

fn cpu(value: &Value) -> CpuId {
    CpuId(number(value) as u16)
}

/// A flag, false where it was left out.
fn flag(value: &Value) -> bool {
    !value.is_null() && number(value) != 0
}

fn numbers(value: &Value) -> impl Iterator<Item = u64> + '_ {
    list(value).iter().map(number)
}

/// By LLC, -1 where a CPU has no LLC domain.
fn signed(value: &Value) -> impl Iterator<Item = i64> + '_ {
    list(value).iter().map(|n| {
        n.as_i64()
            .unwrap_or_else(|| panic!("'{n}' is not a number"))
    })
}

/// A value by CPU, written once where all CPUs have the same.
fn per_cpu(value: &Value, ncpu: usize) -> Vec<u64> {
    match value.as_u64() {
        Some(same) => vec![same; ncpu],
        None => numbers(value).collect(),
    }
}

/// What a value by CPU is without the task, which counts on its own CPU only.
fn without(line: &Value, with: &str, without: &str, task_cpu: CpuId) -> Vec<u64> {
    let mut values: Vec<u64> = numbers(&line[with]).collect();
    values[task_cpu.index()] = number(&line[without]);
    values
}

fn delayed(line: &Value) -> Vec<u32> {
    numbers(&line["hq"])
        .zip(numbers(&line["hr"]))
        .map(|(all, awake)| all.wrapping_sub(awake) as u32)
        .collect()
}

fn cookies(line: &Value) -> Cookies {
    Cookies {
        task: number(&line["pco"]),
        core: numbers(&line["ck"]).collect(),
    }
}
