//! Compares core scheduling as the model has it with calls recorded from a real 6.12: picks of a
//! core, comparisons of tasks on different CPUs, stealing.
//!
//! `tests/data/core` holds a sample; with `WAKELAB_ORACLE2` set to a directory, all files
//! `KIND__*.jsonl.gz` there are read instead. Every check puts a scheduler into the state of one
//! record and calls the very functions that the simulator calls.

mod compare;
mod pick;
#[path = "../support/replay.rs"]
mod replay;
mod scene;
mod steal;
#[path = "../support/mod.rs"]
mod support;

#[test]
fn comparisons() {
    replay::all_agree("core", "cless", compare::cless);
}

#[test]
fn picks() {
    replay::all_agree("core", "core", pick::core);
}

#[test]
fn stealing() {
    replay::all_agree("core", "steal", steal::steal);
}

mod the_checks_themselves {
    use crate::replay::Verdict;
    use serde_json::{Value, json};

    fn differs(check: fn(&Value, &Value) -> crate::replay::Checked, value: &Value) -> bool {
        let header = json!({"ncpu": 4, "cpus": [
            {"cpu": 0, "smt": 5}, {"cpu": 1, "smt": 10}, {"cpu": 2, "smt": 5}, {"cpu": 3, "smt": 10},
        ]});
        let verdict = check(&header, value).expect("the record can be read");
        matches!(verdict, Verdict::Differs(_))
    }

    /// Any number of the outcome changed is seen.
    fn each_is_seen(
        check: fn(&Value, &Value) -> crate::replay::Checked,
        right: &Value,
        outcome: &[&str],
    ) {
        assert!(!differs(check, right), "{right}");
        for pointer in outcome {
            let mut wrong = right.clone();
            let value = wrong.pointer_mut(pointer).expect("it is there");
            *value = (value.as_i64().unwrap_or(0) + 1).into();
            assert!(differs(check, &wrong), "{pointer} of {wrong}");
        }
        assert!(check(&json!({"ncpu": 1, "cpus": []}), &json!({})).is_err());
    }

    #[test]
    fn see_a_difference_in_a_comparison() {
        let value = json!({"a": 5, "b": 6, "fi": 0, "fs": 3, "ca": 0, "cb": 2,
            "A": [[-2, 0, 150, 100, 90, 1]], "B": [[-2, 0, 260, 220, 10, 2]],
            "A1": [[100, 1]], "B1": [[220, 2]], "r": 1});
        each_is_seen(
            crate::compare::cless,
            &value,
            &["/A1/0/0", "/A1/0/1", "/B1/0/0", "/B1/0/1", "/r"],
        );
    }

    #[test]
    fn see_a_difference_in_a_pick() {
        // CPU 2 is 40 behind and CPU 0 is 50: the task of CPU 2 wins, and CPU 0 is forced idle.
        let value = json!({"path": 2, "cpu": 0, "core": 0, "smt": 5, "ck0": 1, "fi0": 0, "fs0": 3,
            "ts": 8, "ps": 7, "ss": 7, "cp": -1, "sib": [
            {"i": 0, "nr": 1, "cur": 5, "t": [5, 1, 119, 0, 150, 0],
             "ch": [[-2, 0, 150, 100, 0, 0]], "less": -1, "fi": 0, "fsq": 0},
            {"i": 2, "nr": 1, "cur": 0, "t": [6, 2, 119, 0, 260, 0],
             "ch": [[-2, 0, 260, 220, 0, 0]], "less": 1, "fi": 220, "fsq": 0}],
            "max": 6, "ck1": 2, "fin": [{"i": 0, "ct": [], "t": [0, 0, 140, 1, 0, 0]},
            {"i": 2, "ct": [[6, 0, 119, 260]], "t": [6, 2, 119, 0, 260, 0]}],
            "fi1": 1, "fs1": 4, "occ": 1, "next": 0});
        each_is_seen(
            crate::pick::core,
            &value,
            &[
                "/sib/1/less",
                "/sib/1/fi",
                "/sib/1/fsq",
                "/max",
                "/ck1",
                "/fin/0/t/0",
                "/fin/1/t/0",
                "/fi1",
                "/fs1",
                "/occ",
                "/next",
            ],
        );
    }

    #[test]
    fn see_a_difference_in_stealing() {
        let value = json!({"to": 0, "frm": 1, "ck": 1, "di": 1, "docc": 1, "spk": -1, "scur": 7,
            "cand": [[7, 0, 1, 1, 1, 0], [8, 0, 0, 1, 2, 0], [9, 0, 0, 1, 1, 0]],
            "code": 0, "pid": 9});
        each_is_seen(crate::steal::steal, &value, &["/code", "/pid"]);
    }
}
