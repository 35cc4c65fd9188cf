//! The list of variants in an experiment's file.

use super::error::{ExperimentError, Place};
use super::{BASELINE, Variant, domains, with_words};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use toml::Spanned;
use wakelab_sched::features::FeatureSet;
use wakelab_sched::rules::Release;

/// The list as it stands in the file.
pub type List = Spanned<Vec<Spanned<Entry>>>;

/// A variant as it stands in the list.
pub enum Entry {
    /// Feature words, which are its name too.
    Words(String),
    /// A name, and what differs from the baseline.
    Table(Table),
}

/// `{ name = "...", features = "...", domains = { ... }, workload = "...", with = ["..."], smt = "off" }`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    name: Spanned<String>,
    features: Option<Spanned<String>>,
    #[serde(default)]
    domains: domains::Tables,
    workload: Option<Spanned<String>>,
    with: Option<Vec<Spanned<String>>>,
    smt: Option<Spanned<String>>,
}

/// By hand, since an untagged enum loses the places in the file.
impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        struct EntryVisitor;

        impl<'de> Visitor<'de> for EntryVisitor {
            type Value = Entry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("feature words or { name, features, domains, workload, with, smt }")
            }

            fn visit_str<E: Error>(self, words: &str) -> Result<Entry, E> {
                Ok(Entry::Words(words.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                Table::deserialize(MapAccessDeserializer::new(map)).map(Entry::Table)
            }
        }

        deserializer.deserialize_any(EntryVisitor)
    }
}

/// The longest name of a variant, characters.
const MAX_NAME: usize = 60;

/// The variants on top of the features that all have, of which the first is the baseline and no two have the same name.
pub fn read(
    place: Place<'_>,
    release: Release,
    base: FeatureSet,
    list: &List,
) -> Result<Vec<Variant>, ExperimentError> {
    let mut variants: Vec<Variant> = Vec::new();
    for entry in list.get_ref() {
        let variant = match entry.get_ref() {
            Entry::Words(words) => Variant::parse(release, base, words)
                .map_err(|error| place.error(entry.span(), error.to_string()))?,
            Entry::Table(table) => read_table(place, release, base, entry, table)?,
        };
        if variants.iter().any(|other| other.name == variant.name) {
            return Err(place.error(entry.span(), "the variant stands twice in the list"));
        }
        variants.push(variant);
    }
    if variants.first().is_none_or(|first| first.name != BASELINE) {
        return Err(place.error(list.span(), "expected \"baseline\" as the first variant"));
    }
    Ok(variants)
}

fn read_table(
    place: Place<'_>,
    release: Release,
    base: FeatureSet,
    entry: &Spanned<Entry>,
    table: &Table,
) -> Result<Variant, ExperimentError> {
    let is_own = table.features.is_some()
        || !table.domains.is_empty()
        || table.workload.is_some()
        || table.with.is_some()
        || table.smt.is_some();
    if !is_own {
        return Err(place.error(
            entry.span(),
            "expected `features`, `domains`, `workload`, `with` or `smt`, in which the variant differs from the baseline",
        ));
    }
    let name = place.check(&table.name, |name| check_name(name))?;
    let words = table.features.as_ref().map_or("", |words| words.get_ref());
    let words: Vec<&str> = words.split_whitespace().collect();
    let features = match &table.features {
        None => base,
        Some(given) => place.check(given, |_| with_words(release, base, &words))?,
    };
    let workload = match &table.workload {
        None => None,
        Some(line) => Some(place.check(line, |line| place.workload(line))?),
    };
    Ok(Variant {
        name,
        words: words.into_iter().map(str::to_owned).collect(),
        features,
        domains: domains::read(place, &table.domains)?,
        workload,
        with: match &table.with {
            None => None,
            Some(lines) => Some(place.companions(lines)?),
        },
        smt: place.smt(&table.smt)?,
    })
}

fn check_name(name: &str) -> Result<String, String> {
    if name == BASELINE {
        return Err(format!("'{BASELINE}' is the variant that changes nothing"));
    }
    let good = name.trim() == name && !name.is_empty() && !name.contains(char::is_control);
    if !good || name.chars().count() > MAX_NAME {
        return Err(format!(
            "expected a name of 1 to {MAX_NAME} characters on one line"
        ));
    }
    Ok(name.to_owned())
}
