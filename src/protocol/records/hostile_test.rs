//! Bytes that nobody meant: random damage to good batches must be refused or read, never panic.

use super::batch::Header;
use super::batch::{Batch, Batches, PREFIX_LEN};
use super::build::BatchBuilder;
use super::compress::{Codec, Compression};
use super::control::ControlRecord;
use super::iter::{Records, walk};
use super::legacy::LegacyBatch;
use super::legacy::samples::{message, wrapper};

/// A small generator, the same on every machine (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % bound as u64).unwrap()
    }
}

fn sample(codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).compression(Compression::from(codec));
    for n in 0..20i64 {
        let value = [b'v'; 100];
        builder.append(n, Some(b"key"), Some(&value), &[(b"h", Some(b"1"))]);
    }
    builder.build().unwrap()
}

#[test]
fn damaged_batches_are_refused_or_read() {
    let seed = 0x5eed_0001;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    for codec in [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ] {
        let good = sample(codec);
        for _ in 0..4000 {
            let mut bytes = good.clone();
            for _ in 0..=dice.below(4) {
                let at = PREFIX_LEN + dice.below(bytes.len() - PREFIX_LEN);
                bytes[at] = dice.roll().to_le_bytes()[0];
            }
            if dice.below(4) == 0 {
                bytes.truncate(dice.below(bytes.len()));
            }
            let Ok(batch) = Batch::parse(&bytes) else {
                continue;
            };
            let _ = batch.check_crc();
            let walked = walk(&batch, 1 << 20, |_| ());
            if let Ok(records) = Records::of(&batch, 1 << 20) {
                let read: Result<Vec<_>, _> = records.iter().collect();
                if walked.is_ok() {
                    let read = read.unwrap();
                    read.iter().for_each(|record| {
                        assert_eq!(
                            record.headers().count(),
                            usize::try_from(record.headers_count()).unwrap()
                        );
                    });
                }
            }
        }
    }
}

#[test]
fn damaged_messages_are_refused_or_read() {
    let seed = 0x5eed_0003;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4] {
        for magic in [0, 1] {
            let inner = |offset| message((offset, magic, 0), 5, Some(b"key"), Some(&[b'v'; 90]));
            let good = match codec == Codec::None {
                true => inner(7),
                false => wrapper((9, magic), codec, &[inner(0), inner(1), inner(9)].concat()),
            };
            for _ in 0..2000 {
                let mut bytes = good.clone();
                for _ in 0..=dice.below(3) {
                    let at = dice.below(bytes.len());
                    bytes[at] = dice.roll().to_le_bytes()[0];
                }
                let Ok(batch) = LegacyBatch::parse(&bytes) else {
                    continue;
                };
                let walked = batch.walk(1 << 20, |_, _| ());
                let Ok(messages) = batch.messages(1 << 20) else {
                    assert!(walked.is_err());
                    continue;
                };
                let read: Result<Vec<_>, _> = messages.iter().collect();
                assert_eq!(walked.is_ok(), read.is_ok());
                for message in read.unwrap_or_default() {
                    let value = message.value();
                    assert!(
                        value.is_err()
                            || value.ok().flatten().is_some() == message.has_value().unwrap()
                    );
                    let _ = message.key();
                }
            }
        }
    }
}

#[test]
fn random_bytes_are_refused_or_read() {
    let seed = 0x5eed_0002;
    println!("seed {seed:#x}");
    let mut dice = Dice(seed);
    for _ in 0..20_000 {
        let len = dice.below(120);
        let mut bytes: Vec<u8> = (0..len).map(|_| dice.roll().to_le_bytes()[0]).collect();
        if len > 16 {
            bytes[16] = 2;
            bytes[8..11].fill(0);
        }
        let _ = Header::parse(&bytes);
        Batches::new(&bytes).for_each(drop);
        let key = [0, 0, 0, bytes.first().copied().unwrap_or(0) % 8];
        let _ = ControlRecord::read(&key, &bytes);
    }
}
