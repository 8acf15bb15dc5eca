//! How long a fresh group waits for its first message; `scripts/first-message` builds what it needs
//! and calls it.

use std::time::Instant;

use protocol_tests::Kind;
use protocol_tests::first_message::{Client, Way, watch};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| words.iter().any(|it| it == word);
    let kind = if has("--apache-kafka") {
        Kind::ApacheKafka
    } else {
        Kind::Barnabas
    };
    for client in Client::ALL {
        let ways = watch(kind, client, 10);
        let times: Vec<String> = ways.iter().map(|way| format!("{:.0}", way.ms)).collect();
        println!("{kind:?} {client:?}: {} ms", times.join(" "));
        if has("--timeline") {
            ways.iter().take(2).for_each(show);
        }
    }
}

fn show(way: &Way) {
    let ms = |at: Instant| at.saturating_duration_since(way.subscribed).as_secs_f64() * 1e3;
    for asked in &way.asked {
        let answered = asked
            .answered
            .map_or_else(|| "later".to_owned(), |at| format!("{:6.1}", ms(at)));
        println!(
            "  {:6.1} to {answered}  connection {}  {} v{}",
            ms(asked.asked),
            asked.connection,
            asked.name(),
            asked.version
        );
    }
    println!("  {:6.1} the message", way.ms);
}
