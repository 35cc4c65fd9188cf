//! How a task or a phase is scheduled.

use super::Reader;
use super::global::class;
use crate::rtapp::fields::{Checked, Fields, int, micros, mismatch};
use crate::rtapp::file::{Class, Properties};
use crate::rtapp::json::Node;
use wakelab_machine::Ns;
use wakelab_sched::state::Policy;
use wakelab_sim::Group;

/// The keys of tasks and phases that are no events.
pub(super) const KEYS: [&str; 17] = [
    "instance",
    "delay",
    "loop",
    "phases",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "runtime",
    "period",
    "deadline",
    "cpus",
    "nodes_membind",
    "util_min",
    "util_max",
    "taskgroup",
];

/// The priority of real-time tasks that give none.
const REAL_TIME_PRIORITY: i32 = 10;
/// What rt-app is built for (`max_nbr_tgs`).
const MAX_TASKGROUPS: usize = 32;
const MAX_LEVELS: usize = 32;

pub(super) const AS_FAIR: &str = "SCHED_FIFO, SCHED_RR and SCHED_DEADLINE are run as SCHED_OTHER at nice -20: \
     the model has the fair class only";
const NO_CLAMP: &str =
    "'util_min' and 'util_max' do nothing: the model has no utilisation clamping";
const NO_MEMBIND: &str = "'nodes_membind' does nothing: the model does not place memory";

/// What a task is scheduled by as its phases go on, to check what they change.
#[derive(Debug)]
pub(super) struct Running {
    class: Class,
    in_group: bool,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            class: Class::Fair(Policy::Normal),
            in_group: false,
        }
    }
}

impl Reader<'_> {
    /// The properties of a task, which has a default policy, or of a phase, which changes what it names.
    pub(super) fn properties(
        &mut self,
        fields: Fields,
        default: Option<Class>,
        running: &mut Running,
    ) -> Checked<Properties> {
        let class = match fields.get("policy") {
            Some(node) => Some(class(node, "policy")?),
            None => default,
        };
        running.class = class.unwrap_or(running.class);
        if let Some(node) = fields.get("policy")
            && !matches!(running.class, Class::Fair(_))
        {
            self.warn(node.at, AS_FAIR);
        }
        let priority = priority(fields, running.class)?.or(class.map(default_priority));
        let slice = slice(fields, default.is_some())?;
        self.check_unmodelled(fields)?;
        let group = self.taskgroup(fields, running)?;
        Ok(Properties {
            class,
            priority,
            slice: slice.filter(|_| matches!(running.class, Class::Fair(_))),
            cpus: self.cpus(fields)?,
            group,
        })
    }

    fn cpus(&mut self, fields: Fields) -> Checked<Option<Vec<u32>>> {
        let numbers = fields.numbers("cpus")?;
        if let (Some(node), Some(numbers)) = (fields.get("cpus"), &numbers) {
            numbers
                .iter()
                .for_each(|&number| self.names_cpu(number, node.at));
        }
        Ok(numbers)
    }

    /// Notes a CPU that the machine must have.
    pub(super) fn names_cpu(&mut self, cpu: u32, at: usize) {
        let highest = self.file.highest_cpu.as_ref();
        if highest.is_none_or(|(highest, _)| *highest < cpu) {
            self.file.highest_cpu = Some((cpu, (self.place)(at)));
        }
    }

    /// What is checked and told, and has no effect.
    fn check_unmodelled(&mut self, fields: Fields) -> Checked<()> {
        for key in ["util_min", "util_max"] {
            if let Some(node) = fields.get(key) {
                if !(-1..=1024).contains(&int(node, key)?) {
                    return Err(mismatch(node, key, "a number from -1 to 1024"));
                }
                self.warn(node.at, NO_CLAMP);
            }
        }
        if let (Some(node), Some(_)) = (
            fields.get("nodes_membind"),
            fields.numbers("nodes_membind")?,
        ) {
            self.warn(node.at, NO_MEMBIND);
        }
        Ok(())
    }

    fn taskgroup(&mut self, fields: Fields, running: &mut Running) -> Checked<Option<u32>> {
        let node = fields.get("taskgroup");
        let path = fields.text("taskgroup")?.unwrap_or_default();
        let (Some(node), false) = (node, path.is_empty()) else {
            if running.in_group && !matches!(running.class, Class::Fair(_)) {
                return Err(not_fair(fields.get("policy").or(node), fields));
            }
            return Ok(None);
        };
        running.in_group = true;
        if !matches!(running.class, Class::Fair(_)) {
            return Err(not_fair(Some(node), fields));
        }
        if !path.starts_with('/') {
            return Err(mismatch(node, "taskgroup", "a path that starts with '/'"));
        }
        let levels: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
        if levels.is_empty() || levels.len() > MAX_LEVELS {
            return Err(mismatch(node, "taskgroup", "a path of 1 to 32 names"));
        }
        self.taskgroups.insert(levels.join("/"));
        if self.taskgroups.len() > MAX_TASKGROUPS {
            return Err(mismatch(node, "taskgroup", "at most 32 groups"));
        }
        Ok(Some(self.group(&levels)))
    }

    /// The number of a group, with those that it is in.
    fn group(&mut self, levels: &[&str]) -> u32 {
        let mut parent = None;
        let mut path = String::new();
        for name in levels {
            path.push('/');
            path.push_str(name);
            let number = self.groups.number(&path);
            if number as usize == self.file.groups.len() {
                let name = path.clone();
                self.file.groups.push(Group { name, parent });
            }
            parent = Some(number);
        }
        parent.unwrap_or_default()
    }
}

fn not_fair(node: Option<&Node>, fields: Fields) -> crate::rtapp::fields::Problem {
    const EXPECTED: &str = "SCHED_OTHER, SCHED_BATCH or SCHED_IDLE in a taskgroup";
    match node {
        Some(node) => mismatch(node, "policy", EXPECTED),
        None => crate::rtapp::fields::Problem {
            at: fields.members.first().map_or(0, |member| member.at),
            word: "SCHED_FIFO".to_owned(),
            expected: EXPECTED.to_owned(),
        },
    }
}

/// A nice level or a real-time priority, within its range.
fn priority(fields: Fields, class: Class) -> Checked<Option<i32>> {
    let Some(node) = fields.get("priority") else {
        return Ok(None);
    };
    let given = int(node, "priority")?;
    let (range, expected) = match class {
        Class::Fair(_) => (-20..=19, "a nice level from -20 to 19"),
        Class::RealTime => (1..=99, "a real-time priority from 1 to 99"),
        Class::Deadline => (i32::MIN..=i32::MAX, ""),
    };
    if range.contains(&given) {
        return Ok(Some(given));
    }
    Err(mismatch(node, "priority", expected))
}

fn default_priority(class: Class) -> i32 {
    match class {
        Class::RealTime => REAL_TIME_PRIORITY,
        Class::Fair(_) | Class::Deadline => 0,
    }
}

/// `dl-runtime`, which is a slice for the fair policies; 0 is none. The others are SCHED_DEADLINE's, and
/// so are the keys of old files, which only tasks have.
fn slice(fields: Fields, task: bool) -> Checked<Option<Ns>> {
    for key in ["dl-period", "dl-deadline"] {
        fields.get(key).map(|node| micros(node, key)).transpose()?;
    }
    if task {
        for key in ["period", "deadline"] {
            fields.int(key)?;
        }
    }
    let slice = fields
        .get("dl-runtime")
        .map(|node| micros(node, "dl-runtime"));
    Ok(slice.transpose()?.filter(|slice| slice.0 > 0))
}
