//! What the table of words says of a word.

use super::Feat;
use super::order::{ORDER_5_2, ORDER_6_5, ORDER_6_6, ORDER_6_12};
use super::rows::TABLE;
use crate::rules::Release;

/// Where a word comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The release itself has it.
    Release,
    /// A patch that was posted adds it; its default here is the stock kernel's behaviour.
    Patch,
}

/// Whether the model acts on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Of placement, of the fair class, or of balancing: it does, in every release that has it.
    Modelled,
    /// Of nothing that is modelled, and why.
    Outside(&'static str),
}

/// One word of `sched_features`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// The feature.
    pub feat: Feat,
    /// As the kernel spells it.
    pub name: &'static str,
    /// What it does, in a line.
    pub doc: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// In 5.2, 5.19, 6.5, 6.6 and 6.12.
    defaults: [Option<bool>; 5],
    part: Part,
}

impl Word {
    /// Its default in a release, none if the release does not have it.
    pub fn default_in(&self, release: Release) -> Option<bool> {
        let [v5_2, v5_19, v6_5, v6_6, v6_12] = self.defaults;
        match release {
            Release::V5_2 => v5_2,
            Release::V5_19 => v5_19,
            Release::V6_5 => v6_5,
            Release::V6_6 => v6_6,
            // 6.18 has the words of 6.12, as its stable series brought NI_RANDOM to both.
            Release::V6_12 | Release::V6_18 => v6_12,
        }
    }

    /// Why the model does not act on it under the rules of a release; none if it does.
    pub fn not_acted(&self, release: Release) -> Option<&'static str> {
        match self.part {
            Part::Outside(reason) => Some(reason),
            Part::Modelled if self.default_in(release).is_none() => {
                Some("the release does not have it")
            }
            Part::Modelled => None,
        }
    }

    /// Whether the model acts on it under the rules of a release.
    pub fn acted(&self, release: Release) -> bool {
        self.not_acted(release).is_none()
    }
}

/// The words of a release in the order in which it prints them, then those of posted patches.
pub fn words_of(release: Release) -> impl Iterator<Item = &'static Word> {
    let order: &[Feat] = match release {
        Release::V5_2 => &ORDER_5_2,
        Release::V5_19 | Release::V6_5 => &ORDER_6_5,
        Release::V6_6 => &ORDER_6_6,
        Release::V6_12 | Release::V6_18 => &ORDER_6_12,
    };
    let patches = TABLE
        .iter()
        .filter(move |word| word.origin == Origin::Patch && word.default_in(release).is_some());
    order.iter().map(|feat| feat.word()).chain(patches)
}

pub(super) const fn word(
    feat: Feat,
    name: &'static str,
    defaults: [Option<bool>; 5],
    part: Part,
    doc: &'static str,
) -> Word {
    Word {
        feat,
        name,
        doc,
        origin: Origin::Release,
        defaults,
        part,
    }
}

pub(super) const fn patch(
    feat: Feat,
    name: &'static str,
    defaults: [Option<bool>; 5],
    doc: &'static str,
) -> Word {
    let row = word(feat, name, defaults, Part::Modelled, doc);
    Word {
        origin: Origin::Patch,
        ..row
    }
}
