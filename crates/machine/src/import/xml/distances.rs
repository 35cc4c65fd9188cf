//! Distances between nodes, which versions 1 and 2 write differently.

use super::super::objects::Distances;
use super::{Attributes, Reader};

/// Values are latencies (hwloc's `HWLOC_DISTANCES_KIND_VALUE_LATENCY`; version 2).
const KIND_LATENCY: u32 = 1 << 2;

/// A `distances2` of version 2.
pub(super) struct Table {
    /// Whether it tells latencies between nodes by their numbers.
    fits: bool,
    pub indexes: Vec<u64>,
    pub values: Vec<u64>,
}

impl Table {
    pub fn new(attributes: &Attributes) -> Table {
        let kind = attributes
            .get("kind")
            .and_then(|kind| kind.parse::<u32>().ok());
        let latency = kind.is_some_and(|kind| kind & KIND_LATENCY != 0);
        let nodes = attributes.get("type") == Some("NUMANode");
        let by_number = attributes.get("indexing") == Some("os");
        Table {
            fits: latency && nodes && by_number,
            indexes: Vec::new(),
            values: Vec::new(),
        }
    }

    fn distances(&self) -> Option<Distances> {
        let count = self.indexes.len();
        if !self.fits || count == 0 || count.checked_mul(count)? != self.values.len() {
            return None;
        }
        let number = |value: &u64| u32::try_from(*value).unwrap_or(u32::MAX);
        let rows = self.values.chunks(count);
        Some(Distances {
            nodes: self.indexes.iter().map(|index| *index as usize).collect(),
            rows: rows.map(|row| row.iter().map(number).collect()).collect(),
        })
    }
}

/// A `distances` of version 1: between all objects at a depth, in the order in which they stand.
pub(super) struct Latencies {
    /// How many objects the objects are in.
    depth: Option<usize>,
    base: f64,
    pub values: Vec<f64>,
}

impl Latencies {
    /// Those of an object that is in `depth - 1` others.
    pub fn new(attributes: &Attributes, depth: usize) -> Latencies {
        let relative = attributes.get("relative_depth");
        let relative = relative.and_then(|depth| depth.parse::<usize>().ok());
        let base = attributes
            .get("latency_base")
            .and_then(|base| base.parse().ok());
        Latencies {
            depth: relative.and_then(|relative| (depth - 1).checked_add(relative)),
            base: base.unwrap_or(1.0),
            values: Vec::new(),
        }
    }

    fn distances(&self, reader: &Reader) -> Option<Distances> {
        let nodes = &reader.nested_nodes;
        let here = nodes.iter().all(|(_, depth)| Some(*depth) == self.depth);
        let count = nodes.len();
        if !here || count == 0 || count.checked_mul(count)? != self.values.len() {
            return None;
        }
        let number = |(order, (object, _)): (usize, &(usize, usize))| {
            reader.objects.list[*object].os_index.unwrap_or(order)
        };
        // A latency that is no distance becomes one that no SLIT has.
        let distance = |value: &f64| (value * self.base).round().clamp(0.0, 1e9) as u32;
        let rows = self.values.chunks(count);
        Some(Distances {
            nodes: nodes.iter().enumerate().map(number).collect(),
            rows: rows.map(|row| row.iter().map(distance).collect()).collect(),
        })
    }
}

/// The first distances between nodes that the file tells.
pub(super) fn of_nodes(reader: &Reader) -> Option<Distances> {
    let tables = reader.tables.iter().filter_map(Table::distances);
    let latencies = reader.latencies.iter();
    tables
        .chain(latencies.filter_map(|latencies| latencies.distances(reader)))
        .next()
}
