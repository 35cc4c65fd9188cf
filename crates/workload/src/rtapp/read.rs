//! From JSON to what a file says: `global`, `resources`, `tasks`, phases and properties.
//!
//! Keys, defaults and checks are those of `rt-app_parse_config.c`; what rt-app refuses is refused, and so
//! is what would have it wait or spin for ever by an odd number.

mod event;
mod global;
mod properties;

use super::fields::{Checked, Fields, Problem, count, mismatch};
use super::file::{Barrier, Event, File, Loops, Phase, Task};
use super::json::{Member, Node};
use crate::options::MAX_TASKS;
use properties::Running;
use std::collections::{BTreeMap, BTreeSet};
use wakelab_machine::Ns;

/// Reads a file's outermost value. `place` writes a place for warnings.
pub(super) fn read(root: &Node, place: &dyn Fn(usize) -> String) -> Checked<File> {
    let fields = Fields::of(root, "the file")?;
    let mut reader = Reader::new(place);
    for member in fields.members {
        reader.check_key(member, &["global", "resources", "tasks"]);
    }
    if let Some(node) = fields.get("global") {
        let global = global::read(&mut reader, Fields::of(node, "global")?)?;
        reader.file.global = global;
    }
    if let Some(node) = fields.get("resources") {
        reader.resources(node)?;
    }
    let tasks = fields.get("tasks").ok_or(Problem {
        at: root.at,
        word: "{".to_owned(),
        expected: "a key 'tasks' in the file".to_owned(),
    })?;
    for member in Fields::of(tasks, "tasks")?.members {
        let task = reader.task(member)?;
        reader.file.tasks.push(task);
    }
    reader.finish(tasks)
}

/// Numbers for names, in the order in which they are first seen.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_owned()).or_insert(next)
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }
}

struct Reader<'a> {
    file: File,
    place: &'a dyn Fn(usize) -> String,
    mutexes: Names,
    condvars: Names,
    semaphores: Names,
    timers: Names,
    barriers: Names,
    groups: Names,
    forks: Names,
    /// Where each name of a `fork` is first seen.
    fork_places: Vec<usize>,
    /// Users of each barrier.
    users: Vec<u64>,
    /// Names of `suspend`, each with its task's, in the order of their events.
    suspended: Vec<(String, String)>,
    resumed: BTreeSet<String>,
    /// The paths of `taskgroup`.
    taskgroups: BTreeSet<String>,
    warned: BTreeSet<&'static str>,
}

impl<'a> Reader<'a> {
    fn new(place: &'a dyn Fn(usize) -> String) -> Reader<'a> {
        Reader {
            file: File::default(),
            place,
            mutexes: Names::default(),
            condvars: Names::default(),
            semaphores: Names::default(),
            timers: Names::default(),
            barriers: Names::default(),
            groups: Names::default(),
            forks: Names::default(),
            fork_places: Vec::new(),
            users: Vec::new(),
            suspended: Vec::new(),
            resumed: BTreeSet::new(),
            taskgroups: BTreeSet::new(),
            warned: BTreeSet::new(),
        }
    }

    /// Says something about a place, once for each `what`.
    fn warn(&mut self, at: usize, what: &'static str) {
        if self.warned.insert(what) {
            let place = (self.place)(at);
            self.file.warnings.push(format!("{place}: {what}"));
        }
    }

    fn task(&mut self, member: &Member) -> Checked<Task> {
        let name = &member.key;
        let fields = Fields::of(&member.node, name)?;
        let instances = match fields.get("instance") {
            Some(node) => count(node, "instance")?,
            None => 1,
        };
        let delay = fields.int("delay")?.unwrap_or(0).max(0);
        let default = self.file.global.policy;
        let mut running = Running::default();
        let properties = self.properties(fields, Some(default), &mut running)?;
        let mut scope = Scope {
            name,
            instances,
            timers: Names::default(),
            absolute: Vec::new(),
        };
        let (phases, loops) = match fields.get("phases") {
            Some(node) => {
                for member in fields.members {
                    self.check_key(member, &properties::KEYS);
                }
                let phases = self.phases(node, &mut scope, &mut running)?;
                (phases, loops(fields, None)?)
            }
            None => {
                let mut phase = self.phase(member, &mut scope, &mut running)?;
                // What stands in a task is the task's, and is set only once.
                phase.properties = Default::default();
                let once = fields.get("loop").is_some();
                (vec![phase], once.then_some(1))
            }
        };
        Ok(Task {
            name: name.clone(),
            instances,
            delay: Ns(delay as u64 * 1000),
            loops,
            properties,
            phases,
            timers: scope.absolute,
        })
    }

    fn phases(
        &mut self,
        node: &Node,
        scope: &mut Scope,
        running: &mut Running,
    ) -> Checked<Vec<Phase>> {
        let fields = Fields::of(node, "phases")?;
        if fields.members.is_empty() {
            return Err(mismatch(node, "phases", "at least one phase"));
        }
        let one = |member| self.phase(member, scope, running);
        fields.members.iter().map(one).collect()
    }

    fn phase(
        &mut self,
        member: &Member,
        scope: &mut Scope,
        running: &mut Running,
    ) -> Checked<Phase> {
        let fields = Fields::of(&member.node, &member.key)?;
        let mut events = Vec::new();
        for member in fields.members {
            if event::is_event(&member.key) {
                events.push(self.event(member, scope)?);
            } else {
                self.check_key(member, &properties::KEYS);
            }
        }
        if events.is_empty() {
            return Err(Problem {
                at: member.at,
                word: member.key.clone(),
                expected: "at least one event in it".to_owned(),
            });
        }
        Ok(Phase {
            loops: loops(fields, Some(1))?,
            properties: self.properties(fields, None, running)?,
            events,
        })
    }

    /// rt-app ignores keys that it does not know; a user may have mistyped one.
    fn check_key(&mut self, member: &Member, known: &[&str]) {
        if !known.contains(&member.key.as_str()) {
            let place = (self.place)(member.at);
            let key = wakelab_machine::excerpt(&member.key);
            self.file.warnings.push(format!(
                "{place}: '{key}' is no key that rt-app looks for here, and does nothing"
            ));
        }
    }

    /// Resolves names that may be of something further on.
    fn finish(mut self, tasks: &Node) -> Checked<File> {
        self.resolve_suspends();
        self.file.forks = vec![0; self.forks.len() as usize];
        for (name, number) in &self.forks.0 {
            let found = self.file.tasks.iter().position(|task| task.name == *name);
            self.file.forks[*number as usize] = found.ok_or_else(|| Problem {
                at: self.fork_places[*number as usize],
                word: name.clone(),
                expected: "the name of a task for 'fork'".to_owned(),
            })?;
        }
        for users in std::mem::take(&mut self.users) {
            // Of its own: no name of the file is one of these.
            let number = self.file.barriers.len();
            let own = format!("barrier\0{number}");
            let barrier = Barrier {
                mutex: self.mutexes.number(&own),
                condvar: self.condvars.number(&own),
                users,
            };
            self.file.barriers.push(barrier);
        }
        let started: u64 = self.file.tasks.iter().map(|task| task.instances).sum();
        if started == 0 || started >= MAX_TASKS {
            let expected = format!("from 1 to {} instances of all tasks", MAX_TASKS - 1);
            return Err(Problem {
                at: tasks.at,
                word: started.to_string(),
                expected,
            });
        }
        self.file.mutexes = self.mutexes.len();
        self.file.condvars = self.condvars.len();
        self.file.semaphores = self.semaphores.len();
        Ok(self.file)
    }

    /// A `suspend` waits for the `resume` of the name that it gives. It may give any, or none, for its
    /// task's own: so workgen and later releases of rt-app take it.
    fn resolve_suspends(&mut self) {
        let mut suspended = std::mem::take(&mut self.suspended).into_iter();
        let mut tasks = std::mem::take(&mut self.file.tasks);
        let phases = tasks.iter_mut().flat_map(|task| &mut task.phases);
        for event in phases.flat_map(|phase| &mut phase.events) {
            if !matches!(event, Event::Suspend(..)) {
                continue;
            }
            let Some((name, own)) = suspended.next() else {
                break;
            };
            let own_meant =
                name.is_empty() || (!self.resumed.contains(&name) && self.resumed.contains(&own));
            let name = if own_meant { own } else { name };
            *event = Event::Suspend(self.condvars.number(&name), self.mutexes.number(&name));
        }
        self.file.tasks = tasks;
    }
}

/// What the events of a task have in common.
struct Scope<'a> {
    name: &'a str,
    instances: u64,
    /// Its timers whose names begin with `unique`.
    timers: Names,
    absolute: Vec<bool>,
}

/// `loop`: 0 of a task is never, else what is not above 0 is for ever. (A phase's count is compared
/// after each time, so that 0 is never reached.)
fn loops(fields: Fields, default: Loops) -> Checked<Loops> {
    let of_task = default.is_none();
    Ok(match fields.int("loop")? {
        None => default,
        Some(0) if of_task => Some(0),
        Some(given) => u64::try_from(given).ok().filter(|&loops| loops > 0),
    })
}

impl Reader<'_> {
    /// `resources` of old files, which does nothing but be checked.
    fn resources(&mut self, node: &Node) -> Checked<()> {
        // Only an object is looked at; an array is what older releases had.
        let super::json::Value::Object(members) = &node.value else {
            return Ok(());
        };
        for member in members {
            let fields = Fields::of(&member.node, &member.key)?;
            if let Some(node) = fields.get("type") {
                global::check_resource(node)?;
            }
        }
        Ok(())
    }
}
