//! CRC-32C, the checksum of batches and snapshots.

use crc_fast::{CrcAlgorithm, Digest};

/// The checksum of some bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// The checksum of what `crc` is of, followed by `bytes`.
pub(crate) fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    narrow(digest.finalize())
}

/// The library gives every width as 64 bits.
fn narrow(crc: u64) -> u32 {
    u32::try_from(crc).expect("a checksum of 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_castagnolis() {
        // The check value of CRC-32/ISCSI.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn parts_add_up_at_every_length() {
        let bytes: Vec<u8> = (0..4000_u32).map(|n| (n * 31 % 251) as u8).collect();
        for cut in [0, 1, 7, 61, 64, 255, 1024, 3999, 4000] {
            let (head, tail) = bytes.split_at(cut);
            assert_eq!(crc32c_append(crc32c(head), tail), crc32c(&bytes), "{cut}");
            let slow = tail.iter().fold(crc32c(head), |crc, byte| {
                crc32c_append(crc, std::slice::from_ref(byte))
            });
            assert_eq!(slow, crc32c(&bytes), "{cut}");
        }
    }
}
