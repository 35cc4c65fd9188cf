//! Recorded calls as values, and what a check says of one.

use serde_json::Value;
use wakelab_sched::{Feat, Features};

/// What came out of deciding a recorded call again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model does what the kernel did.
    Agrees,
    /// It does not, and in what.
    Differs(String),
}

impl Verdict {
    /// Compares what the model has with what the kernel had, by name.
    pub fn of(compared: &[(&str, u64, u64)]) -> Verdict {
        let differs: Vec<String> = compared
            .iter()
            .filter(|(_, model, kernel)| model != kernel)
            .map(|(name, model, kernel)| format!("{name}: model {model}, kernel {kernel}"))
            .collect();
        if differs.is_empty() {
            Verdict::Agrees
        } else {
            Verdict::Differs(differs.join("; "))
        }
    }

    /// Both must agree.
    pub fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::Agrees, verdict) | (verdict, Verdict::Agrees) => verdict,
            (Verdict::Differs(one), Verdict::Differs(two)) => {
                Verdict::Differs(format!("{one}; {two}"))
            }
        }
    }
}

/// A record that is not as the format says: the field that is missing or of another type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

/// A verdict, if the record can be read.
pub type Checked = Result<Verdict, Malformed>;

/// One call, with the header of its file.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The header in force.
    pub header: &'a Value,
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
    pub fn is(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }
}

/// An integer, modulo 2^64.
pub fn integer(value: &Value, name: &str) -> Result<u64, Malformed> {
    let signed = || value.as_i64().map(|n| n as u64);
    let number = value.as_u64().or_else(signed);
    number.ok_or_else(|| Malformed(name.to_owned()))
}

/// An entity in positional form.
pub fn entity(value: &Value, name: &str) -> Result<Entity, Malformed> {
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
    pub fn num(&self, name: &str) -> Result<u64, Malformed> {
        integer(&self.value[name], name)
    }

    /// An entity of the record.
    pub fn entity(&self, name: &str) -> Result<Entity, Malformed> {
        entity(&self.value[name], name)
    }

    /// A list of the record.
    pub fn list(&self, name: &str) -> Result<&'a Vec<Value>, Malformed> {
        self.value[name]
            .as_array()
            .ok_or_else(|| Malformed(name.to_owned()))
    }

    /// A run queue of the record.
    pub fn queue(&self, name: &str) -> Result<Queue, Malformed> {
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

    fn set(&self) -> Result<&'a Value, Malformed> {
        Ok(&self.header["sets"][self.num("s")? as usize])
    }

    /// The features in force.
    pub fn features(&self) -> Result<Features, Malformed> {
        let feats = self.set()?["feats"].as_object();
        let feats = feats.ok_or_else(|| Malformed("feats".to_owned()))?;
        let mut features = Features(0);
        for (name, on) in feats {
            if let Some(feat) = Feat::from_name(name) {
                features.set(feat, integer(on, name)? != 0);
            }
        }
        Ok(features)
    }

    /// Length of a tick, ns.
    pub fn tick(&self) -> Result<u64, Malformed> {
        Ok(1_000_000_000 / integer(&self.header["hz"], "hz")?.max(1))
    }

    /// The default slice in force, ns.
    pub fn base_slice(&self) -> Result<u64, Malformed> {
        match self.value.get("bs") {
            Some(slice) => integer(slice, "bs"),
            None => integer(&self.set()?["base_slice"], "base_slice"),
        }
    }
}
