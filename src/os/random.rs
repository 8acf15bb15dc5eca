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

/// A small generator for tests, the same on every machine (splitmix64).
#[cfg(test)]
pub(crate) struct Dice(pub(crate) u64);

#[cfg(test)]
impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 when that is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound.max(1) as u64).expect("below a usize")
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}
