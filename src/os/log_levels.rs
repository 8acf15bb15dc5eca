//! How much is logged, module by module; it can be changed while the node runs.
//!
//! Logging belongs to the process, and so do its levels.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;

/// How much a module logs: what is named and all that is graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Puts a filter in force.
type Reload = Box<dyn Fn(EnvFilter) + Send>;

struct State {
    /// What was begun with.
    begun: String,
    /// Set since then, by module; the empty name stands for all.
    set: BTreeMap<&'static str, Level>,
    reload: Option<Reload>,
}

static STATE: Mutex<State> = Mutex::new(State {
    begun: String::new(),
    set: BTreeMap::new(),
    reload: None,
});

/// Notes the filter that logging begins with, and how another is put in force.
pub(crate) fn begin(filter: &str, reload: impl Fn(EnvFilter) + Send + 'static) {
    let mut state = STATE.lock();
    filter.clone_into(&mut state.begun);
    state.reload = Some(Box::new(reload));
}

/// The level of a module: its own, or that of the next one above it.
pub(crate) fn level(module: &str) -> Level {
    let state = STATE.lock();
    let levels = levels(&state.begun, &state.set);
    let above =
        |name: &str| name.is_empty() || module == name || module.starts_with(&format!("{name}::"));
    let nearest = levels
        .iter()
        .filter(|(name, _)| above(name))
        .max_by_key(|(name, _)| name.len());
    nearest.map_or(Level::Info, |(_, level)| *level)
}

/// Sets a module's level, or has it follow those above it.
pub(crate) fn set(module: &'static str, level: Option<Level>) {
    let mut state = STATE.lock();
    match level {
        Some(level) => state.set.insert(module, level),
        None => state.set.remove(module),
    };
    let all = state.set.iter().map(|(name, level)| {
        let level = level.name();
        if name.is_empty() {
            level.to_owned()
        } else {
            format!("{name}={level}")
        }
    });
    // What comes later counts.
    let filter: Vec<String> = std::iter::once(state.begun.clone()).chain(all).collect();
    if let Some(reload) = &state.reload {
        reload(EnvFilter::new(filter.join(",")));
    }
}

/// What a filter and what was set since make of each module.
fn levels(begun: &str, set: &BTreeMap<&'static str, Level>) -> BTreeMap<String, Level> {
    let begun = begun.split(',').filter_map(|part| {
        let (name, level) = part.split_once('=').unwrap_or(("", part));
        Some((name.trim().to_owned(), Level::of(level)?))
    });
    let set = set.iter().map(|(name, level)| ((*name).to_owned(), *level));
    begun.chain(set).collect()
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    fn of(text: &str) -> Option<Self> {
        let all = [
            Self::Error,
            Self::Warn,
            Self::Info,
            Self::Debug,
            Self::Trace,
        ];
        all.into_iter()
            .find(|level| text.trim().eq_ignore_ascii_case(level.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_counts_over_what_was_begun_with() {
        let set = BTreeMap::from([("barnabas::api", Level::Trace), ("", Level::Warn)]);
        let all = levels("info, openraft=error,x=loud", &set);
        assert_eq!(all[""], Level::Warn);
        assert_eq!(all["openraft"], Level::Error);
        assert_eq!(all["barnabas::api"], Level::Trace);
        assert!(!all.contains_key("x"));
    }
}
