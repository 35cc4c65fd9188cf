//! What a kernel developer may write under `/sys/kernel/debug/sched/domains/cpuN/domainM/`.

use super::{SchedDomain, SchedTopology};
use crate::excerpt;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A field of a scheduling domain that debugfs lets one write (kernel 6.12 `sched/debug.c`,
/// `register_sd()`; `max_newidle_lb_cost` is not here, which the kernel itself overwrites).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainField {
    /// `min_interval` in ms.
    MinInterval,
    /// `max_interval` in ms.
    MaxInterval,
    /// `busy_factor`.
    BusyFactor,
    /// `imbalance_pct`.
    ImbalancePct,
    /// `cache_nice_tries`.
    CacheNiceTries,
}

/// A field of all domains of one name, on all CPUs, set to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSetting {
    /// The domains' name: `SMT`, `CLS`, `MC`, `PKG` (`DIE` before 6.7), `NUMA` (of all distances).
    pub domain: String,
    /// The field.
    pub field: DomainField,
    /// Its value.
    pub value: u32,
}

/// Why a setting cannot be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DomainSettingError {
    /// It is not of the form `MC:cache_nice_tries=3`.
    #[error("'{text}': expected DOMAIN:FIELD=NUMBER, such as MC:cache_nice_tries=3", text = excerpt(.0))]
    Form(String),
    /// There is no such field.
    #[error("'{name}' is no field of a domain, expected one of {known}", name = excerpt(.0), known = names())]
    Unknown(String),
    /// debugfs only shows it.
    #[error("'{0}' is read-only, expected one of {known}", known = names())]
    ReadOnly(String),
    /// The value is out of range.
    #[error("{field} = {value}: expected a number from {low} to {high}", value = excerpt(.value))]
    Range {
        /// The field.
        field: DomainField,
        /// The value as written.
        value: String,
        /// The lowest taken.
        low: u32,
        /// The highest taken.
        high: u32,
    },
    /// No CPU has a domain of this name.
    #[error("the machine has no domain '{name}', expected one of {known}", name = excerpt(.name))]
    NoDomain {
        /// The name.
        name: String,
        /// The names that there are, lowest first.
        known: String,
    },
}

fn names() -> String {
    DomainField::ALL.map(DomainField::name).join(", ")
}

impl DomainField {
    /// All of them.
    pub const ALL: [DomainField; 5] = [
        DomainField::MinInterval,
        DomainField::MaxInterval,
        DomainField::BusyFactor,
        DomainField::ImbalancePct,
        DomainField::CacheNiceTries,
    ];

    /// Its file's name.
    pub fn name(self) -> &'static str {
        match self {
            DomainField::MinInterval => "min_interval",
            DomainField::MaxInterval => "max_interval",
            DomainField::BusyFactor => "busy_factor",
            DomainField::ImbalancePct => "imbalance_pct",
            DomainField::CacheNiceTries => "cache_nice_tries",
        }
    }

    /// The field of this name.
    ///
    /// # Errors
    /// If there is none, or debugfs only shows it.
    pub fn from_name(name: &str) -> Result<DomainField, DomainSettingError> {
        let mut all = DomainField::ALL.into_iter();
        if let Some(field) = all.find(|field| field.name() == name) {
            return Ok(field);
        }
        Err(match name {
            "flags" | "groups_flags" | "level" | "name" => {
                DomainSettingError::ReadOnly(name.to_owned())
            }
            _ => DomainSettingError::Unknown(name.to_owned()),
        })
    }

    /// What it may be. Narrower than in the kernel, which takes any number and computes with it: below
    /// 100 % `wake_affine_weight` wraps around, and an interval of 0 ms is none.
    fn range(self) -> RangeInclusive<u32> {
        match self {
            DomainField::MinInterval | DomainField::MaxInterval | DomainField::BusyFactor => {
                1..=1_000_000
            }
            DomainField::ImbalancePct => 100..=10_000,
            DomainField::CacheNiceTries => 0..=1_000_000_000,
        }
    }

    fn of(self, domain: &mut SchedDomain) -> &mut u32 {
        match self {
            DomainField::MinInterval => &mut domain.min_interval,
            DomainField::MaxInterval => &mut domain.max_interval,
            DomainField::BusyFactor => &mut domain.busy_factor,
            DomainField::ImbalancePct => &mut domain.imbalance_pct,
            DomainField::CacheNiceTries => &mut domain.cache_nice_tries,
        }
    }
}

impl fmt::Display for DomainField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DomainSetting {
    /// A setting by words, all of which are checked but for the domain's name, which depends on the
    /// machine.
    ///
    /// # Errors
    /// If there is no such field, or the value is out of its range.
    pub fn new(
        domain: &str,
        field: &str,
        value: &str,
    ) -> Result<DomainSetting, DomainSettingError> {
        let field = DomainField::from_name(field)?;
        let range = field.range();
        let number = value.parse().ok().filter(|value| range.contains(value));
        Ok(DomainSetting {
            domain: domain.to_owned(),
            field,
            value: number.ok_or_else(|| DomainSettingError::Range {
                field,
                value: value.to_owned(),
                low: *range.start(),
                high: *range.end(),
            })?,
        })
    }
}

/// `MC:cache_nice_tries=3`.
impl FromStr for DomainSetting {
    type Err = DomainSettingError;

    fn from_str(text: &str) -> Result<DomainSetting, DomainSettingError> {
        let form = || DomainSettingError::Form(text.to_owned());
        let (domain, rest) = text.split_once(':').ok_or_else(form)?;
        let (field, value) = rest.split_once('=').ok_or_else(form)?;
        if domain.is_empty() {
            return Err(form());
        }
        DomainSetting::new(domain, field, value)
    }
}

impl fmt::Display for DomainSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.domain, self.field, self.value)
    }
}

impl SchedTopology {
    /// Writes a setting into every domain of its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn set(&mut self, setting: &DomainSetting) -> Result<(), DomainSettingError> {
        let named = |domain: &&mut SchedDomain| domain.name == setting.domain;
        let mut any = false;
        for domain in self.domains.iter_mut().flatten().filter(named) {
            *setting.field.of(domain) = setting.value;
            any = true;
        }
        if any {
            return Ok(());
        }
        Err(DomainSettingError::NoDomain {
            name: setting.domain.clone(),
            known: self.domain_names().join(", "),
        })
    }

    /// The names of all domains, lowest first.
    fn domain_names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for domain in self.domains.iter().flatten() {
            if !names.contains(&domain.name) {
                names.push(domain.name);
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DomainRules, Machine};

    fn topology() -> SchedTopology {
        let machine = Machine::preset("epyc-9654-2s").unwrap();
        SchedTopology::build(&machine, &DomainRules::v6_12())
    }

    #[test]
    fn a_setting_is_in_all_domains_of_its_name_and_in_no_other() {
        let (before, mut after) = (topology(), topology());
        after
            .set(&"MC:cache_nice_tries=7".parse().unwrap())
            .unwrap();
        after.set(&"NUMA:max_interval=9".parse().unwrap()).unwrap();
        for (old, new) in before.domains.iter().zip(&after.domains) {
            for (old, new) in old.iter().zip(new) {
                let tries = if old.name == "MC" {
                    7
                } else {
                    old.cache_nice_tries
                };
                let longest = if old.name == "NUMA" {
                    9
                } else {
                    old.max_interval
                };
                assert_eq!((new.cache_nice_tries, new.max_interval), (tries, longest));
                assert_eq!(new.imbalance_pct, old.imbalance_pct);
            }
        }
    }

    #[test]
    fn each_field_is_written_to_its_own_place() {
        let mut topology = topology();
        for (place, field) in DomainField::ALL.into_iter().enumerate() {
            let setting = format!("SMT:{field}={}", 200 + place);
            topology.set(&setting.parse().unwrap()).unwrap();
        }
        let smt = &topology.domains[5][0];
        let values = [
            smt.min_interval,
            smt.max_interval,
            smt.busy_factor,
            smt.imbalance_pct,
            smt.cache_nice_tries,
        ];
        assert_eq!(values, [200, 201, 202, 203, 204]);
    }

    #[test]
    fn what_it_prints_it_reads() {
        for field in DomainField::ALL {
            let setting = DomainSetting {
                domain: "PKG".to_owned(),
                field,
                value: 117,
            };
            assert_eq!(setting.to_string().parse(), Ok(setting));
        }
    }

    #[test]
    fn wrong_words_are_named() {
        for (text, word) in [
            ("", "DOMAIN:FIELD=NUMBER"),
            ("MC", "'MC'"),
            ("MC:cache_nice_tries", "DOMAIN:FIELD=NUMBER"),
            (":cache_nice_tries=1", "DOMAIN:FIELD=NUMBER"),
            ("MC:cache_nice_trees=1", "'cache_nice_trees' is no field"),
            ("MC:max_newidle_lb_cost=1", "is no field"),
            ("MC:flags=1", "'flags' is read-only"),
            ("MC:imbalance_pct=99", "from 100 to 10000"),
            ("MC:min_interval=0", "min_interval = 0"),
            ("MC:busy_factor=-1", "= -1:"),
            ("MC:cache_nice_tries=4294967296", "4294967296"),
        ] {
            let error = text.parse::<DomainSetting>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let error = topology()
            .set(&"DIE:busy_factor=1".parse().unwrap())
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the machine has no domain 'DIE', expected one of SMT, MC, PKG, NUMA"
        );
    }
}
