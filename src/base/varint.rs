//! Variable-length integers as Kafka writes them: unsigned base 128, and zig-zag for signed ones
//! (org.apache.kafka.common.utils.ByteUtils).

use bytes::BufMut;

/// Appends an unsigned 32-bit integer in 1 to 5 bytes.
pub(crate) fn put_unsigned(out: &mut impl BufMut, mut value: u32) {
    while value >= 0x80 {
        out.put_u8(low_seven(value.into()) | 0x80);
        value >>= 7;
    }
    out.put_u8(low_seven(value.into()));
}

/// Appends a signed 32-bit integer, zig-zag, in 1 to 5 bytes.
pub(crate) fn put_signed(out: &mut impl BufMut, value: i32) {
    put_unsigned(
        out,
        (value.cast_unsigned() << 1) ^ (value >> 31).cast_unsigned(),
    );
}

/// Appends a signed 64-bit integer, zig-zag, in 1 to 10 bytes.
pub(crate) fn put_signed_long(out: &mut impl BufMut, value: i64) {
    let mut rest = (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned();
    while rest >= 0x80 {
        out.put_u8(low_seven(rest) | 0x80);
        rest >>= 7;
    }
    out.put_u8(low_seven(rest));
}

/// Reads an unsigned 32-bit integer and moves `input` past it; `None` when it is cut short or
/// longer than five bytes.
pub(crate) fn take_unsigned(input: &mut &[u8]) -> Option<u32> {
    let wide = take(input, 5)?;
    // Kafka keeps the low 32 bits of what five bytes can hold.
    Some(
        (wide & u64::from(u32::MAX))
            .try_into()
            .expect("masked to 32 bits"),
    )
}

/// Reads a zig-zag 32-bit integer and moves `input` past it; `None` as [`take_unsigned`].
pub(crate) fn take_signed(input: &mut &[u8]) -> Option<i32> {
    let raw = take_unsigned(input)?;
    Some((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
}

/// Reads a zig-zag 64-bit integer and moves `input` past it; `None` when it is cut short or
/// longer than ten bytes.
pub(crate) fn take_signed_long(input: &mut &[u8]) -> Option<i64> {
    let raw = take(input, 10)?;
    Some((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed())
}

/// How many bytes [`put_unsigned`] needs.
pub(crate) fn unsigned_len(value: u32) -> usize {
    let bits = 32 - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn low_seven(value: u64) -> u8 {
    value.to_le_bytes()[0] & 0x7f
}

fn take(input: &mut &[u8], longest: usize) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in input.iter().take(longest).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *input = &input[index + 1..];
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_integers_survive_the_round_trip() {
        for value in [0, 1, -1, 63, -64, 64, i32::MAX, i32::MIN] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            let mut input = &out[..];
            assert_eq!(take_signed(&mut input), Some(value));
            assert!(input.is_empty());
        }
        for value in [0, 1, -1, i64::MAX, i64::MIN, 1 << 40] {
            let mut out = Vec::new();
            put_signed_long(&mut out, value);
            assert_eq!(take_signed_long(&mut &out[..]), Some(value));
        }
    }

    #[test]
    fn the_length_is_what_is_written() {
        for value in [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, u32::MAX] {
            let mut out = Vec::new();
            put_unsigned(&mut out, value);
            assert_eq!(out.len(), unsigned_len(value));
            assert_eq!(take_unsigned(&mut &out[..]), Some(value));
        }
    }

    #[test]
    fn an_endless_integer_is_refused() {
        assert_eq!(take_unsigned(&mut &[0x80; 6][..]), None);
        assert_eq!(take_signed_long(&mut &[0xff; 11][..]), None);
        assert_eq!(take_unsigned(&mut &[][..]), None);
    }
}
