//! What machines want done outside, beside their records.

use std::sync::{Arc, OnceLock};

use super::group::consumer_ask::TakeResolved;
use super::group::subscription::look_up;
use super::group::{Effect, GroupMachine, View};
use crate::machine::ask::Ask;
use crate::machine::handle::{Handle, WeakHandle};
use crate::os::tasks::{self, Tasks};

/// Carries out the effects of one machine of groups, and tells it what came of them.
#[derive(Clone)]
pub(super) struct Effects {
    tasks: Tasks,
    machine: Arc<OnceLock<WeakHandle<GroupMachine>>>,
}

impl Effects {
    /// For a machine that is about to run.
    pub(super) fn new(tasks: Tasks) -> Self {
        Self {
            tasks,
            machine: Arc::default(),
        }
    }

    /// The machine runs; it is told through this handle.
    pub(super) fn tell(&self, handle: &Handle<GroupMachine>) {
        let _ = self.machine.set(handle.downgrade());
    }

    /// Carries out an effect.
    pub(super) fn perform(&self, effect: Effect) {
        match effect {
            Effect::LookUp {
                group,
                patterns,
                view,
            } => self.look_up(group, patterns, view),
        }
    }

    fn look_up(&self, group: Arc<str>, patterns: Vec<Arc<str>>, view: View) {
        let machine = self.machine.clone();
        self.tasks.spawn("topics-of-patterns", async move {
            let version = view.version;
            let found = tasks::blocking(move || look_up(&patterns, &view.image, |_| true)).await;
            let Some(handle) = machine.get().and_then(WeakHandle::upgrade) else {
                return;
            };
            let told = TakeResolved {
                group,
                version,
                // Nothing is taken, and the next heartbeat tries again.
                resolved: found.unwrap_or_default(),
            };
            // A machine that ended meanwhile looks them up anew elsewhere.
            let _ = handle.ask(told.into_event()).await;
        });
    }
}
