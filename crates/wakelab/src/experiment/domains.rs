//! Settings of scheduling domains, `[domains.MC]` with `cache_nice_tries = 3`, in an experiment's file.

use super::error::{ExperimentError, Place};
use std::collections::BTreeMap;
use toml::{Spanned, Value};
use wakelab_machine::{DomainSetting, DomainSettingError};

/// Values by domain and field, as they stand in the file.
pub type Tables = BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, Spanned<Value>>>;

/// A setting, and where it stands: whether there is such a domain only the machine tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedSetting {
    /// The setting.
    pub setting: DomainSetting,
    /// Where it stands, for errors.
    pub at: String,
}

/// The settings of these tables, in the order of names.
pub fn read(place: Place<'_>, tables: &Tables) -> Result<Vec<PlacedSetting>, ExperimentError> {
    let mut settings = Vec::new();
    for (domain, fields) in tables {
        for (field, value) in fields {
            let setting = setting(domain.get_ref(), field.get_ref(), value.get_ref());
            let setting = setting.map_err(|error| {
                let span = match error {
                    DomainSettingError::Range { .. } => value.span(),
                    _ => field.span(),
                };
                place.error(span, error.to_string())
            })?;
            let at = place.name(&domain.span());
            settings.push(PlacedSetting { setting, at });
        }
    }
    Ok(settings)
}

fn setting(domain: &str, field: &str, value: &Value) -> Result<DomainSetting, DomainSettingError> {
    DomainSetting::new(domain, field, &value.to_string())
}
