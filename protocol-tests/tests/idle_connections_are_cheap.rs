//! What a thousand idle connections cost.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use protocol_tests::wire::Connection;
use protocol_tests::{Broker, Kind};

const CONNECTIONS: u64 = 1000;
const GOAL_BYTES_EACH: u64 = 2560;

#[test]
fn a_thousand_idle_connections_cost_less_than_two_and_a_half_kib_each() {
    // Both sides need more descriptors than the usual thousand; the broker inherits the limit.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    assert!(
        hard >= 2 * CONNECTIONS,
        "the hard limit of open files is {hard}"
    );
    setrlimit(Resource::RLIMIT_NOFILE, hard.min(100_000), hard).unwrap();

    let broker = Broker::start();
    // The first few bring in the code and the pools that any connection needs.
    let warm: Vec<Connection> = (0..32).map(|_| shaken(&broker)).collect();
    let before = broker.resident_bytes();
    let idle: Vec<Connection> = (0..CONNECTIONS).map(|_| shaken(&broker)).collect();
    let after = broker.resident_bytes();
    let each = after.saturating_sub(before) / CONNECTIONS;
    println!("{before} bytes before, {after} after: {each} for each of {CONNECTIONS} connections");
    if broker.kind() == Kind::Barnabas {
        assert!(
            each < GOAL_BYTES_EACH,
            "an idle connection costs {each} bytes"
        );
    }

    // They were alive all the time.
    for mut connection in warm.into_iter().chain(idle) {
        connection.api_versions();
    }
}

/// A connection as a client leaves it idle: it has asked for the versions.
fn shaken(broker: &Broker) -> Connection {
    let mut connection = Connection::open(broker);
    connection.api_versions();
    connection
}
