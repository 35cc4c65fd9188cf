//! Compares the model's arithmetic to the last digit with calls recorded from a real 6.12.
//!
//! `tests/data/oracle2` holds a sample; with `WAKELAB_ORACLE2` set to a directory, all files
//! `KIND__*.jsonl.gz` there are read instead.

mod support;

use flate2::read::GzDecoder;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wakelab_machine::{CpuId, CpuMask, Ns};
use wakelab_sched::fair::{average, group, task, util_est};
use wakelab_sched::state::{Policy, Removed, UtilEst};
use wakelab_sched::weight::{calc_delta, scale_load_down};
use wakelab_sched::{
    Features, Release, Rules, Sched, SchedAvg, TgId, Tunables, fair::TaskSpec, pelt,
};

fn files(kind: &str) -> Vec<PathBuf> {
    let Some(dir) = std::env::var_os("WAKELAB_ORACLE2") else {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/oracle2");
        return vec![data.join(format!("{kind}.jsonl.gz"))];
    };
    let entries = std::fs::read_dir(dir).expect("the directory can be read");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry can be read").path())
        .collect();
    let prefix = format!("{kind}__");
    files.retain(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
    });
    files.sort();
    files
}

/// Checks all records of a kind; those that the check takes as unusable (none) are left out.
fn check(kind: &str, mut agrees: impl FnMut(&Value) -> Option<bool>) {
    check_where(kind, |_, record| agrees(record));
}

/// The same for a check that also needs the header of the file, which a sample has none of.
fn check_where(kind: &str, mut agrees: impl FnMut(&Value, &Value) -> Option<bool>) {
    let (mut seen, mut differ, mut unusable) = (0, 0, 0);
    for path in files(kind) {
        let mut header = Value::Null;
        let file = File::open(&path).expect("the recording can be read");
        for line in BufReader::new(GzDecoder::new(file)).lines() {
            let line = line.expect("the recording can be read");
            let record: Value = serde_json::from_str(&line).expect("a record is JSON");
            if record["k"] == "hdr" {
                header = record;
                continue;
            }
            match agrees(&header, &record) {
                None => unusable += 1,
                Some(agrees) => {
                    seen += 1;
                    if !agrees {
                        if differ < 3 {
                            println!("{kind} differs: {record}");
                        }
                        differ += 1;
                    }
                }
            }
        }
    }
    println!("{kind}: {seen} records, {differ} differ, {unusable} unusable");
    assert!(seen > 0, "no records of {kind}");
    assert_eq!(differ, 0, "{kind}: of {seen}");
}

fn num(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| value.as_i64().map(|v| v as u64))
        .expect("an integer")
}

fn int(value: &Value) -> i64 {
    value
        .as_i64()
        .or_else(|| value.as_u64().map(|v| v as i64))
        .expect("an integer")
}

fn avg(value: &Value) -> SchedAvg {
    let at = |index: usize| num(&value[index]);
    SchedAvg {
        last_update_time: at(0),
        load_sum: at(1),
        runnable_sum: at(2),
        util_sum: at(3) as u32,
        period_contrib: at(4) as u32,
        load_avg: at(5),
        runnable_avg: at(6),
        util_avg: at(7),
        util_est: UtilEst {
            enqueued: at(8) as u32,
            ewma: 0,
        },
    }
}

fn has_util_est(header: &Value, record: &Value) -> bool {
    header["sets"][num(&record["s"]) as usize]["feats"]["UTIL_EST"] != 0
}

#[test]
fn pelt_sums_and_averages() {
    check_where("pelt", |header, r| {
        let mut a = avg(&r["a0"]);
        let (now, weight) = (num(&r["now"]), num(&r["w"]));
        let (load, runnable, running) = (num(&r["ld"]), num(&r["rn"]), num(&r["ru"]) != 0);
        let decayed = match num(&r["v"]) {
            0 => pelt::update_se(now, &mut a, weight, load != 0, runnable, running),
            1 => pelt::update_cfs_rq(now, &mut a, load, runnable, running),
            _ => pelt::update_blocked_se(now, &mut a, weight),
        };
        let mut expected = avg(&r["a1"]);
        if !has_util_est(header, r) {
            // The flag stays as it was when the feature was turned off.
            expected.util_est = a.util_est;
        }
        Some(a == expected && u64::from(decayed) == num(&r["r"]))
    });
}

#[test]
fn division_by_weight() {
    check("cdf", |r| {
        let mut inv = num(&r["i0"]) as u32;
        let delta = calc_delta(num(&r["d"]), num(&r["w"]), num(&r["lw"]), &mut inv);
        Some(delta == num(&r["r"]) && u64::from(inv) == num(&r["i1"]))
    });
}

#[test]
fn attaching_an_entity() {
    check("attach", |r| {
        let (mut se, mut cfs) = (avg(&r["e0"]), avg(&r["c0"]));
        let weight = scale_load_down(num(&r["w"]));
        let sum = average::attach_entity_load_avg(&mut cfs, &mut se, weight);
        let same = se == avg(&r["e1"]) && cfs == avg(&r["c1"]);
        Some(same && int(&r["p0"]).wrapping_add(sum) == int(&r["p1"]))
    });
}

#[test]
fn detaching_an_entity() {
    check("detach", |r| {
        let mut cfs = avg(&r["c0"]);
        let weight = scale_load_down(num(&r["w"]));
        let sum = average::detach_entity_load_avg(&mut cfs, &avg(&r["e0"]), weight);
        Some(cfs == avg(&r["c1"]) && int(&r["p0"]).wrapping_add(sum) == int(&r["p1"]))
    });
}

#[test]
fn taking_off_removed_load() {
    check("removed", |r| {
        let mut cfs = avg(&r["c0"]);
        let removed = Removed {
            nr: 1,
            load_avg: num(&r["rl"]),
            util_avg: num(&r["ru"]),
            runnable_avg: num(&r["rr"]),
        };
        let sum = average::take_removed(&mut cfs, &removed);
        Some(cfs == avg(&r["c1"]) && int(&r["p0"]).wrapping_add(sum) == int(&r["p1"]))
    });
}

#[test]
fn propagating_a_change_upwards() {
    check("prop", |r| {
        let (mut se, mut cfs) = (avg(&r["e0"]), avg(&r["c0"]));
        let (weight, gweight) = (
            scale_load_down(num(&r["w"])),
            scale_load_down(num(&r["gw"])),
        );
        let sum = int(&r["gp0"]);
        average::propagate(&mut cfs, &mut se, weight, &avg(&r["g"]), gweight, sum);
        let sums = int(&r["gp1"]) == 0 && int(&r["cp0"]).wrapping_add(sum) == int(&r["cp1"]);
        Some(se == avg(&r["e1"]) && cfs == avg(&r["c1"]) && sums)
    });
}

#[test]
fn a_group_entity_s_weight() {
    check("shares", |r| {
        let of = |total: &Value| {
            let (shares, weight, load) = (num(&r["sh"]), num(&r["lw"]), num(&r["la"]));
            group::calc_group_shares(shares, weight, load, num(total), num(&r["con"]))
        };
        let result = num(&r["r"]);
        // Another CPU may have changed the group's load during the call.
        let racy = r["tla"] != r["tla1"];
        let same = of(&r["tla"]) == result || racy && of(&r["tla1"]) == result;
        if racy && !same { None } else { Some(same) }
    });
}

#[test]
fn a_group_s_load() {
    check("tgla", |r| {
        let (now, last) = (num(&r["now"]), num(&r["l0"]));
        let (load, contrib) = (num(&r["la"]), num(&r["con0"]));
        let due = group::tg_update_due(now.wrapping_sub(last));
        let change = group::tg_load_change(load, contrib).filter(|_| due);
        let (con, last) = if change.is_some() {
            (load, now)
        } else {
            (contrib, last)
        };
        let total = int(&r["tla0"]) + change.unwrap_or(0);
        Some(con == num(&r["con1"]) && last == num(&r["l1"]) && total == int(&r["tla1"]))
    });
}

#[test]
fn estimated_utilisation() {
    check_where("uest", |header, r| {
        if !has_util_est(header, r) {
            return None;
        }
        let old = num(&r["e0"]) as u32;
        let (util, runnable, capacity) = (num(&r["ut"]), num(&r["rn"]), num(&r["cap"]));
        let new = if num(&r["sleep"]) != 0 {
            util_est::updated_single(old, util, runnable, capacity).unwrap_or(old)
        } else {
            old
        };
        Some(u64::from(new) == num(&r["e1"]))
    });
}

#[test]
fn a_new_task_s_utilisation() {
    check("init", |r| {
        let old = avg(&r["a0"]).util_avg;
        let weight = scale_load_down(num(&r["w"]));
        let util = task::initial_util(num(&r["cs"]), num(&r["cu"]), num(&r["cl"]), weight);
        let util = util.unwrap_or(old);
        Some(util == num(&r["ua"]) && util == num(&r["ra"]))
    });
}

#[test]
fn load_under_a_new_weight() {
    check("rewt", |r| {
        let mut se = avg(&r["a0"]);
        let load = |avg: &Value, sum: &Value| SchedAvg {
            load_avg: num(avg),
            load_sum: num(sum),
            ..SchedAvg::default()
        };
        let mut cfs = load(&r["cl0"], &r["cs0"]);
        let (old, new) = (
            scale_load_down(num(&r["e0"][4])),
            scale_load_down(num(&r["w"])),
        );
        average::reweight_load_avg(&mut cfs, &mut se, old, new);
        Some(se == avg(&r["a1"]) && cfs == load(&r["cl1"], &r["cs1"]))
    });
}

/// A scheduler with one task below so many nested groups.
fn nested(depth: usize) -> Sched {
    let rules = Rules::of(Release::V6_12);
    let tun = Tunables::for_machine(1, 250);
    let mut sched = Sched::new(Arc::new(support::flat(1, 1)), rules, Features(0), tun);
    sched.update_rq_clock(CpuId(0), Ns(1_000_000_000));
    let tg = (0..depth).fold(TgId::ROOT, |parent, _| {
        sched.add_group("group", parent, 1024)
    });
    sched.new_task(&TaskSpec {
        tg,
        mm: 0,
        policy: Policy::Normal,
        nice: 0,
        cpus: CpuMask::first_n(1),
        cpu: CpuId(0),
        kthread: false,
    });
    sched
}

#[test]
fn a_task_s_part_of_its_cpu_s_load() {
    check("hload", |r| {
        if num(&r["racy"]) != 0 {
            return None;
        }
        let levels = r["ch"].as_array().unwrap();
        let mut sched = nested(levels.len() - 1);
        let jiffies = sched.jiffies(CpuId(0));
        let task = wakelab_sched::TaskId(0);
        let task_se = sched.tasks[0].se;
        sched.se[task_se.index()].avg.load_avg = num(&r["pl"]);
        let mut chain = Vec::new();
        let mut cfs_id = sched.se[task_se.index()].cfs_rq;
        for level in levels {
            chain.push(cfs_id);
            let cfs = &mut sched.cfs[cfs_id.index()];
            cfs.last_h_load_update = if level[1] == r["j"] { jiffies } else { 0 };
            cfs.h_load = num(&level[2]);
            cfs.avg.load_avg = num(&level[3]);
            if cfs.owner.is_some() {
                let owner = &mut sched.se[cfs.owner.index()];
                owner.avg.load_avg = num(&level[4]);
                cfs_id = owner.cfs_rq;
            }
        }
        let result = sched.task_h_load(task);
        let h_load = |(cfs, value): (&wakelab_sched::CfsId, &Value)| {
            sched.cfs[cfs.index()].h_load == num(value)
        };
        Some(result == num(&r["r"]) && chain.iter().zip(r["h1"].as_array().unwrap()).all(h_load))
    });
}
