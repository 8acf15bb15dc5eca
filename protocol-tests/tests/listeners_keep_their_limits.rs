//! Several listeners in one broker, and what bounds their connections.

use std::time::{Duration, Instant};

use kafka_protocol::messages::{ApiVersionsRequest, MetadataRequest};
use protocol_tests::broker::free_port;
use protocol_tests::wire::{Connection, create_topics, fetch, frame, metadata, produce};
use protocol_tests::{Broker, Kind};

/// A connection that is served.
fn served(port: u16) -> Connection {
    let mut connection = Connection::open_port(port);
    connection.api_versions();
    connection
}

/// A connection that the kernel has taken and the broker has not: its question stays unanswered.
fn waiting(port: u16) -> Connection {
    let mut connection = Connection::open_port(port);
    connection
        .send(&frame(0, 1, &ApiVersionsRequest::default()))
        .unwrap();
    assert!(connection.is_silent(Duration::from_millis(400)));
    connection
}

/// A broker with a second listener, `SIDE`, that says it is elsewhere.
fn two_listeners(settings: &[(&str, &str)]) -> (Broker, u16) {
    let (side, controller) = (free_port(), free_port());
    let mut broker = Broker::prepare(settings);
    let main = broker.port();
    let listeners = format!(
        "PLAINTEXT://127.0.0.1:{main},SIDE://127.0.0.1:{side},CONTROLLER://127.0.0.1:{controller}"
    );
    let advertised = format!("PLAINTEXT://127.0.0.1:{main},SIDE://side.example:7777");
    for (key, value) in [
        ("listeners", listeners.as_str()),
        ("advertised.listeners", &advertised),
        (
            "listener.security.protocol.map",
            "PLAINTEXT:PLAINTEXT,SIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        ),
        ("controller.listener.names", "CONTROLLER"),
        (
            "controller.quorum.voters",
            &format!("1@127.0.0.1:{controller}"),
        ),
        ("inter.broker.listener.name", "PLAINTEXT"),
    ] {
        broker.set(key, value);
    }
    broker.restart();
    (broker, side)
}

#[test]
fn each_listener_tells_its_own_address() {
    let (broker, side) = two_listeners(&[]);
    let everything = MetadataRequest::default().with_topics(Some(vec![]));
    for (port, host, told) in [
        (broker.port(), "127.0.0.1", broker.port()),
        (side, "side.example", 7777),
    ] {
        let answer = served(port).ask(12, &everything);
        let brokers: Vec<_> = answer
            .brokers
            .iter()
            .map(|one| (one.host.as_str(), one.port))
            .collect();
        assert_eq!(brokers, [(host, i32::from(told))]);
    }
}

#[test]
fn a_listener_that_is_full_takes_the_next_one_when_another_leaves() {
    let (broker, side) = two_listeners(&[("listener.name.side.max.connections", "2")]);
    let first = served(side);
    let _second = served(side);
    let mut third = waiting(side);
    // The other listener is free.
    let _others: Vec<_> = (0..5).map(|_| served(broker.port())).collect();
    drop(first);
    assert!(third.receive().unwrap().is_some());
}

#[test]
fn all_listeners_together_are_bounded_and_brokers_take_the_place_of_others() {
    let (broker, side) = two_listeners(&[("max.connections", "3")]);
    // Kafka has no connection of its own on these listeners.
    let oldest = served(side);
    let _second = served(side);
    let _third = served(side);
    let _fourth = waiting(side);
    // The listener of the brokers has room, and the longest silent connection goes.
    let _broker_side = served(broker.port());
    oldest.expect_closed("a broker took its place");
}

#[test]
fn an_address_may_have_so_many_connections() {
    let broker = Broker::start_with(&[("max.connections.per.ip", "3")]);
    let mut kept: Vec<_> = (0..3).map(|_| served(broker.port())).collect();
    for _ in 0..3 {
        Connection::open(&broker).expect_closed("one connection too many");
    }
    kept.pop();
    let start = Instant::now();
    loop {
        let mut again = Connection::open(&broker);
        let asked = again.send(&frame(0, 1, &ApiVersionsRequest::default()));
        if asked.is_ok() && matches!(again.receive(), Ok(Some(_))) {
            break;
        }
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "no place is freed"
        );
    }
    for connection in &mut kept {
        connection.api_versions();
    }
}

#[test]
fn an_override_by_address_counts_more() {
    let broker = Broker::start_with(&[
        ("max.connections.per.ip", "1"),
        ("max.connections.per.ip.overrides", "127.0.0.1:2,10.1.1.1:7"),
    ]);
    let _kept: Vec<_> = (0..2).map(|_| served(broker.port())).collect();
    let refused = Connection::open(&broker);
    let peer = refused.local().to_string();
    refused.expect_closed("one connection too many");
    if broker.kind() == Kind::Barnabas {
        let limit = Duration::from_secs(10);
        let line = broker
            .process()
            .wait_for_line(0, |line| line.contains(&peer), limit);
        assert!(line.contains("PLAINTEXT") && line.contains("2 connections"));
    }
}

#[test]
fn new_connections_are_slowed_down_to_their_rate() {
    let broker =
        Broker::start_with(&[("listener.name.plaintext.max.connection.creation.rate", "5")]);
    // A window of ten seconds holds fifty.
    let _burst: Vec<_> = (0..50).map(|_| served(broker.port())).collect();
    let start = Instant::now();
    let _slow: Vec<_> = (0..5).map(|_| served(broker.port())).collect();
    assert!(start.elapsed() > Duration::from_millis(600));
}

#[test]
fn a_connection_that_is_silent_for_too_long_is_closed() {
    let broker = Broker::start_with(&[
        ("connections.max.idle.ms", "1500"),
        ("connection.failed.authentication.delay.ms", "0"),
    ]);
    let idle = served(broker.port());
    let mut busy = served(broker.port());
    let start = Instant::now();
    let watch = std::thread::spawn(move || {
        idle.expect_closed("silence");
        start.elapsed()
    });
    while !watch.is_finished() {
        busy.api_versions();
        assert!(busy.is_silent(Duration::from_millis(100)));
    }
    let closed_after = watch.join().unwrap();
    assert!(
        closed_after > Duration::from_millis(1200),
        "{closed_after:?}"
    );
    assert!(closed_after < Duration::from_secs(5), "{closed_after:?}");
    busy.api_versions();
}

#[test]
fn large_requests_share_a_budget_and_all_get_through() {
    let broker = Broker::start_with(&[
        ("socket.request.max.bytes", "2000000"),
        ("queued.max.request.bytes", "2000000"),
        ("queued.max.requests", "1"),
    ]);
    let mut client = Connection::open(&broker);
    client.ask(7, &create_topics("budget", 1));
    client.end_offset("budget", 0);
    let value = vec![7; 900_000];
    // One that never ends its frame holds its bytes, which are not all.
    let mut stuck = Connection::open(&broker);
    let whole = frame(9, 1, &produce("budget", 1, &[&value]));
    stuck.send(&whole[..500_000]).unwrap();
    let port = broker.port();
    let writers: Vec<_> = (0..6)
        .map(|_| {
            let value = value.clone();
            std::thread::spawn(move || {
                let mut client = Connection::open_port(port);
                for _ in 0..10 {
                    client.produce("budget", 1, &[&value]);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.join().unwrap();
    }
    assert_eq!(client.end_offset("budget", 0), 60);
    stuck.send(&whole[500_000..]).unwrap();
    assert!(stuck.receive().unwrap().is_some());
    client.ask(12, &metadata("budget"));
    client.ask(12, &fetch("budget", 60));
}

#[test]
fn a_spent_budget_leaves_sockets_unread_until_a_request_is_done() {
    let broker = Broker::start_with(&[
        ("socket.request.max.bytes", "2000000"),
        ("queued.max.request.bytes", "2000000"),
    ]);
    let mut client = Connection::open(&broker);
    client.create_topic("budget", 1);
    client.end_offset("budget", 0);
    let value = vec![7; 900_000];
    let whole = frame(9, 1, &produce("budget", 1, &[&value]));
    let mut stuck: Vec<_> = (0..3)
        .map(|_| {
            let mut stuck = Connection::open(&broker);
            stuck.send(&whole[..500_000]).unwrap();
            stuck
        })
        .collect();
    // What was sent is counted soon, not at once.
    loop {
        let question = frame(0, 7, &ApiVersionsRequest::default());
        client.send(&question).unwrap();
        if client.is_silent(Duration::from_millis(400)) {
            break;
        }
        client.receive().unwrap();
    }
    stuck[0].send(&whole[500_000..]).unwrap();
    assert!(stuck[0].receive().unwrap().is_some());
    assert!(client.receive().unwrap().is_some());
}
