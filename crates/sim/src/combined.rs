//! Several workloads in one run, of which one is measured.
//!
//! A shell launches them, each in a session and a process of its own: first those beside, in their
//! order; when they have made no task for [`SETTLE`], the measured one. It can be told to sleep before it launches one. Each keeps its own numbers of
//! tasks, roles, channels and cookies, which are translated here.

use crate::object::sync::{SyncCounts, SyncObjects};
use crate::object::{Chan, ChanId};
use crate::outcome::Metric;
use crate::rng::Rng;
use crate::work::{Attributes, Group, Op, Session, Setting, Spawn, Workload};
use wakelab_machine::Ns;
use wakelab_sched::core_sched::prctl::CoreSchedError;
use wakelab_sched::{Cookie, Sched, TaskId};

/// How long those beside have made no task when the measured workload begins: three half-lives of
/// PELT, so that loads and utilisation are near what they stay at, and longer than an LLC of a hundred
/// CPUs waits for its next balance (one ms a CPU).
pub const SETTLE: Ns = Ns(100_000_000);

/// The measured workload begins after so many looks, whatever the others do.
const MAX_LOOKS: u32 = 100;

/// A role of a workload and the number of its command, in one number: roles are below this.
const ROLE_BITS: u32 = 24;

/// The same for cookies.
const COOKIE_BITS: u32 = 40;

/// The cookie that a command is started with, by its own numbers: no workload counts so far.
pub const PREFIX_COOKIE: Cookie = Cookie((1 << COOKIE_BITS) - 1);

/// A workload with the attributes that it is started with.
pub struct Command {
    /// What it does.
    pub work: Box<dyn Workload>,
    /// How its first task is to be scheduled; the others are as their makers where the workload does
    /// not say otherwise.
    pub attributes: Attributes,
    /// Whether its tasks are kernel threads.
    pub kernel: bool,
    /// How long the shell sleeps before it launches it.
    pub after: Ns,
}

/// What the shell does next.
#[derive(Clone, Copy, Debug)]
enum Shell {
    Launches { command: usize },
    Settles { tasks: usize, looks: u32 },
    LaunchesMeasured,
    Waits,
}

/// A command under way.
struct Running {
    command: Command,
    /// The first of its channels and of its groups.
    first_chan: u32,
    first_group: u32,
    /// Mutexes and the like of those before it.
    sync_before: SyncCounts,
    /// Its tasks by its own numbers.
    tasks: Vec<TaskId>,
    stopped: bool,
}

/// Whose a task is, with its number there.
#[derive(Clone, Copy, Debug)]
enum Owner {
    Shell,
    Command { command: u16, task: TaskId },
}

/// Several workloads, the measured one first.
pub struct Combined {
    shell: Shell,
    commands: Vec<Running>,
    owners: Vec<Owner>,
}

impl Combined {
    /// The measured command and those beside it.
    pub fn new(measured: Command, beside: Vec<Command>) -> Combined {
        let (mut first_chan, mut first_group) = (0, 0);
        let mut sync = SyncObjects::default();
        let begin = |command: Command| {
            let channels = command.work.channels().len() as u32;
            let groups = command.work.groups().len() as u32;
            let sync_before = sync.counts();
            sync.append(command.work.sync_objects());
            let running = Running {
                tasks: Vec::with_capacity(command.work.max_tasks()),
                command,
                first_chan,
                first_group,
                sync_before,
                stopped: false,
            };
            first_chan += channels;
            first_group += groups;
            running
        };
        Combined {
            shell: Shell::Launches { command: 1 },
            commands: std::iter::once(measured).chain(beside).map(begin).collect(),
            owners: Vec::new(),
        }
    }

    fn shell_op(&mut self) -> Op {
        match self.shell {
            Shell::Launches { command } if command < self.commands.len() => {
                let next = command + 1;
                self.sleep_or_launch(command, Shell::Launches { command: next })
            }
            Shell::Launches { command } if command > 1 => self.look(0),
            Shell::Settles { tasks, looks } if tasks != self.owners.len() && looks < MAX_LOOKS => {
                self.look(looks)
            }
            Shell::Launches { .. } | Shell::Settles { .. } | Shell::LaunchesMeasured => {
                self.shell = Shell::LaunchesMeasured;
                self.sleep_or_launch(0, Shell::Waits)
            }
            Shell::Waits => Op::Park,
        }
    }

    fn look(&mut self, looks: u32) -> Op {
        self.shell = Shell::Settles {
            tasks: self.owners.len(),
            looks: looks + 1,
        };
        Op::Sleep(SETTLE)
    }

    /// The sleep before a command is launched, the first time that it is asked for; then the launch.
    fn sleep_or_launch(&mut self, command: usize, then: Shell) -> Op {
        let after = std::mem::take(&mut self.commands[command].command.after);
        if after > Ns(0) {
            return Op::Sleep(after);
        }
        self.shell = then;
        Op::Fork(Spawn {
            role: role_of(command, 0),
            thread: false,
        })
    }

    /// The command of a role, and the role there; none is the shell.
    fn command_of(role: u32) -> Option<(usize, u32)> {
        let command = (role >> ROLE_BITS).checked_sub(1)?;
        Some((command as usize, role & ((1 << ROLE_BITS) - 1)))
    }
}

/// The role of a command's role.
fn role_of(command: usize, role: u32) -> u32 {
    debug_assert!(role < 1 << ROLE_BITS, "a workload's roles are few");
    (command as u32 + 1) << ROLE_BITS | role
}

impl Running {
    fn attributes(&self, number: usize, role: u32) -> Attributes {
        let own = &self.command.attributes;
        if role == 0 {
            return Attributes {
                session: Some(number as u16),
                cookie: own.cookie.map(|cookie| cookie_of(number, cookie)),
                ..*own
            };
        }
        let attributes = self.command.work.attributes(role);
        let cpus = attributes.cpus.or(own.cpus);
        let may_start = |cpu: &_| cpus.is_none_or(|cpus| cpus.contains(*cpu));
        Attributes {
            cookie: attributes.cookie.map(|cookie| cookie_of(number, cookie)),
            start: attributes.start.filter(may_start),
            ..attributes
        }
    }

    fn last_cookie(&self, number: usize) -> Cookie {
        let prefix = self.command.attributes.cookie.unwrap_or(Cookie::NONE);
        cookie_of(number, prefix.max(self.command.work.last_cookie()))
    }

    fn next_op(&mut self, number: usize, task: TaskId, rng: &mut Rng) -> Op {
        if self.stopped {
            return Op::Exit;
        }
        self.command.work.next_op(task, rng).renumbered(
            |chan| ChanId(self.first_chan + chan.0),
            |task| self.tasks[task.index()],
            |role| role_of(number, role),
            |op| op.behind(self.sync_before),
            |setting| role_of(number, setting),
        )
    }
}

/// The cookie of a command's cookie: two commands never share one.
fn cookie_of(command: usize, cookie: Cookie) -> Cookie {
    if cookie == Cookie::NONE {
        return cookie;
    }
    debug_assert!(
        cookie.0 < 1 << COOKIE_BITS,
        "a workload's cookies are small"
    );
    Cookie((command as u64) << COOKIE_BITS | cookie.0)
}

impl Workload for Combined {
    fn channels(&self) -> Vec<Chan> {
        let of = |running: &Running| running.command.work.channels();
        self.commands.iter().flat_map(of).collect()
    }

    fn max_tasks(&self) -> usize {
        let of = |running: &Running| running.command.work.max_tasks();
        self.commands.iter().map(of).sum::<usize>() + 1
    }

    /// The shell's.
    fn working_set_kib(&self) -> u64 {
        0
    }

    /// The commands', then the shell's.
    fn sessions(&self) -> Vec<Session> {
        let of = |running: &Running| Session {
            working_set_kib: running.command.work.working_set_kib(),
            kernel: running.command.kernel,
        };
        let shell = Session {
            working_set_kib: self.working_set_kib(),
            kernel: false,
        };
        self.commands
            .iter()
            .map(of)
            .chain(std::iter::once(shell))
            .collect()
    }

    fn spawned(&mut self, role: u32, task: TaskId) {
        debug_assert_eq!(task.index(), self.owners.len(), "tasks are told in order");
        self.owners.push(match Combined::command_of(role) {
            None => Owner::Shell,
            Some((command, role)) => {
                let running = &mut self.commands[command];
                let own = TaskId::from_index(running.tasks.len());
                running.tasks.push(task);
                running.command.work.spawned(role, own);
                Owner::Command {
                    command: command as u16,
                    task: own,
                }
            }
        });
    }

    fn attributes(&self, role: u32) -> Attributes {
        match Combined::command_of(role) {
            None => Attributes::default(),
            Some((command, role)) => self.commands[command].attributes(command, role),
        }
    }

    fn last_cookie(&self) -> Cookie {
        let commands = self.commands.iter().enumerate();
        let of = |(number, running): (usize, &Running)| running.last_cookie(number);
        commands.map(of).max().unwrap_or(Cookie::NONE)
    }

    fn next_op(&mut self, task: TaskId, rng: &mut Rng) -> Op {
        match self.owners[task.index()] {
            Owner::Shell => self.shell_op(),
            Owner::Command { command, task } => {
                let command = usize::from(command);
                let running = &mut self.commands[command];
                running.next_op(command, task, rng)
            }
        }
    }

    fn sync_objects(&self) -> SyncObjects {
        let mut all = SyncObjects::default();
        for running in &self.commands {
            all.append(running.command.work.sync_objects());
        }
        all
    }

    fn groups(&self) -> Vec<Group> {
        let of = |running: &Running| {
            let first = running.first_group;
            let groups = running.command.work.groups().into_iter();
            groups.map(move |group| Group {
                parent: group.parent.map(|parent| first + parent),
                ..group
            })
        };
        self.commands.iter().flat_map(of).collect()
    }

    fn setting(&self, number: u32) -> Setting {
        let Some((command, number)) = Combined::command_of(number) else {
            return Setting::default();
        };
        let running = &self.commands[command];
        let setting = running.command.work.setting(number);
        Setting {
            group: setting.group.map(|group| running.first_group + group),
            ..setting
        }
    }

    fn failure(&self) -> Option<String> {
        let mut commands = self.commands.iter();
        commands.find_map(|running| running.command.work.failure())
    }

    fn ran_again(&mut self, task: TaskId, gap: Ns) {
        if let Owner::Command { command, task } = self.owners[task.index()] {
            let running = &mut self.commands[usize::from(command)];
            running.command.work.ran_again(task, gap);
        }
    }

    fn core_sched_done(&mut self, task: TaskId, result: Result<Cookie, CoreSchedError>) {
        if let Owner::Command { command, task } = self.owners[task.index()] {
            let running = &mut self.commands[usize::from(command)];
            running.command.work.core_sched_done(task, result);
        }
    }

    fn observe(&mut self, task: TaskId, sched: &Sched, task_of: &dyn Fn(TaskId) -> TaskId) {
        if let Owner::Command { command, task } = self.owners[task.index()] {
            let Running { command, tasks, .. } = &mut self.commands[usize::from(command)];
            let task_of = |task: TaskId| task_of(tasks[task.index()]);
            command.work.observe(task, sched, &task_of);
        }
    }

    fn time_is(&mut self, task: TaskId, now: Ns) {
        if let Owner::Command { command, task } = self.owners[task.index()] {
            let running = &mut self.commands[usize::from(command)];
            running.command.work.time_is(task, now);
        }
    }

    fn waited(&mut self, task: TaskId, wait: Ns) {
        if let Owner::Command { command, task } = self.owners[task.index()] {
            let running = &mut self.commands[usize::from(command)];
            running.command.work.waited(task, wait);
        }
    }

    /// The lowest: the kernel keeps all that are asked of it.
    fn idle_exit_limit(&self) -> Option<Ns> {
        let of = |running: &Running| running.command.work.idle_exit_limit();
        self.commands.iter().filter_map(of).min()
    }

    fn stopped(&mut self, session: u16) {
        self.commands[usize::from(session)].stopped = true;
    }

    /// Those of the measured one.
    fn log(&self, time: Ns) -> Vec<String> {
        self.commands[0].command.work.log(time)
    }

    /// Those of the measured one.
    fn metrics(&self, time: Ns) -> Vec<Metric> {
        self.commands[0].command.work.metrics(time)
    }
}
