//! Groups of many members, the short form of `scripts/group-scale`: they settle, evenly, and no
//! partition ever has two owners.

use std::time::Duration;

use protocol_tests::Broker;
use protocol_tests::scale::{self, STEPS, Size};

const SIZE: Size = Size {
    members: 30,
    partitions: 300,
    session: Duration::from_secs(6),
};

fn story(protocol: &str) {
    let settings = scale::settings(SIZE);
    let mut settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    settings.push(("group.consumer.min.heartbeat.interval.ms", "500"));
    settings.push(("group.consumer.heartbeat.interval.ms", "1000"));
    let broker = Broker::start_with(&settings);
    let mut steps = Vec::new();
    scale::run(&broker, protocol, SIZE, |seen| {
        println!("{protocol} {seen:?}");
        assert_eq!(seen.numbers["twice"], 0, "{seen:?}");
        steps.push(seen.step);
    });
    assert_eq!(steps, STEPS);
}

#[test]
fn by_every_protocol() {
    // Most of the time goes into waiting for sessions to end, which they can do together.
    std::thread::scope(|scope| {
        for protocol in ["eager", "cooperative", "consumer"] {
            scope.spawn(move || story(protocol));
        }
    });
}
