//! What tests of the command share.

use std::io::Read as _;
use std::process::{Child, Command};

/// Sends Ctrl-C to a program and waits for its end: what it wrote to standard output and to standard
/// error, and its exit code.
pub fn interrupt(mut child: Child) -> (String, String, Option<i32>) {
    let id = child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.expect("kill is there").success());
    let (mut out, mut err) = (String::new(), String::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read = stdout.expect("it is piped").read_to_string(&mut out);
    read.expect("it is text");
    let read = stderr.expect("it is piped").read_to_string(&mut err);
    read.expect("it is text");
    (out, err, child.wait().expect("it ends").code())
}
