//! What files say, and what is refused in them.

mod refused;

use super::file::{Calibration, Class, Event, File, Timer};
use super::source::Source;
use super::*;
use proptest::prelude::*;
use wakelab_sched::state::Policy;

fn file_of(text: &str) -> Result<File, WorkloadError> {
    Source::of("test.json", text.as_bytes()).read()
}

fn read(text: &str) -> File {
    file_of(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The error of a file, without its name.
fn refused(text: &str) -> String {
    let error = file_of(text).expect_err(text).to_string();
    error.strip_prefix("test.json:").expect(text).to_owned()
}

/// A task with these members.
fn task(members: &str) -> String {
    format!("{{\"tasks\":{{\"t\":{{{members}}}}}}}")
}

fn events(members: &str) -> Vec<Event> {
    read(&task(members)).tasks[0].phases[0].events.clone()
}

const US: u64 = 1000;

#[test]
fn a_task_of_events_has_the_defaults() {
    let file = read(&task("\"run\": 10"));
    let [task] = &file.tasks[..] else { panic!() };
    assert_eq!(
        (task.name.as_str(), task.instances, task.delay),
        ("t", 1, Ns(0))
    );
    assert_eq!((task.loops, task.phases[0].loops), (None, Some(1)));
    assert_eq!(task.properties.class, Some(Class::Fair(Policy::Normal)));
    assert_eq!(task.properties.priority, Some(0));
    assert_eq!(task.phases[0].events, [Event::Run(Ns(10 * US))]);
    let global = &file.global;
    assert_eq!(
        (global.duration, global.calibration),
        (None, Calibration::Cpu(0))
    );
    assert_eq!((global.pi_enabled, global.cumulative_slack), (false, false));
    assert_eq!(global.mem_buffer_size, 4_194_304);
    assert_eq!(file.warnings, Vec::<String>::new());
}

#[test]
fn a_loop_beside_events_is_the_phases_and_the_task_goes_through_once() {
    let loops = |members: &str| {
        let file = read(&task(members));
        (file.tasks[0].loops, file.tasks[0].phases[0].loops)
    };
    assert_eq!(loops("\"loop\": 7, \"run\": 1"), (Some(1), Some(7)));
    assert_eq!(loops("\"loop\": -1, \"run\": 1"), (Some(1), None));
    assert_eq!(loops("\"loop\": null, \"run\": 1"), (None, Some(1)));
    assert_eq!(loops("\"phases\": {\"p\": {\"run\": 1}}"), (None, Some(1)));
    assert_eq!(
        loops("\"loop\": 0, \"phases\": {\"p\": {\"run\": 1, \"loop\": 0}}"),
        (Some(0), None)
    );
    assert_eq!(
        loops("\"loop\": 2, \"phases\": {\"p\": {\"run\": 1, \"loop\": 3}}"),
        (Some(2), Some(3))
    );
}

#[test]
fn keys_are_events_by_how_they_begin_and_in_their_order_also_twice() {
    let members = "\"runtime1\": 1, \"run_x\": 2, \"running\": 3, \"sleep\": 4, \"sleep\": 5, \
         \"memory\": 6, \"iorun2\": 7, \"yield\": {}, \"lock_a\": \"m\", \"unlock\": \"m\", \
         \"broadcast\": \"c\", \"signal0\": \"c\", \"sem_post\": \"s\", \"sem_wait1\": \"s\"";
    let ns = |us: u64| Ns(us * US);
    assert_eq!(
        events(members),
        [
            Event::Runtime(ns(1)),
            Event::Run(ns(2)),
            Event::Run(ns(3)),
            Event::Sleep(ns(4)),
            Event::Sleep(ns(5)),
            Event::Memory(6),
            Event::Io(7),
            Event::Yield,
            Event::Lock(0),
            Event::Unlock(0),
            Event::Broadcast(0),
            Event::Signal(0),
            Event::Post(0),
            Event::Acquire(0),
        ]
    );
}

#[test]
fn waits_name_a_condition_and_a_mutex_or_the_unknown_ones() {
    let members = "\"lock\": \"n\", \"wait\": {\"ref\": \"c\", \"mutex\": \"m\"}, \"sync\": {}";
    let expected = [
        Event::Lock(0),
        Event::Wait(0, 1),
        Event::SignalAndWait(1, 2),
    ];
    assert_eq!(events(members), expected);
}

#[test]
fn timers_are_shared_by_name_unless_they_are_unique_and_absolute_if_any_use_says_so() {
    let text = "{\"tasks\": {
        \"a\": {\"timer\": {\"ref\": \"tick\", \"period\": 5}, \"timer2\": {\"ref\": \"unique\", \"period\": 6}},
        \"b\": {\"timer\": {\"ref\": \"uniqueB\"}, \"timer1\": {\"ref\": \"tick\", \"mode\": \"absolute\"},
                \"timer3\": {\"ref\": \"unique\", \"mode\": \"absolutely\"}}}}";
    let file = read(text);
    let timer = |unique, number, us| {
        Event::Timer(Timer {
            unique,
            number,
            period: Ns(us * US),
        })
    };
    assert_eq!(
        file.tasks[0].phases[0].events,
        [timer(false, 0, 5), timer(true, 0, 6)]
    );
    let of_b = [timer(true, 0, 0), timer(false, 0, 0), timer(true, 1, 0)];
    assert_eq!(file.tasks[1].phases[0].events, of_b);
    assert_eq!(file.timers, [true]);
    assert_eq!(
        (&file.tasks[0].timers, &file.tasks[1].timers),
        (&vec![false], &vec![false, true])
    );
}

#[test]
fn a_barrier_waits_for_every_instance_of_every_use() {
    let text = "{\"tasks\": {\"a\": {\"instance\": 3, \"barrier\": \"B\", \"barrier2\": \"C\"},
        \"b\": {\"barrier\": \"B\", \"barrier1\": \"B\", \"lock\": \"B\"}}}";
    let file = read(text);
    let users: Vec<u64> = file.barriers.iter().map(|barrier| barrier.users).collect();
    assert_eq!(users, [5, 3]);
    assert_eq!(
        (file.mutexes, file.condvars),
        (3, 2),
        "barriers have their own"
    );
}

#[test]
fn suspend_waits_for_its_name_or_for_its_tasks() {
    let text = |name: &str| {
        format!(
            "{{\"tasks\": {{\"main\": {{\"resume\": \"x\", \"resume1\": \"sub\"}},
              \"sub\": {{\"suspend\": \"{name}\"}}}}}}"
        )
    };
    let suspend = |name: &str| read(&text(name)).tasks[1].phases[0].events[0];
    let resumes = read(&text("")).tasks[0].phases[0].events.clone();
    assert_eq!(resumes, [Event::Resume(0, 0), Event::Resume(1, 1)]);
    assert_eq!(suspend("x"), Event::Suspend(0, 0));
    assert_eq!(suspend("sub"), Event::Suspend(1, 1));
    assert_eq!(suspend(""), Event::Suspend(1, 1));
    assert_eq!(suspend("whatever"), Event::Suspend(1, 1));
}

#[test]
fn memory_is_read_by_lines_and_chased_by_hops() {
    let run = |rest: &str| {
        events(&format!(
            "\"memrun\": {{\"size\": 4096, \"count\": 640, {rest}}}"
        ))
    };
    assert_eq!(run("\"type\": \"read\""), [Event::Memory(640)]);
    assert_eq!(
        run("\"type\": \"write\", \"stride\": 128, \"pattern\": \"random\""),
        [Event::Memory(320)]
    );
    assert_eq!(
        run("\"type\": \"write\", \"stride\": 8"),
        [Event::Memory(640)]
    );
    assert_eq!(
        run("\"type\": \"chase\", \"ref\": \"buffer\""),
        [Event::Chase(640)]
    );
}

#[test]
fn forks_may_name_a_task_further_on() {
    let text = "{\"tasks\": {\"a\": {\"fork\": \"c\", \"fork1\": \"b\"}, \"b\": {\"instance\": 0, \"run\": 1},
        \"c\": {\"instance\": 0, \"run\": 1}}}";
    assert_eq!(read(text).forks, [2, 1]);
}

#[test]
fn policies_priorities_slices_and_groups_are_what_changes() {
    let text =
        "{\"tasks\": {\"t\": {\"policy\": \"SCHED_BATCH\", \"priority\": 5, \"cpus\": [0, 3],
        \"taskgroup\": \"/a/b\", \"phases\": {
            \"same\": {\"run\": 1},
            \"nice\": {\"run\": 1, \"priority\": -7, \"cpus\": [1]},
            \"idle\": {\"run\": 1, \"policy\": \"SCHED_IDLE\", \"taskgroup\": \"/a\"},
            \"slice\": {\"run\": 1, \"policy\": \"SCHED_OTHER\", \"dl-runtime\": 500}}}}}";
    let file = read(text);
    let task = &file.tasks[0];
    assert_eq!(task.properties.class, Some(Class::Fair(Policy::Batch)));
    assert_eq!(
        (task.properties.priority, task.properties.group),
        (Some(5), Some(1))
    );
    assert_eq!(task.properties.cpus, Some(vec![0, 3]));
    let of = |phase: usize| &task.phases[phase].properties;
    assert_eq!(of(0), &Default::default());
    assert_eq!((of(1).class, of(1).priority), (None, Some(-7)));
    assert_eq!((of(2).priority, of(2).group), (Some(0), Some(0)));
    assert_eq!((of(3).slice, of(3).group), (Some(Ns(500 * US)), None));
    let groups: Vec<_> = file
        .groups
        .iter()
        .map(|g| (g.name.as_str(), g.parent))
        .collect();
    assert_eq!(groups, [("/a", None), ("/a/b", Some(0))]);
    let highest = file.highest_cpu.expect("CPUs are named");
    assert_eq!(highest, (3, "test.json:1:66".to_owned()));
}

#[test]
fn what_is_not_modelled_is_told_with_its_place() {
    let text = "{\"global\": {\"frag\": 1, \"io_device\": \"/tmp/x\"}, \"task\": {},
\"tasks\": {\"t\": {\"policy\": \"SCHED_FIFO\", \"priority\": 20, \"util_min\": 512, \"run\": 1, \"exec\": 2},
 \"u\": {\"policy\": \"SCHED_RR\", \"nodes_membind\": [0], \"util_max\": -1, \"phases\": {\"p\": {\"run\": 1}}, \"run\": 2}}}";
    let warnings = read(text).warnings;
    let all = warnings.join("\n");
    for part in [
        "test.json:1:48: 'task' is no key",
        "test.json:1:13: 'frag' is no key",
        "test.json:1:37: every 'io_device'",
        "test.json:2:27: SCHED_FIFO, SCHED_RR",
        "test.json:2:69: 'util_min' and",
        "'exec' is no key",
        "'nodes_membind' does nothing",
        "test.json:3:97: 'run' is no key",
    ] {
        assert!(all.contains(part), "{part}:\n{all}");
    }
    assert_eq!(warnings.len(), 8, "{all}");
}

#[test]
fn calibration_is_a_cpu_or_a_length() {
    let of = |value: &str| {
        let text = format!(
            "{{\"global\": {{\"calibration\": {value}}}, \"tasks\": {{\"t\": {{\"run\": 1}}}}}}"
        );
        read(&text).global.calibration
    };
    assert_eq!(of("\"CPU3\""), Calibration::Cpu(3));
    assert_eq!(of("128"), Calibration::NsPerLoop(128));
    assert_eq!(of("0"), Calibration::Cpu(0));
    assert_eq!(of("null"), Calibration::Cpu(0));
}

#[test]
fn a_scale_shortens_loops_of_tasks_and_then_of_phases() {
    let scaled = |factor: f64| {
        let mut file = read(
            "{\"global\": {\"duration\": 10}, \"tasks\": {
            \"long\": {\"loop\": 100, \"phases\": {\"p\": {\"loop\": 10, \"run\": 1}}},
            \"short\": {\"loop\": 1000, \"run\": 1},
            \"endless\": {\"phases\": {\"p\": {\"loop\": 10, \"run\": 1}}}}}",
        );
        scale(&mut file, factor);
        let loops = |task: &file::Task| (task.loops, task.phases[0].loops);
        (
            file.global.duration,
            file.tasks.iter().map(loops).collect::<Vec<_>>(),
        )
    };
    let (ten, one) = (Some(10), Some(1));
    assert_eq!(
        scaled(0.1),
        (
            Some(Ns(1_000_000_000)),
            vec![(ten, ten), (one, Some(100)), (None, ten)]
        )
    );
    assert_eq!(scaled(0.001).1, [(one, one), (one, one), (None, ten)]);
    assert_eq!(
        scaled(2.0).1,
        [(Some(200), ten), (Some(2), Some(1000)), (None, ten)]
    );
}

proptest! {
    #[test]
    fn any_text_gives_a_file_or_an_error(bytes: Vec<u8>) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = (file_of(&text), check("test.json", &bytes));
    }

    /// Files put together from keys and values that fit and that do not.
    #[test]
    fn any_members_give_a_file_or_an_error_at_a_place(
        members in prop::collection::vec((0..KEYS.len(), 0..VALUES.len()), 0..6),
        phases: bool,
    ) {
        let member = |&(key, value): &(usize, usize)| format!("\"{}\": {}", KEYS[key], VALUES[value]);
        let members: Vec<String> = members.iter().map(member).collect();
        let members = members.join(", ");
        let text = if phases {
            format!("{{\"global\": {{{members}}}, \"tasks\": {{\"t\": {{\"phases\": {{\"p\": {{{members}}}}}}}}}}}")
        } else {
            task(&members)
        };
        match file_of(&text) {
            Ok(file) => prop_assert!(!file.tasks[0].phases[0].events.is_empty()),
            Err(error) => prop_assert!(error.to_string().starts_with("test.json:1:"), "{}", error),
        }
    }
}

const KEYS: [&str; 30] = [
    "run",
    "runtime",
    "sleep",
    "timer",
    "lock",
    "unlock",
    "wait",
    "signal",
    "sync",
    "barrier",
    "resume",
    "suspend",
    "mem",
    "memrun",
    "iorun",
    "yield",
    "fork",
    "sem_post",
    "loop",
    "policy",
    "priority",
    "cpus",
    "taskgroup",
    "dl-runtime",
    "instance",
    "delay",
    "duration",
    "calibration",
    "ftrace",
    "util_max",
];

const VALUES: [&str; 14] = [
    "1",
    "0",
    "-1",
    "99999999999",
    "\"t\"",
    "\"/t\"",
    "\"SCHED_IDLE\"",
    "\"SCHED_FIFO\"",
    "[0, 1]",
    "{}",
    "{\"ref\": \"r\", \"period\": 7, \"mutex\": \"m\"}",
    "null",
    "true",
    "1.5",
];
