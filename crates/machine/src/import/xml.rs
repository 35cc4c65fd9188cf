//! XML as hwloc writes it, versions 1 to 3 (hwloc2.dtd and hwloc.dtd of hwloc).
//!
//! Of each object only its type, CPUs and number are taken: every set of CPUs is written out, so what
//! is nested in what need not be known. Devices and the like are skipped. No entity but XML's own is
//! expanded.

use super::Format;
use super::objects::{CACHE_LEVEL_MAX, Kind, Object, Objects};
use crate::error::MachineError;
use crate::mask::CpuMask;
use distances::{Latencies, Table};
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};

mod distances;

/// The deepest nesting; hwloc's trees have some twenty levels.
const DEPTH_MAX: usize = 256;
/// The most objects that are kept: all levels of the largest machine are far fewer.
const OBJECTS_MAX: usize = 1 << 16;

/// Reads the text; `file` is what errors call it.
pub(super) fn read(text: &str, file: &str) -> Result<(Format, Objects), MachineError> {
    let mut xml = quick_xml::Reader::from_str(text);
    xml.config_mut().expand_empty_elements = true;
    let mut reader = Reader {
        line: 1,
        format: None,
        objects: Objects {
            file: Some(file.to_owned()),
            ..Objects::default()
        },
        stack: Vec::new(),
        nested_nodes: Vec::new(),
        tables: Vec::new(),
        latencies: Vec::new(),
    };
    let mut counted = 0;
    loop {
        let event = xml.read_event();
        let position = usize::try_from(xml.buffer_position()).unwrap_or(text.len());
        let before = position.min(text.len());
        match event {
            Ok(Event::Start(start)) => {
                // An element is told by the line that it ends on: hwloc writes each on one.
                reader.line += lines(text, &mut counted, before);
                reader.start(&start)?;
            }
            Ok(Event::End(_)) => {
                reader.stack.pop();
            }
            Ok(Event::Text(content)) => {
                reader.line += lines(text, &mut counted, before);
                reader.text(&content.xml_content(XmlVersion::Explicit1_0))?;
            }
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => {
                let place = usize::try_from(xml.error_position()).unwrap_or(0);
                reader.line += lines(text, &mut counted, place.min(text.len()));
                let what = format!("well-formed XML: {error}");
                return Err(reader.objects.wrong(reader.line, "", &what));
            }
        }
    }
    if !reader.stack.is_empty() {
        let line = 1 + text.matches('\n').count();
        return Err(reader.objects.wrong(line, "", "the ends of all elements"));
    }
    let Some(format) = reader.format else {
        return Err(reader.objects.wrong(1, "", "an element 'topology'"));
    };
    reader.objects.distances = distances::of_nodes(&reader);
    Ok((format, reader.objects))
}

/// The line ends between what is counted and the place, which is counted then.
fn lines(text: &str, counted: &mut usize, place: usize) -> usize {
    let from = (*counted).min(place);
    *counted = place.max(*counted);
    text.as_bytes()[from..place]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// An element that has begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    Topology,
    Object,
    CpuKind(CpuMask),
    /// A `distances2` of version 2, or a `distances` of version 1.
    Distances,
    Indexes,
    Values,
    Other,
}

struct Reader {
    line: usize,
    format: Option<Format>,
    objects: Objects,
    stack: Vec<Element>,
    /// Nodes with the number of objects that each is in, for the distances of version 1.
    nested_nodes: Vec<(usize, usize)>,
    tables: Vec<Table>,
    latencies: Vec<Latencies>,
}

/// An element's attributes.
struct Attributes(Vec<(String, String)>);

impl Attributes {
    fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }
}

impl Reader {
    fn wrong(&self, word: &str, expected: &str) -> MachineError {
        self.objects.wrong(self.line, word, expected)
    }

    fn attributes(&self, start: &BytesStart<'_>) -> Result<Attributes, MachineError> {
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute =
                attribute.map_err(|error| self.wrong("", &format!("attributes: {error}")))?;
            let value = attribute
                .normalized_value(XmlVersion::Explicit1_0)
                .map_err(|error| self.wrong("", &format!("an attribute's value: {error}")))?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Attributes(attributes))
    }

    fn start(&mut self, start: &BytesStart<'_>) -> Result<(), MachineError> {
        if self.stack.len() >= DEPTH_MAX {
            let expected = format!("at most {DEPTH_MAX} elements within each other");
            return Err(self.wrong(start.name().as_ref(), &expected));
        }
        let parent = self.stack.last().copied();
        let attributes = self.attributes(start)?;
        let element = match (start.name().as_ref(), parent) {
            ("topology", None) if self.format.is_none() => self.topology(&attributes)?,
            (name, None) => return Err(self.wrong(name, "one element 'topology' around all")),
            ("object", Some(Element::Topology | Element::Object)) => self.object(&attributes)?,
            ("info", _) => self.info(&attributes, parent)?,
            ("cpukind", Some(Element::Topology)) => {
                Element::CpuKind(self.cpus(&attributes, "cpuset")?.unwrap_or_default())
            }
            ("distances2", Some(Element::Topology)) => {
                self.tables.push(Table::new(&attributes));
                Element::Distances
            }
            ("distances", Some(Element::Object)) => {
                let depth = self.objects_around();
                self.latencies.push(Latencies::new(&attributes, depth));
                Element::Distances
            }
            ("latency", Some(Element::Distances)) => self.latency(&attributes)?,
            ("indexes", Some(Element::Distances)) => Element::Indexes,
            ("u64values", Some(Element::Distances)) => Element::Values,
            _ => Element::Other,
        };
        self.stack.push(element);
        Ok(())
    }

    fn topology(&mut self, attributes: &Attributes) -> Result<Element, MachineError> {
        let version = attributes.get("version");
        let Some(format) = Format::of_xml(version) else {
            let expected = "version 1, 2 or 3 of hwloc's XML";
            return Err(self.wrong(version.unwrap_or_default(), expected));
        };
        self.format = Some(format);
        Ok(Element::Topology)
    }

    fn objects_around(&self) -> usize {
        let objects = self
            .stack
            .iter()
            .filter(|&&element| element == Element::Object);
        objects.count()
    }

    fn cpus(&self, attributes: &Attributes, key: &str) -> Result<Option<CpuMask>, MachineError> {
        let Some(value) = attributes.get(key) else {
            return Ok(None);
        };
        let mask = CpuMask::from_hex_words(value);
        mask.map(Some)
            .map_err(|error| self.wrong(value, &format!("a set of CPUs: {error}")))
    }

    fn number(&self, attributes: &Attributes, key: &str) -> Result<Option<usize>, MachineError> {
        let Some(value) = attributes.get(key) else {
            return Ok(None);
        };
        match value.parse::<u32>() {
            // hwloc's word for an unknown number.
            Ok(u32::MAX) => Ok(None),
            Ok(number) => Ok(Some(number as usize)),
            Err(_) => Err(self.wrong(value, &format!("a number as {key}"))),
        }
    }

    fn object(&mut self, attributes: &Attributes) -> Result<Element, MachineError> {
        let Some(name) = attributes.get("type") else {
            return Err(self.wrong("object", "an attribute 'type'"));
        };
        if self.stack.len() == 1 {
            self.objects.online = self.cpus(attributes, "online_cpuset")?;
            let complete = self.cpus(attributes, "complete_cpuset")?;
            self.objects.complete = complete.unwrap_or_default();
        }
        let Some(kind) = self.kind(name, attributes)? else {
            return Ok(Element::Object);
        };
        let Some(cpus) = self.cpus(attributes, "cpuset")? else {
            return Err(self.wrong(name, "an attribute 'cpuset'"));
        };
        if self.objects.list.len() >= OBJECTS_MAX {
            return Err(self.wrong(name, &format!("at most {OBJECTS_MAX} objects with CPUs")));
        }
        if kind == Kind::Node {
            let depth = self.objects_around();
            self.nested_nodes.push((self.objects.list.len(), depth));
        }
        self.objects.list.push(Object {
            kind,
            cpus,
            os_index: self.number(attributes, "os_index")?,
            place: self.line,
        });
        Ok(Element::Object)
    }

    /// What an object's type means; nothing if it does not matter here.
    fn kind(&self, name: &str, attributes: &Attributes) -> Result<Option<Kind>, MachineError> {
        let level = |word: &str| match word.parse::<u8>() {
            Ok(level @ 1..=CACHE_LEVEL_MAX) => Ok(level),
            _ => Err(self.wrong(word, &format!("a cache level from 1 to {CACHE_LEVEL_MAX}"))),
        };
        Ok(match name {
            "Package" | "Socket" => Some(Kind::Package),
            "Die" => Some(Kind::Die),
            "Core" => Some(Kind::Core),
            "PU" => Some(Kind::Pu),
            "NUMANode" | "Node" => Some(Kind::Node),
            "Group" => (attributes.get("subtype") == Some("Cluster")).then_some(Kind::Cluster),
            "Cache" if attributes.get("cache_type") == Some("2") => None,
            "Cache" => Some(Kind::Cache(level(attributes.get("depth").unwrap_or(""))?)),
            _ => match name
                .strip_prefix('L')
                .and_then(|name| name.strip_suffix("Cache"))
            {
                Some(word) if !word.ends_with('i') => Some(Kind::Cache(level(word)?)),
                _ => None,
            },
        })
    }

    fn info(
        &mut self,
        attributes: &Attributes,
        parent: Option<Element>,
    ) -> Result<Element, MachineError> {
        let value = attributes.get("value").unwrap_or_default();
        match (attributes.get("name"), parent) {
            (Some("Architecture"), _) => self.objects.architecture = Some(value.to_owned()),
            (Some("CPUModel"), _) if self.objects.model.is_none() && !value.trim().is_empty() => {
                self.objects.model = Some(value.trim().to_owned());
            }
            (Some("LinuxCapacity"), Some(Element::CpuKind(cpus))) => match value.parse() {
                Ok(capacity @ 1..=1024) => self.objects.capacities.push((cpus, capacity)),
                _ => return Err(self.wrong(value, "a capacity from 1 to 1024")),
            },
            _ => {}
        }
        Ok(Element::Other)
    }

    fn latency(&mut self, attributes: &Attributes) -> Result<Element, MachineError> {
        let word = attributes.get("value").unwrap_or_default();
        let Ok(value) = word.parse::<f64>() else {
            return Err(self.wrong(word, "a number as latency"));
        };
        if let Some(latencies) = self.latencies.last_mut() {
            latencies.values.push(value);
        }
        Ok(Element::Other)
    }

    fn text(&mut self, text: &str) -> Result<(), MachineError> {
        let element = self.stack.last().copied();
        if !matches!(element, Some(Element::Indexes | Element::Values)) {
            return Ok(());
        }
        for word in text.split_whitespace() {
            // Objects other than nodes are told as TYPE:NUMBER where types are mixed.
            let number = word.rsplit(':').next().unwrap_or(word);
            let Ok(number) = number.parse::<u64>() else {
                return Err(self.wrong(word, "a number"));
            };
            if let Some(table) = self.tables.last_mut() {
                match element {
                    Some(Element::Indexes) => table.indexes.push(number),
                    _ => table.values.push(number),
                }
            }
        }
        Ok(())
    }
}
