//! A group of many members over many partitions, held by one program (`go/scale.go`): what happens
//! when they come together, one more joins, one leaves, one dies.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Broker;
use crate::tools::go_beside;

/// How long a group may take to settle; the program itself gives up before.
const LIMIT: Duration = Duration::from_secs(240);

/// What happens, in this order.
pub const STEPS: [&str; 4] = ["together", "joins", "leaves", "dies"];

/// A group.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub members: usize,
    pub partitions: usize,
    pub session: Duration,
}

/// Broker settings under which members of both protocols are missed after the same time.
pub fn settings(size: Size) -> Vec<(&'static str, String)> {
    let session = size.session.as_millis().to_string();
    vec![
        ("group.consumer.min.session.timeout.ms", session.clone()),
        ("group.consumer.session.timeout.ms", session),
    ]
}

/// What the members saw in one step: see `go/scale.go`; times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub step: String,
    pub numbers: BTreeMap<String, u64>,
}

impl Seen {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let step = words.next().filter(|word| STEPS.contains(word))?;
        let mut numbers = BTreeMap::new();
        while let Some(name) = words.next() {
            numbers.insert(name.to_owned(), words.next()?.parse().ok()?);
        }
        Some(Self {
            step: step.to_owned(),
            numbers,
        })
    }
}

/// Runs a group through all steps; `each` is told of each once it is over. The protocol is `eager`,
/// `cooperative` or `consumer`.
#[track_caller]
pub fn run(broker: &Broker, protocol: &str, size: Size, mut each: impl FnMut(Seen)) {
    let arguments = [
        "scale".to_owned(),
        protocol.to_owned(),
        size.members.to_string(),
        size.partitions.to_string(),
        size.session.as_millis().to_string(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let program = go_beside(broker, &arguments);
    for step in STEPS {
        let line = program.wait_for_line(0, |line| line.starts_with(step), LIMIT);
        each(Seen::parse(&line).unwrap_or_else(|| panic!("{line:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_read() {
        let seen = Seen::parse("joins settled 120 moved 9 longest 30").unwrap();
        assert_eq!((&*seen.step, seen.numbers["moved"]), ("joins", 9));
        assert_eq!(Seen::parse("hello"), None);
        assert_eq!(Seen::parse("joins settled soon"), None);
    }
}
