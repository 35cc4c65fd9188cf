//! What is refused in files, and where.

use super::{refused, task};

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let global =
        |value: &str| format!("{{\"global\": {{{value}}}, \"tasks\": {{\"t\": {{\"run\": 1}}}}}}");
    for (text, expected) in [
        (
            "[1]".to_owned(),
            "1:1: '[': expected an object for 'the file'",
        ),
        ("{}".to_owned(), "1:1: '{': expected a key 'tasks'"),
        (
            "{\n  \"tasks\" }".to_owned(),
            "2:11: '}': expected ':' after the key",
        ),
        (
            "{\"tasks\": {\"t\": yes}}".to_owned(),
            "1:17: 'yes': expected a value",
        ),
        (
            "{\"tasks\": {".to_owned(),
            "1:12: 'end of file': expected a key",
        ),
        (
            "{\"tasks\": {}}".to_owned(),
            "1:11: '0': expected from 1 to 65535 instances",
        ),
        (
            task("\"delay\": 1"),
            "1:11: 't': expected at least one event",
        ),
        (task("\"phases\": {}"), "'{': expected at least one phase"),
        (
            task("\"phases\": {\"p\": 1}"),
            "'1': expected an object for 'p'",
        ),
        (
            task("\"run\": 1.5"),
            "1:23: '1.5': expected a whole number for 'run'",
        ),
        (
            task("\"run\": -1"),
            "'-1': expected a number from 0 on for 'run'",
        ),
        (
            task("\"sleep1\": false"),
            "'false': expected a whole number for 'sleep1'",
        ),
        (
            task("\"lock_order\": [1]"),
            "'[': expected a string for 'lock_order'",
        ),
        (
            task("\"wait\": \"c\""),
            "'c': expected an object for 'wait'",
        ),
        (
            task("\"fork\": \"nobody\""),
            "'nobody': expected the name of a task for 'fork'",
        ),
        (
            task("\"timer\": {\"period\": \"x\"}"),
            "'x': expected a whole number for 'period'",
        ),
        (
            task("\"memrun\": {\"type\": \"read\", \"size\": 1}"),
            "'{': expected a key 'count' for 'memrun'",
        ),
        (
            task("\"memrun\": {\"type\": \"look\", \"size\": 1, \"count\": 1}"),
            "expected read, write or chase",
        ),
        (
            task("\"run\": 1, \"policy\": \"SCHED_EXT\""),
            "'SCHED_EXT': expected SCHED_OTHER,",
        ),
        (
            task("\"run\": 1, \"priority\": 20"),
            "'20': expected a nice level from -20 to 19",
        ),
        (
            task("\"run\": 1, \"policy\": \"SCHED_RR\", \"priority\": 0"),
            "a real-time priority from 1 to 99",
        ),
        (
            task("\"run\": 1, \"instance\": -1"),
            "'-1': expected a number from 0 on for 'instance'",
        ),
        (
            task("\"run\": 1, \"instance\": 65536"),
            "'65536': expected from 1 to 65535 instances",
        ),
        (
            task("\"run\": 1, \"cpus\": []"),
            "expected at least one number for 'cpus'",
        ),
        (
            task("\"run\": 1, \"cpus\": [-1]"),
            "expected an array of numbers from 0 on for 'cpus'",
        ),
        (
            task("\"run\": 1, \"util_min\": 1025"),
            "'1025': expected a number from -1 to 1024",
        ),
        (
            task("\"run\": 1, \"taskgroup\": \"a\""),
            "'a': expected a path that starts with '/'",
        ),
        (
            task("\"run\": 1, \"taskgroup\": \"/a\", \"policy\": \"SCHED_FIFO\""),
            "expected SCHED_OTHER, SCHED_BATCH",
        ),
        (
            task(
                "\"taskgroup\": \"/a\", \"phases\": {\"p\": {\"run\": 1, \"policy\": \"SCHED_FIFO\"}}",
            ),
            "'SCHED_FIFO': expected SCHED_OTHER, SCHED_BATCH",
        ),
        (
            global("\"duration\": \"1\""),
            "'1': expected a whole number for 'duration'",
        ),
        (
            global("\"duration\": 1000001"),
            "expected at most 1000000 seconds",
        ),
        (
            global("\"pi_enabled\": 1"),
            "'1': expected true or false for 'pi_enabled'",
        ),
        (
            global("\"calibration\": \"GPU0\""),
            "'GPU0': expected ns for each loop",
        ),
        (
            global("\"ftrace\": \"main,run\""),
            "'main,run': expected true, false or a list",
        ),
        (
            global("\"mem_buffer_size\": 0"),
            "'0': expected a number above 0",
        ),
        (
            "{\"resources\": {\"r\": {\"type\": \"rope\"}}, \"tasks\": {}}".to_owned(),
            "'rope': expected one of mutex,",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(expected), "{text}\n{error}\n{expected}");
    }
}
