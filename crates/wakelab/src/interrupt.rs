//! Ctrl-C.

use anyhow::Context as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that Ctrl-C (or SIGTERM) sets; a second one ends the program at once.
///
/// # Errors
/// If the handler cannot be installed.
pub fn catch() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if set.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::INTERRUPTED));
        }
    })
    .context("cannot catch Ctrl-C")?;
    Ok(flag)
}
