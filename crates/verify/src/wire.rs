//! The building blocks of records as they are written: flags, averages, scheduling entities.

use crate::error::Problem;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wakelab_machine::{CpuId, CpuMask};
use wakelab_sched::SchedAvg;
use wakelab_sched::state::UtilEst;

/// Reads a line as the JSON object that it should be.
///
/// # Errors
/// If it is not JSON, or a field is missing or of the wrong type; the error names the field.
pub(crate) fn from_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(line);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| Problem::json(&error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| Problem::json(".", &error))?;
    Ok(value)
}

/// A flag, written as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "u64")]
pub(crate) struct Flag(pub bool);

impl From<u64> for Flag {
    fn from(value: u64) -> Flag {
        Flag(value != 0)
    }
}

/// The largest amount taken. No load, weight, capacity or cost in ns comes near, and sums over all
/// CPUs and products with percentages of so much stay within 64 bits.
const MAX_AMOUNT: u64 = 1 << 40;

/// A load, weight, capacity or cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub(crate) struct Amount(pub u64);

impl TryFrom<u64> for Amount {
    type Error = String;

    fn try_from(value: u64) -> Result<Amount, String> {
        let refused = || format!("{value} where at most {MAX_AMOUNT} was expected");
        (value <= MAX_AMOUNT)
            .then_some(Amount(value))
            .ok_or_else(refused)
    }
}

/// A PELT average: last_update_time, load_sum, runnable_sum, util_sum, period_contrib, load_avg,
/// runnable_avg, util_avg, util_est.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "AvgList")]
pub(crate) struct Avg(pub SchedAvg);

type AvgList = (u64, u64, u64, u32, u32, Amount, Amount, Amount, u32);

/// The length of a PELT period in its own time unit.
const PERIOD: u32 = 1024;

impl TryFrom<AvgList> for Avg {
    type Error = String;

    fn try_from(list: AvgList) -> Result<Avg, String> {
        if list.4 >= PERIOD {
            return Err(format!("period_contrib {} is a whole period", list.4));
        }
        if list.0 > i64::MAX as u64 {
            return Err(format!("last_update_time {} is no time", list.0));
        }
        Ok(Avg(SchedAvg {
            last_update_time: list.0,
            load_sum: list.1,
            runnable_sum: list.2,
            util_sum: list.3,
            period_contrib: list.4,
            load_avg: list.5.0,
            runnable_avg: list.6.0,
            util_avg: list.7.0,
            util_est: UtilEst {
                enqueued: list.8,
                ewma: 0,
            },
        }))
    }
}

/// A CPU of a machine of so many.
///
/// # Errors
/// If there is none of this number.
pub(crate) fn cpu(field: &str, number: u64, ncpu: usize) -> Result<CpuId, Problem> {
    if number < ncpu as u64 {
        return Ok(CpuId(number as u16));
    }
    let expected = format!("a CPU below {ncpu}");
    Err(Problem::value(field, number, expected))
}

/// A set of CPUs of a machine of so many.
///
/// # Errors
/// If one of them does not exist.
pub(crate) fn mask(field: &str, bits: u64, ncpu: usize) -> Result<CpuMask, Problem> {
    if ncpu >= 64 || bits >> ncpu == 0 {
        return Ok(CpuMask::from_u64(bits));
    }
    let expected = format!("a mask of CPUs below {ncpu}");
    Err(Problem::value(field, format!("{bits:#x}"), expected))
}

/// The element of a list that an index in the record chooses.
///
/// # Errors
/// If the list is too short.
pub(crate) fn choose<T: Copy>(field: &str, list: &[T], index: usize) -> Result<T, Problem> {
    let expected = || format!("a number below {}", list.len());
    list.get(index)
        .copied()
        .ok_or_else(|| Problem::value(field, index, expected()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Example {
        _list: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        _flag: Flag,
    }

    fn problem(line: &str) -> String {
        from_line::<Example>(line.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn problems_name_the_field_and_what_was_expected() {
        let missing = problem(r#"{"_list":[{"_flag":1},{}]}"#);
        assert!(
            missing.contains("'_list[1]'") && missing.contains("missing field `_flag`"),
            "{missing}"
        );
        let wrong = problem(r#"{"_list":[{"_flag":"x"}]}"#);
        assert!(
            wrong.contains("'_list[0]._flag'") && wrong.contains("expected u64"),
            "{wrong}"
        );
        assert!(problem(r#"{"_list":["#).starts_with("not JSON"));
        assert!(problem(r#"{"_list":[]} {}"#).starts_with("not JSON"));
    }

    #[test]
    fn cpus_and_masks_past_the_machine_are_refused() {
        assert_eq!(cpu("prev", 7, 8).unwrap(), CpuId(7));
        assert_eq!(
            cpu("prev", 8, 8).unwrap_err().to_string(),
            "field 'prev': 8 where a CPU below 8 was expected"
        );
        assert!(mask("idl", 0xff, 8).is_ok() && mask("idl", u64::MAX, 64).is_ok());
        assert_eq!(
            mask("idl", 0x100, 8).unwrap_err().to_string(),
            "field 'idl': 0x100 where a mask of CPUs below 8 was expected"
        );
    }
}
