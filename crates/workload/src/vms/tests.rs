//! What the command line means, and what each thread does.

use super::*;
use proptest::prelude::{prop_assert_eq, proptest};

fn read(line: &str) -> Result<Vms, WorkloadError> {
    Vms::parse(line.split_whitespace())
}

const MAIL: &str = "--vms 8 --vcpus 8 --busy 7 --hwlat width=100ms,period=300ms,threshold=100us \
    --vmm 0.5ms/50ms -t 10";

fn run(line: &str, machine: &str) -> Run {
    let machine = Machine::preset(machine).expect("a preset");
    let mut run = Run::new(&read(line).expect("a command line"), &machine);
    for role in 0..run.max_tasks() as u32 {
        run.spawned(role, TaskId(role));
    }
    run
}

#[test]
fn the_mails_set_up_is_understood() {
    let spec = read(MAIL).unwrap();
    assert_eq!((spec.vms, spec.vcpus, spec.busy), (8, 8, 7));
    assert_eq!((spec.tasks(), spec.time), (72, Some(Ns(10_000_000_000))));
    assert!(spec.cookies == Cookies::Vm && spec.load.is_none());
    assert_eq!(spec.hwlat.unwrap().width, Ns(100_000_000));
    let tenth = spec.scaled(0.1).command_line();
    assert!(tenth.ends_with(" -t 1s"), "{tenth}");
    // The tracer's machine is not busy unless it is asked for.
    let hwlat = "--hwlat threshold=1ms -t 1";
    assert_eq!(
        (read(hwlat).unwrap().busy, read("-t 1").unwrap().busy),
        (7, 8)
    );
}

#[test]
fn wrong_words_are_named() {
    for (line, word) in [
        ("-x", "'-x'"),
        ("-t 0", "'0' for '-t'"),
        ("--vms 0 -t 1", "0 for '--vms'"),
        ("--vcpus x -t 1", "'x' for '--vcpus'"),
        ("--vms 9000 --vcpus 9000 -t 1", "number of tasks"),
        ("--busy 9 -t 1", "'--busy' is more than '--vms'"),
        (
            "--busy 8 --hwlat width=1ms -t 1",
            "'--hwlat' needs an idle machine",
        ),
        ("--hwlat width=2s -t 1", "'width=2s' for '--hwlat'"),
        ("--vmm 5ms -t 1", "'5ms' for '--vmm'"),
        ("--load 5ms/1ms -t 1", "'5ms/1ms' for '--load'"),
        ("--cookies all -t 1", "'all' for '--cookies'"),
        ("--start cold -t 1", "'cold' for '--start'"),
        ("stray", "'stray'"),
    ] {
        let error = read(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
}

#[test]
fn threads_of_a_machine_share_a_cookie_that_no_other_has() {
    let cookies = |line: &str| {
        let run = run(line, "smt2-8");
        let roles = 1..run.max_tasks() as u32;
        roles
            .map(|role| run.attributes(role).cookie.map(|c| c.0))
            .collect::<Vec<_>>()
    };
    let of = [1, 1, 1, 2, 2, 2].map(Some);
    assert_eq!(cookies("--vms 2 --vcpus 2 --vmm 1ms/9ms -t 1"), of);
    assert_eq!(
        cookies("--vms 2 --vcpus 1 --cookies none -t 1"),
        [None, None]
    );
}

#[test]
fn cookies_by_prctl_come_when_all_threads_are_made() {
    let mut run = run("--vms 2 --vcpus 2 --cookies prctl -t 1", "smt2-8");
    let roles = 1..run.max_tasks() as u32;
    assert!(
        roles
            .into_iter()
            .all(|role| run.attributes(role).cookie.is_none())
    );
    run.spawned(0, TaskId(0));
    let mut rng = Rng::stream(1, 0);
    let mut calls = Vec::new();
    let mut made = 0;
    loop {
        match run.next_op(TaskId(0), &mut rng) {
            Op::Fork(_) => made += 1,
            Op::CoreSched(call) => {
                assert_eq!((made, call.scope), (4, Scope::Thread));
                calls.push((call.command, call.pid));
            }
            Op::Join => break,
            _ => {}
        }
    }
    let (create, from, to) = (Command::Create, Command::ShareFrom, Command::ShareTo);
    let of = [
        (create, 1),
        (from, 1),
        (to, 2),
        (create, 3),
        (from, 3),
        (to, 4),
    ];
    assert_eq!(
        calls,
        of.map(|(command, thread)| (command, Some(TaskId(thread))))
    );
}

#[test]
fn a_matched_start_puts_each_machine_on_whole_cores() {
    let places = |line: &str, machine: &str| {
        let run = run(line, machine);
        let roles = 1..run.max_tasks() as u32;
        roles
            .map(|role| run.attributes(role).start)
            .collect::<Vec<_>>()
    };
    let on = |cpus: &[usize]| -> Vec<_> {
        cpus.iter()
            .map(|&cpu| Some(CpuId::from_index(cpu)))
            .collect()
    };
    // Four cores: CPUs n and n + 4 are siblings. Each machine of three takes two cores, and the third
    // machine begins at the first core again.
    let three = places("--vms 3 --vcpus 3 --start matched -t 1", "smt2-8");
    assert_eq!(three, on(&[0, 4, 1, 2, 6, 3, 0, 4, 1]));
    let mail = places(&format!("{MAIL} --start matched"), "hypervisor-64");
    let placed: Vec<CpuId> = mail.iter().flatten().copied().collect();
    assert_eq!(
        placed.len(),
        56,
        "neither the tracer's machine nor VMM threads"
    );
    assert!(
        placed
            .chunks(2)
            .all(|pair| pair[0].index() + 32 == pair[1].index())
    );
    let as_it_comes = places("--vms 2 --vcpus 2 -t 1", "smt2-8");
    assert_eq!(as_it_comes, [None; 4]);
}

/// The operations of a thread.
fn ops(run: &mut Run, role: u32, number: usize) -> Vec<Op> {
    let mut rng = Rng::stream(1, role.into());
    (0..number)
        .map(|_| run.next_op(TaskId(role), &mut rng))
        .collect()
}

#[test]
fn the_tracer_goes_from_vcpu_to_vcpu_and_round_again() {
    let line = "--vms 2 --vcpus 2 --busy 1 --hwlat width=100ms,period=300ms,threshold=1us -t 1";
    let mut run = run(line, "smt2-8");
    let (width, rest) = (Op::SpinFor(Ns(100_000_000)), Op::Sleep(Ns(200_000_000)));
    let turn = |next| {
        [
            Op::Park,
            Op::Observe,
            width,
            Op::Observe,
            rest,
            Op::Work(GUEST_MOVE),
            Op::Unpark(TaskId(next)),
            Op::Park,
        ]
    };
    assert_eq!(ops(&mut run, 3, 8), turn(4));
    assert_eq!(ops(&mut run, 4, 8), turn(3));
    // It starts when all threads are made.
    let main = ops(&mut run, 0, 8);
    assert_eq!(main[6..], [Op::Unpark(TaskId(3)), Op::Join]);
    assert_eq!(ops(&mut run, 1, 2), [FOR_EVER, FOR_EVER]);
}

#[test]
fn work_that_comes_back_begins_at_a_random_part_of_its_period() {
    let line = "--vms 2 --vcpus 1 --busy 1 --load 9ms/10ms --vmm 1ms/50ms -t 1";
    let mut run = run(line, "smt2-8");
    let [Op::Sleep(offset), work, rest] = ops(&mut run, 1, 3)[..] else {
        panic!("it sleeps first");
    };
    assert!(offset < Ns(10_000_000));
    assert_eq!(
        (work, rest),
        (Op::Work(Ns(9_000_000)), Op::Sleep(Ns(1_000_000)))
    );
    let vmm = ops(&mut run, 2, 3);
    assert_eq!(
        vmm[1..],
        [Op::Work(Ns(1_000_000)), Op::Sleep(Ns(49_050_000))]
    );
    // The second machine is idle, but its VMM is not.
    assert_eq!(ops(&mut run, 3, 1), [Op::Park]);
    assert!(matches!(ops(&mut run, 4, 1)[..], [Op::Sleep(_)]));
}

proptest! {
    #[test]
    fn any_words_give_a_result_or_an_error(line in "[-=,/a-z0-9 .é]{0,60}") {
        let _ = read(&line);
    }

    #[test]
    fn what_it_prints_it_reads(
        vms in 1u32..50, vcpus in 1u32..50, busy: u32, load: bool, vmm: bool, hwlat: bool,
        cookies in 0usize..3, matched: bool, ns in 2u64..1_000_000_000, time in 1u64..1_000_000_000_000,
    ) {
        let cycle = Cycle { run: Ns(ns / 2), period: Ns(ns) };
        let spec = Vms {
            vms,
            vcpus,
            busy: busy % (vms + u32::from(!hwlat)),
            load: load.then_some(cycle),
            vmm: vmm.then_some(cycle),
            hwlat: hwlat.then_some(Hwlat { width: cycle.run, period: cycle.period, threshold: Ns(ns) }),
            cookies: [Cookies::None, Cookies::Vm, Cookies::VmByPrctl][cookies],
            start: if matched { StartPlace::Matched } else { StartPlace::AsItComes },
            time: Some(Ns(time)),
        };
        let line = spec.command_line();
        prop_assert_eq!(read(line.strip_prefix("vms").unwrap()).unwrap(), spec);
    }
}
