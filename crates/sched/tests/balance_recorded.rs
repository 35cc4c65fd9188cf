//! The steps of load balancing that are functions of what they look at, against decisions recorded
//! from a real 6.12: a sample lies in `data/balance`; the directory that the environment variable
//! `WAKELAB_RECORDINGS` names, if set, is read whole besides (files `KIND__RUN.jsonl.gz`).

#![allow(clippy::unwrap_used)]

use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use wakelab_machine::{CpuId, CpuMask, GroupId};
use wakelab_sched::balance::busiest::{find_busiest_group, update_sd_pick_busiest};
use wakelab_sched::balance::cost::{
    newidle_dice, newidle_gated, newidle_too_dear, update_newidle_cost, update_newidle_stats,
};
use wakelab_sched::balance::env::lbf;
use wakelab_sched::balance::group::{
    GroupType, GroupView, SdStats, SgStats, group_classify, smt_balance,
};
use wakelab_sched::balance::migrate::{
    Candidate, Destination, can_migrate_task, take_from_imbalance,
};
use wakelab_sched::balance::pass::{Outcome, interval_after};
use wakelab_sched::balance::queue::{Busiest, QueueView};
use wakelab_sched::balance::scan::nr_idle_scan;
use wakelab_sched::balance::should::{Asked, should_we_balance};
use wakelab_sched::balance::{CpuIdle, LbEnv, MigrationType};
use wakelab_sched::state::DomainState;
use wakelab_sched::{Release, Rules};

const HZ: u64 = 250;

fn files(kind: &str) -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/balance");
    let mut files = vec![data.join(format!("{kind}.jsonl.gz"))];
    if let Some(dir) = std::env::var_os("WAKELAB_RECORDINGS") {
        let names = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let prefix = format!("{kind}__");
        let of_kind = |path: &PathBuf| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(&prefix)
        };
        files.extend(names.filter(of_kind));
    }
    files.sort();
    files
}

/// Calls `check` with the header in force and each record of the kind; it says whether the record
/// agrees, or nothing if it cannot tell. All that can tell must agree.
fn each(kind: &str, check: impl Fn(&Value, &Value) -> Option<bool>) {
    let (mut agree, mut skipped, mut wrong) = (0, 0, Vec::new());
    for path in files(kind) {
        let file = std::fs::File::open(&path).unwrap();
        let mut header = Value::Null;
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.unwrap();
            let record: Value = serde_json::from_str(&line).unwrap();
            if record["k"] == "hdr" {
                header = record;
                continue;
            }
            match check(&header, &record) {
                Some(true) => agree += 1,
                Some(false) => wrong.push(format!("{}: {line}", path.display())),
                None => skipped += 1,
            }
        }
    }
    println!(
        "{kind}: {agree} agree, {} differ, {skipped} cannot tell",
        wrong.len()
    );
    assert!(agree > 0, "no records of kind {kind}");
    assert!(
        wrong.is_empty(),
        "{} differ, first: {}",
        wrong.len(),
        wrong[0]
    );
}

fn int(value: &Value) -> i64 {
    let wide = || value.as_u64().map(|v| v as i64);
    value
        .as_i64()
        .or_else(wide)
        .unwrap_or_else(|| panic!("no integer: {value}"))
}

fn num(value: &Value) -> u64 {
    int(value) as u64
}

fn cpu(value: &Value) -> CpuId {
    CpuId(num(value) as u16)
}

fn mask(value: &Value) -> CpuMask {
    CpuMask::from_u64(num(value))
}

fn idle_of(record: &Value) -> CpuIdle {
    [CpuIdle::NotIdle, CpuIdle::Idle, CpuIdle::NewlyIdle][num(&record["idle"]) as usize]
}

fn kind_of(record: &Value) -> MigrationType {
    use MigrationType::{Load, Misfit, Task, Util};
    [Load, Util, Task, Misfit][num(&record["mt"]) as usize]
}

fn rules() -> Rules {
    Rules::of(Release::V6_12)
}

fn feature(header: &Value, record: &Value, name: &str) -> bool {
    num(&header["sets"][num(&record["s"]) as usize]["feats"][name]) != 0
}

#[test]
fn nr_idle_scan_is_as_recorded() {
    each("scan", |header, r| {
        let old = int(&r["n0"]);
        let new = if r["sw"] == r["lw"] && feature(header, r, "SIS_UTIL") {
            let (weight, pct) = (num(&r["lw"]) as u32, num(&r["pct"]) as u32);
            i64::from(nr_idle_scan(num(&r["su"]), weight, pct))
        } else {
            old
        };
        Some(new == int(&r["n1"]))
    });
}

#[test]
fn should_we_balance_is_as_recorded() {
    each("swb", |_, r| {
        let balance_cpus: Vec<CpuId> = mask(&r["bm"]).iter().collect();
        let (idle_cpus, idle_cores) = (mask(&r["ic"]), mask(&r["co"]));
        let env = LbEnv {
            dst_cpu: cpu(&r["dst"]),
            idle: idle_of(r),
            sd_flags: num(&r["sdf"]) as u32,
            cpus: mask(&r["cpus"]),
            trimmed: true,
            ..LbEnv::default()
        };
        let asked = Asked {
            balance_cpus: &balance_cpus,
            dst_nr_running: num(&r["nr"]) as u32,
            dst_ttwu_pending: num(&r["tp"]) != 0,
        };
        let ours = should_we_balance(
            &env,
            &asked,
            rules().smt_balance,
            |cpu| idle_cpus.contains(cpu),
            |cpu| !idle_cores.contains(cpu),
        );
        (r["racy"] != 1).then(|| ours == (num(&r["r"]) != 0))
    });
}

fn lb_env(r: &Value) -> LbEnv {
    LbEnv {
        dst_cpu: cpu(&r["dst"]),
        dst_capacity: 1024,
        sd_flags: num(&r["sdf"]) as u32,
        imbalance_pct: num(&r["pct"]) as u32,
        imb_numa_nr: num(&r["inn"]) as u32,
        cache_nice_tries: num(&r["cnt"]) as u32,
        nr_balance_failed: num(&r["nbf"]) as u32,
        idle: idle_of(r),
        cpus: mask(&r["cpus"]),
        trimmed: true,
        ..LbEnv::default()
    }
}

fn group_stats(env: &LbEnv, g: &Value) -> SgStats {
    let mut sgs = SgStats {
        load: num(&g[5]),
        util: num(&g[6]),
        runnable: num(&g[7]),
        sum_nr_running: num(&g[8]) as u32,
        sum_h_nr_running: num(&g[9]) as u32,
        idle_cpus: num(&g[10]) as u32,
        capacity: num(&g[11]),
        weight: num(&g[2]) as u32,
        misfit_task_load: num(&g[14]),
        asym_packing: num(&g[15]) != 0,
        ..SgStats::default()
    };
    if num(&g[17]) == 0 {
        sgs.smt_balance = smt_balance(&rules(), env, num(&g[1]) as u32, &sgs);
    }
    sgs.group_type = group_classify(env.imbalance_pct, num(&g[4]) != 0, &sgs);
    if sgs.group_type == GroupType::Overloaded {
        sgs.avg_load = sgs.load * 1024 / sgs.capacity;
    }
    sgs
}

fn group_view(place: usize, g: &Value) -> GroupView {
    GroupView {
        id: GroupId(place as u32),
        flags: num(&g[1]) as u32,
        cores: num(&g[3]) as u32,
        asym_prefer_cpu: cpu(&g[19]),
        min_capacity: 1024,
        max_capacity: 1024,
    }
}

/// Types, averages and picks of all groups; none if one differs from the record.
fn domain_stats(env: &LbEnv, r: &Value) -> Option<SdStats> {
    let mut sds = SdStats {
        prefer_sibling: num(&r["ps"]) != 0,
        ..SdStats::default()
    };
    for (place, g) in r["g"].as_array().unwrap().iter().enumerate() {
        let (view, sgs) = (group_view(place, g), group_stats(env, g));
        let same = sgs.group_type as u64 == num(&g[12])
            && sgs.avg_load == num(&g[13])
            && sgs.smt_balance == (num(&g[16]) != 0);
        let local = num(&g[17]) != 0;
        let picked = !local && update_sd_pick_busiest(env, &rules(), &sds, &view, &sgs);
        if !same || picked != (num(&g[18]) != 0) {
            return None;
        }
        sds.total_load += sgs.load;
        sds.total_capacity += sgs.capacity;
        if local {
            (sds.local, sds.local_stat) = (Some(view), sgs);
        } else if picked {
            (sds.busiest, sds.busiest_stat) = (Some(view), sgs);
        }
    }
    Some(sds)
}

fn busiest_queue(env: &LbEnv, r: &Value) -> i64 {
    let mut busiest = Busiest::default();
    for q in r["rq"].as_array().unwrap() {
        let view = QueueView {
            cpu: cpu(&q[0]),
            h_nr_running: num(&q[1]) as u32,
            load: num(&q[2]),
            util: num(&q[3]),
            capacity: num(&q[4]),
            arch_capacity: num(&q[5]),
            misfit_task_load: 0,
            asym_preferred: false,
        };
        if env.cpus.contains(view.cpu) {
            busiest.consider(env, &view);
        }
    }
    busiest.cpu.map_or(-1, |cpu| i64::from(cpu.0))
}

#[test]
fn the_busiest_group_and_queue_are_as_recorded() {
    each("lb", |_, r| {
        let mut env = lb_env(r);
        let Some(mut sds) = domain_stats(&env, r) else {
            return Some(false);
        };
        if sds.total_load != num(&r["tl"]) || sds.total_capacity != num(&r["tc"]) {
            return Some(false);
        }
        let found = find_busiest_group(&mut env, &rules(), &mut sds);
        let group = found.map_or(0, |id| num(&r["g"][id.index()][0]));
        if group != num(&r["bg"]) {
            return Some(false);
        }
        if found.is_none() {
            return Some(int(&r["src"]) == -1);
        }
        let amount = env.imbalance == int(&r["imb"]) && env.migration_type == kind_of(r);
        let racy = r["racy"] == 1;
        Some(amount && (racy || busiest_queue(&env, r) == int(&r["src"])))
    });
}

#[test]
fn can_migrate_task_is_as_recorded() {
    each("canm", |header, r| {
        // Bandwidth control is not modelled.
        if num(&r["thr"]) != 0 {
            return None;
        }
        let (allowed, group) = (mask(&r["mask"]), mask(&r["dgm"]));
        let mut env = LbEnv {
            dst_cpu: cpu(&r["dst"]),
            src_cpu: cpu(&r["src"]),
            sd_flags: num(&r["sdf"]) as u32,
            idle: idle_of(r),
            flags: num(&r["fl0"]) as u32,
            nr_balance_failed: num(&r["nbf"]) as u32,
            cache_nice_tries: num(&r["cnt"]) as u32,
            cpus: mask(&r["cpus"]),
            trimmed: true,
            ..LbEnv::default()
        };
        let p = Candidate {
            cpus: &allowed,
            per_cpu_kthread: num(&r["pck"]) != 0,
            running: num(&r["run"]) != 0,
            // A task of another class is never hot either.
            idle_policy: num(&r["ipol"]) != 0 || num(&r["fair"]) == 0,
            buddy: num(&r["bud"]) != 0,
            since_exec: int(&r["now"]).wrapping_sub(int(&r["ex"])),
            cookie_match: num(&r["ckm"]) != 0,
        };
        let dst = Destination {
            nr_running: num(&r["dnr"]) as u32,
            group: &group,
            migration_cost: int(&r["mc"]),
            cache_hot_buddy: feature(header, r, "CACHE_HOT_BUDDY"),
        };
        let can = can_migrate_task(&mut env, &dst, &p);
        let elsewhere = !env.has(lbf::DST_PINNED)
            || num(&r["fl0"]) & u64::from(lbf::DST_PINNED) != 0
            || env.new_dst_cpu == cpu(&r["ndc"]);
        let flags = u64::from(env.flags) == num(&r["fl1"]);
        Some(can == (num(&r["r"]) != 0) && flags && elsewhere)
    });
}

#[test]
fn detach_tasks_takes_what_was_recorded() {
    each("det", |header, r| {
        let mut env = LbEnv {
            idle: idle_of(r),
            migration_type: kind_of(r),
            imbalance: int(&r["imb0"]),
            nr_balance_failed: num(&r["nbf"]) as u32,
            ..LbEnv::default()
        };
        let size = match env.migration_type {
            MigrationType::Load => num(&r["ld"]),
            _ => num(&r["ut"]),
        };
        let moves = num(&r["can"]) != 0
            && take_from_imbalance(&mut env, size, feature(header, r, "LB_MIN"));
        Some(moves == (num(&r["mv"]) != 0) && env.imbalance == int(&r["imb1"]))
    });
}

fn domain_state(n: &Value) -> DomainState {
    DomainState {
        max_newidle_lb_cost: num(&n[0]),
        last_decay_max_lb_cost: num(&n[1]),
        newidle_call: num(&n[2]) as u32,
        newidle_success: num(&n[3]) as u32,
        newidle_ratio: num(&n[4]) as u32,
        ..DomainState::default()
    }
}

fn same_costs(a: &DomainState, b: &DomainState) -> bool {
    let costs = |s: &DomainState| {
        let dice = (s.newidle_call, s.newidle_success, s.newidle_ratio);
        (s.max_newidle_lb_cost, s.last_decay_max_lb_cost, dice)
    };
    costs(a) == costs(b)
}

#[test]
fn newidle_costs_are_as_recorded() {
    each("ni", |_, r| {
        let avg_idle = num(&r["ai"]);
        if num(&r["st"]) == 0 {
            let gated = newidle_gated(num(&r["ovl"]) != 0, avg_idle, num(&r["cost"]));
            return Some(gated == (num(&r["skip"]) != 0));
        }
        let (mut state, after) = (domain_state(&r["n0"]), domain_state(&r["n1"]));
        let dear = newidle_too_dear(avg_idle, num(&r["cc"]), state.max_newidle_lb_cost);
        let result = num(&r["res"]);
        if dear || result == 1 {
            return Some(dear && result == 1);
        }
        match newidle_dice(&state, num(&r["dice"]) as u32) {
            None => {
                update_newidle_stats(&mut state, 0);
                Some(result == 2 && same_costs(&state, &after))
            }
            Some(weight) => {
                let success = weight * u32::from(num(&r["pulled"]) != 0);
                update_newidle_cost(&mut state, num(&r["dc"]), success, num(&r["j"]), HZ);
                let weighed = u64::from(weight) == num(&r["wt"]);
                Some(result == 3 && weighed && same_costs(&state, &after))
            }
        }
    });
}

#[test]
fn intervals_and_failures_are_as_recorded() {
    each("lbres", |_, r| {
        let env = LbEnv {
            idle: idle_of(r),
            flags: num(&r["fl"]) as u32,
            migration_type: kind_of(r),
            ..LbEnv::default()
        };
        let (old, new) = (num(&r["bi0"]) as u32, num(&r["bi1"]) as u32);
        let bounds = (num(&r["mini"]) as u32, num(&r["maxi"]) as u32);
        let (before, after) = (num(&r["nbf0"]), num(&r["nbf1"]));
        let may_push = kind_of(r) == MigrationType::Task && after > 2;
        let outcome = if num(&r["mv"]) > 0 {
            Outcome::Moved
        } else if num(&r["act"]) != 0 || (after == before + 1 && !may_push) {
            Outcome::Failed
        } else if int(&r["src"]) < 0 {
            Outcome::Balanced
        } else {
            // The record does not say whether all tasks were pinned, or the one to be pushed.
            return None;
        };
        Some(interval_after(&env, &rules(), outcome, old, bounds) == new)
    });
}
