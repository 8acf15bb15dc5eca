//! Chance: random bytes from the operating system.

use crate::base::Uuid;

/// Fills an array with random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    getrandom::fill(&mut out).expect("the operating system has random bytes");
    out
}

/// A random id that Kafka may give to a topic, a directory or a process.
pub(crate) fn uuid() -> Uuid {
    loop {
        if let Some(id) = Uuid::from_random(bytes()) {
            return id;
        }
    }
}

/// A random number below `bound`, which must not be zero.
pub(crate) fn below(bound: u64) -> u64 {
    u64::from_le_bytes(bytes()) % bound
}
