//! One line of recorded decisions: the inputs of a call, and what it came to.

use super::machine::Machine;
use crate::error::Problem;
use crate::wire::{Amount, Flag, cpu, mask};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use wakelab_machine::{CpuId, CpuMask};
use wakelab_sched::placement::{AffinePath, Cookies, RecordedCall, SisPath};
use wakelab_sched::state::GroupCapacity;

/// A record as it is written.
#[derive(Debug, Deserialize)]
pub(crate) struct Record {
    /// Running number.
    pub i: u64,
    cpu: u64,
    prev: u64,
    tcpu: u64,
    wf: u32,
    /// The CPU chosen.
    pub new: u16,
    /// Not 0 if inputs changed meanwhile.
    pub racy: u32,
    #[serde(default)]
    exi: Flag,
    fl: [u32; 3],
    /// The result of `wake_wide`.
    pub wide: Flag,
    /// `recent_used_cpu` before and after.
    pub ruc: [u64; 2],
    mask: u64,
    pu: Amount,
    pe: Amount,
    lut: Flag,
    hl: Amount,
    chl: Amount,
    pck: Flag,
    it: Flag,
    pid: i64,
    #[serde(default)]
    onrq: Flag,
    pids: Vec<i64>,
    nr: Vec<u32>,
    hq: Vec<u32>,
    hr: Vec<u32>,
    ld: Vec<Amount>,
    rn: Vec<Amount>,
    ut: Vec<Amount>,
    ldw: Amount,
    rnw: Amount,
    utw: Amount,
    cap: PerCpu,
    ci: u64,
    tp: u64,
    idl: u64,
    si: u64,
    hic: Vec<i64>,
    nis: Vec<i32>,
    #[serde(default)]
    core: Flag,
    pco: Option<u64>,
    ck: Option<Vec<u64>>,
    is: Option<Vec<u64>>,
    xl: Option<Vec<Option<u32>>>,
    /// What `wake_affine` came to, if it ran.
    pub wa: Option<WakeAffine>,
    /// What `select_idle_sibling` came to, if it ran.
    pub sis: Option<Sibling>,
    /// What the slow path came to, if it ran.
    pub slow: Option<Slow>,
}

/// `wake_affine` of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct WakeAffine {
    #[serde(deserialize_with = "affine_path")]
    pub path: AffinePath,
    pub ret: u16,
    pub te: Option<i64>,
    pub pe: Option<i64>,
}

/// `select_idle_sibling` of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct Sibling {
    #[serde(deserialize_with = "sis_path")]
    pub path: SisPath,
    pub ret: u16,
    pub scan: u64,
    pub hicc: Flag,
}

/// The slow path of a record.
#[derive(Debug, Deserialize)]
pub(crate) struct Slow {
    pub ret: u16,
    sg: Vec<Group>,
}

/// A sched group that the slow path summed up.
#[derive(Debug, Deserialize)]
struct Group {
    l: u32,
    f: u64,
    cap: Amount,
    imb: Flag,
}

/// A value by CPU, written once where all CPUs have the same.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
enum PerCpu {
    Same(Amount),
    Each(Vec<Amount>),
}

impl Record {
    /// Whether the call was a wake-up proper, which alone asks `wake_wide`.
    pub fn is_wakeup(&self) -> bool {
        self.wf & wakelab_sched::placement::wf::TTWU != 0
    }

    /// The inputs of the call.
    ///
    /// # Errors
    /// If they are not of this machine.
    pub fn inputs(&self, of: &Machine) -> Result<RecordedCall, Problem> {
        let ncpu = of.ncpu();
        let sets = |field: &str, bits: u64| mask(field, bits, ncpu);
        let task_cpu = cpu("tcpu", self.tcpu, ncpu)?;
        let running = self.onrq.0 && self.lut.0;
        let mut call = RecordedCall {
            this_cpu: cpu("cpu", self.cpu, ncpu)?,
            prev_cpu: cpu("prev", self.prev, ncpu)?,
            wake_flags: self.wf,
            in_task: self.it.0,
            curr_is_per_cpu_kthread: self.pck.0,
            curr_is_exiting: self.exi.0,
            curr_h_load: self.chl.0,
            curr_wakee_flips: [self.fl[0], self.fl[1]],
            wakee_flips: self.fl[2],
            // The kernel's mask may have CPUs that the machine has not.
            allowed: CpuMask::from_u64(self.mask).and(&CpuMask::first_n(ncpu)),
            task_h_load: self.hl.0,
            task_util_est: self.pu.0.max(self.pe.0),
            task_running_on: running.then_some(task_cpu),
            task_current_on: by_cpu("pids", &self.pids, ncpu)?
                .iter()
                .position(|pid| *pid == self.pid)
                .map(CpuId::from_index),
            recent_used_cpu: cpu("ruc[0]", self.ruc[0], ncpu)?,
            idle: sets("idl", self.idl)?,
            sched_idle: sets("si", self.si)?,
            curr_idle: sets("ci", self.ci)?,
            ttwu_pending: sets("tp", self.tp)?,
            nr_running: by_cpu("nr", &self.nr, ncpu)?.to_vec(),
            nr_delayed: self.delayed(ncpu)?,
            load: loads("ld", &self.ld, ncpu)?,
            load_without: without(loads("ld", &self.ld, ncpu)?, self.ldw, task_cpu),
            runnable_without: without(loads("rn", &self.rn, ncpu)?, self.rnw, task_cpu),
            util_without: without(loads("ut", &self.ut, ncpu)?, self.utw, task_cpu),
            util_est: Vec::new(),
            capacity: self.capacity(ncpu)?,
            idle_stamp: Vec::new(),
            exit_latency: Vec::new(),
            has_idle_cores: by_llc("hic", &self.hic, of)?
                .iter()
                .map(|n| *n > 0)
                .collect(),
            nr_idle_scan: by_llc("nis", &self.nis, of)?.to_vec(),
            groups: Vec::new(),
            cookies: self.cookies(ncpu)?,
        };
        if let Some(slow) = &self.slow {
            self.slow_path(of, slow, &mut call)?;
        }
        Ok(call)
    }

    fn slow_path(&self, of: &Machine, slow: &Slow, call: &mut RecordedCall) -> Result<(), Problem> {
        let ncpu = of.ncpu();
        let stamps = self.is.as_ref();
        let stamps = stamps.ok_or_else(|| Problem::value("is", "nothing", "idle stamps"))?;
        call.idle_stamp = by_cpu("is", stamps, ncpu)?.to_vec();
        if let Some(latencies) = &self.xl {
            call.exit_latency = by_cpu("xl", latencies, ncpu)?.to_vec();
        }
        for (index, group) in slow.sg.iter().enumerate() {
            let field = |name: &str| format!("slow.sg[{index}].{name}");
            let first = cpu(&field("f"), group.f, ncpu)?;
            let id = of.group(group.l, first).ok_or_else(|| {
                let expected = format!("a level at which a group starts with CPU {first}");
                Problem::value(field("l"), group.l, expected)
            })?;
            let capacity = GroupCapacity {
                capacity: group.cap.0,
                imbalance: group.imb.0,
                ..GroupCapacity::default()
            };
            call.groups.push((id, capacity));
        }
        Ok(())
    }

    fn delayed(&self, ncpu: usize) -> Result<Vec<u32>, Problem> {
        let queued = by_cpu("hq", &self.hq, ncpu)?.iter();
        let both = queued.zip(by_cpu("hr", &self.hr, ncpu)?);
        Ok(both.map(|(all, awake)| all.wrapping_sub(*awake)).collect())
    }

    fn capacity(&self, ncpu: usize) -> Result<Vec<u64>, Problem> {
        match &self.cap {
            PerCpu::Same(same) => Ok(vec![same.0; ncpu]),
            PerCpu::Each(each) => loads("cap", each, ncpu),
        }
    }

    fn cookies(&self, ncpu: usize) -> Result<Option<Cookies>, Problem> {
        match (self.core.0, self.pco, &self.ck) {
            (false, _, _) => Ok(None),
            (true, Some(task), Some(core)) => Ok(Some(Cookies {
                task,
                core: by_cpu("ck", core, ncpu)?.to_vec(),
            })),
            _ => Err(Problem::value("core", 1, "cookies ('pco', 'ck') beside it")),
        }
    }
}

fn affine_path<'de, D: Deserializer<'de>>(from: D) -> Result<AffinePath, D::Error> {
    path_of(from, &AffinePath::ALL, |path| path as u64)
}

fn sis_path<'de, D: Deserializer<'de>>(from: D) -> Result<SisPath, D::Error> {
    path_of(from, &SisPath::ALL, |path| path as u64)
}

fn path_of<'de, D: Deserializer<'de>, P: Copy>(
    from: D,
    paths: &[P],
    number_of: impl Fn(P) -> u64,
) -> Result<P, D::Error> {
    let number = u64::deserialize(from)?;
    let path = paths.iter().find(|path| number_of(**path) == number);
    path.copied()
        .ok_or_else(|| D::Error::custom(format_args!("unknown path {number}")))
}

fn loads(field: &str, values: &[Amount], ncpu: usize) -> Result<Vec<u64>, Problem> {
    let values = by_cpu(field, values, ncpu)?.iter();
    Ok(values.map(|value| value.0).collect())
}

fn by_cpu<'a, T>(field: &str, values: &'a [T], ncpu: usize) -> Result<&'a [T], Problem> {
    counted(field, values, ncpu, "CPUs")
}

fn by_llc<'a, T>(field: &str, values: &'a [T], of: &Machine) -> Result<&'a [T], Problem> {
    counted(field, values, of.machine.topo.llcs.len(), "LLCs")
}

fn counted<'a, T>(
    field: &str,
    values: &'a [T],
    count: usize,
    what: &str,
) -> Result<&'a [T], Problem> {
    if values.len() == count {
        return Ok(values);
    }
    let found = format!("a list of {}", values.len());
    Err(Problem::value(
        field,
        found,
        format!("one value for each of {count} {what}"),
    ))
}

/// What a value by CPU is without the task, which counts on its own CPU only.
fn without(mut values: Vec<u64>, without: Amount, task_cpu: CpuId) -> Vec<u64> {
    values[task_cpu.index()] = without.0;
    values
}
