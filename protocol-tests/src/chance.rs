//! Numbers that look random and come again with the same seed.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (SplitMix64): the same seed gives the same story.
pub struct Chance(u64);

impl Chance {
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// Takes the seed from `PROTOCOL_TESTS_SEED` or else from the clock, and prints it.
    pub fn announced(story: &str) -> Self {
        let seed = match std::env::var("PROTOCOL_TESTS_SEED") {
            Ok(given) => given.parse().expect("PROTOCOL_TESTS_SEED is a number"),
            Err(_) => u64::from(
                SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .expect("the clock is past 1970")
                    .subsec_nanos(),
            ),
        };
        println!("{story}: PROTOCOL_TESTS_SEED={seed}");
        Self(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() % end as u64).expect("it is below a usize")
    }

    /// A number in `from..end`.
    pub fn between(&mut self, from: usize, end: usize) -> usize {
        from + self.below(end - from)
    }

    pub fn one_of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }
}
