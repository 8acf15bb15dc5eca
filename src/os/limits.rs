//! Limits of the process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::warn;

/// Raises the limit of open files as far as the process may.
pub(crate) fn raise_open_files() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(why) = raised {
        warn!(%why, "the limit of open files cannot be raised");
    }
}

/// Warns where the system does not lend addresses freely: counts on the wire are reserved before
/// they are believed, and there such a reservation fails and ends the process.
pub(crate) fn warn_of_strict_memory() {
    let strict = std::fs::read_to_string("/proc/sys/vm/overcommit_memory")
        .is_ok_and(|mode| mode.trim() == "2");
    let capped = getrlimit(Resource::RLIMIT_AS)
        .is_ok_and(|(soft, _)| soft != nix::sys::resource::RLIM_INFINITY);
    if strict || capped {
        warn!(
            vm.overcommit_memory = if strict { 2 } else { 0 },
            address_space_capped = capped,
            "address space is rationed (vm.overcommit_memory=2 or ulimit -v): a hostile request \
             could end this process; lift it, or let only trusted clients connect"
        );
    }
}
