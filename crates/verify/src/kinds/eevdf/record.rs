//! Recorded calls of EEVDF as values, and their comparison.

use crate::error::Problem;
use crate::header::Header;
use crate::outcome::Comparison;
use serde_json::Value;
use wakelab_sched::Features;

/// Compares what the model has with what the kernel had, by name.
pub(super) fn of(compared: &[(&'static str, u64, u64)]) -> Comparison {
    let same = |all: Comparison, (name, model, kernel): &(&'static str, u64, u64)| {
        all.same(name, kernel, model)
    };
    compared.iter().fold(Comparison::new(), same)
}

/// A comparison, if the record can be read.
pub type Checked = Result<Comparison, Problem>;

/// One call, with the header of its file.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// The header in force.
    pub header: &'a Header,
    /// The record.
    pub value: &'a Value,
}

/// `cfs_rq` as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// `zero_vruntime`.
    pub zero: u64,
    /// `avg_vruntime`.
    pub sum: i64,
    /// `avg_load`.
    pub load: u64,
    /// Entities of this level.
    pub nr_running: u32,
    /// Whether there is a running entity.
    pub has_curr: bool,
    /// Whether that is queued.
    pub curr_queued: bool,
    /// Its weight.
    pub curr_weight: u64,
    /// Its vruntime.
    pub curr_vruntime: u64,
    /// Tasks of this level and below.
    pub h_nr_queued: u32,
}

/// `sched_entity` as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its pid, or less than 0 for a group's.
    pub id: i64,
    /// `vruntime`.
    pub vruntime: u64,
    /// `deadline`.
    pub deadline: u64,
    /// `vlag`.
    pub vlag: i64,
    /// `load.weight`.
    pub weight: u64,
    /// `load.inv_weight`.
    pub inv_weight: u32,
    /// `slice`.
    pub slice: u64,
    /// Its flags.
    pub flags: u64,
}

/// Flags of an entity.
pub mod fl {
    pub const CUSTOM_SLICE: u64 = 1;
    pub const REL_DEADLINE: u64 = 2;
    pub const ON_RQ: u64 = 4;
    pub const DELAYED: u64 = 8;
    pub const TASK: u64 = 16;
    pub const CURR: u64 = 32;
}

impl Entity {
    /// Whether a flag is set.
    pub(super) fn is(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// An integer, modulo 2^64.
pub(super) fn integer(value: &Value, name: &str) -> Result<u64, Problem> {
    let signed = || value.as_i64().map(|n| n as u64);
    let number = value.as_u64().or_else(signed);
    number.ok_or_else(|| Problem::value(name, value, "an integer"))
}

/// An entity in positional form.
pub(super) fn entity(value: &Value, name: &str) -> Result<Entity, Problem> {
    let at = |index: usize| integer(&value[index], name);
    Ok(Entity {
        id: at(0)? as i64,
        vruntime: at(1)?,
        deadline: at(2)?,
        vlag: at(3)? as i64,
        weight: at(4)?,
        inv_weight: at(5)? as u32,
        slice: at(6)?,
        flags: at(7)?,
    })
}

impl<'a> Record<'a> {
    /// A number of the record.
    pub(super) fn num(&self, name: &str) -> Result<u64, Problem> {
        integer(&self.value[name], name)
    }

    /// An entity of the record.
    pub(super) fn entity(&self, name: &str) -> Result<Entity, Problem> {
        entity(&self.value[name], name)
    }

    /// A list of the record.
    pub(super) fn list(&self, name: &str) -> Result<&'a Vec<Value>, Problem> {
        let list = self.value[name].as_array();
        list.ok_or_else(|| Problem::value(name, &self.value[name], "a list"))
    }

    /// A run queue of the record.
    pub(super) fn queue(&self, name: &str) -> Result<Queue, Problem> {
        let at = |index: usize| integer(&self.value[name][index], name);
        let curr = at(4)?;
        Ok(Queue {
            zero: at(0)?,
            sum: at(1)? as i64,
            load: at(2)?,
            nr_running: at(3)? as u32,
            has_curr: curr & 1 != 0,
            curr_queued: curr & 2 != 0,
            curr_weight: at(5)?,
            curr_vruntime: at(6)?,
            h_nr_queued: at(7)? as u32,
        })
    }

    fn set(&self) -> Result<usize, Problem> {
        Ok(self.num("s")? as usize)
    }

    /// The features in force.
    pub(super) fn features(&self) -> Result<Features, Problem> {
        self.header.features(self.set()?)
    }

    /// The default slice in force, ns.
    pub(super) fn base_slice(&self) -> Result<u64, Problem> {
        match self.value.get("bs") {
            Some(slice) => integer(slice, "bs"),
            None => self.header.base_slice(self.set()?),
        }
    }
}
