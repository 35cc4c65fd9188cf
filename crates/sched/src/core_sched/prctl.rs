//! `prctl(PR_SCHED_CORE)`: who may have which cookie, asked for while everything runs, and how long a
//! cookie lives (kernel 6.12 `sched/core_sched.c`).

use crate::Release;
use crate::ids::{Cookie, TaskId};
use crate::state::Sched;

/// What is asked for (`PR_SCHED_CORE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Tell the task's cookie.
    Get,
    /// Make a new cookie, for the task and those of its scope.
    Create,
    /// Give the caller's cookie to the task and those of its scope.
    ShareTo,
    /// Take the task's cookie.
    ShareFrom,
}

/// Whom it is about (`PR_SCHED_CORE_SCOPE_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The task alone.
    Thread,
    /// All tasks that share its address space.
    ThreadGroup,
    /// All tasks of its process group.
    ProcessGroup,
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreSchedCall {
    /// What is asked for.
    pub command: Command,
    /// The task that it is about; none for the caller (pid 0).
    pub pid: Option<TaskId>,
    /// Whom else.
    pub scope: Scope,
}

/// Why a call failed. (Nobody lacks the right here, nor memory: EPERM and ENOMEM do not come up.)
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum CoreSchedError {
    /// The kernel has no core scheduling.
    #[error("EINVAL: kernel {} has no core scheduling", .0.name())]
    NotInRelease(Release),
    /// No core has several CPUs.
    #[error("ENODEV: no core has SMT siblings")]
    NoDevice,
    /// There is no such task any more, or never was.
    #[error("ESRCH: there is no task {id}", id = .0.0)]
    NoSuchTask(TaskId),
    /// The command is about one thread only.
    #[error("EINVAL: {0:?} takes the scope Thread only, not {1:?}")]
    Scope(Command, Scope),
}

impl Sched {
    /// `sched_core_share_pid`, called by a running task. Gives the cookie that it told or gave. CPUs that run a
    /// task whose cookie changed must reschedule and are left in `lb.arrivals`.
    ///
    /// # Errors
    /// As the kernel's, and then nothing has changed.
    pub fn sched_core_share_pid(
        &mut self,
        current: TaskId,
        call: CoreSchedCall,
    ) -> Result<Cookie, CoreSchedError> {
        self.lb.arrivals.clear();
        if !self.rules.core_scheduling {
            return Err(CoreSchedError::NotInRelease(self.rules.release));
        }
        if !self.topo.smt_active {
            return Err(CoreSchedError::NoDevice);
        }
        let task = call.pid.unwrap_or(current);
        if !self.is_alive(task) {
            return Err(CoreSchedError::NoSuchTask(task));
        }
        let one = matches!(call.command, Command::Get | Command::ShareFrom);
        if one && call.scope != Scope::Thread {
            return Err(CoreSchedError::Scope(call.command, call.scope));
        }
        let cookie_of = |p: TaskId| self.tasks[p.index()].cookie;
        match call.command {
            Command::Get => return Ok(cookie_of(task)),
            Command::ShareFrom => {
                let cookie = cookie_of(task);
                self.sched_core_set(current, cookie);
                return Ok(cookie);
            }
            Command::Create | Command::ShareTo => {}
        }
        let cookie = match call.command {
            Command::Create => self.core.cookies.unused(),
            _ => cookie_of(current),
        };
        for p in (0..self.tasks.len()).map(TaskId::from_index) {
            if self.is_alive(p) && self.in_scope(p, task, call.scope) {
                self.sched_core_set(p, cookie);
            }
        }
        Ok(cookie)
    }

    fn is_alive(&self, p: TaskId) -> bool {
        let task = self.tasks.get(p.index());
        task.is_some_and(|task| !task.exiting)
    }

    fn in_scope(&self, p: TaskId, of: TaskId, scope: Scope) -> bool {
        match scope {
            Scope::Thread => p == of,
            Scope::ThreadGroup => self.tasks[p.index()].mm == self.tasks[of.index()].mm,
            Scope::ProcessGroup => self.tasks[p.index()].pgrp == self.tasks[of.index()].pgrp,
        }
    }

    /// `__sched_core_set`.
    fn sched_core_set(&mut self, p: TaskId, cookie: Cookie) {
        self.set_cookie(p, cookie);
        let cpu = self.tasks[p.index()].cpu;
        if self.rq(cpu).curr == p {
            self.lb.arrivals.push(cpu);
        }
    }

    /// `sched_core_free`: a task that has ended holds its cookie no longer.
    pub fn sched_core_free(&mut self, p: TaskId) {
        self.core.cookies.put(self.tasks[p.index()].cookie);
    }
}
