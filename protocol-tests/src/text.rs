//! A text that is hard to carry: what the streamed files are made of.

use crate::Chance;

const WORDS: &[&str] = &[
    "offset",
    "leader",
    "epoch",
    "\"quoted\"",
    "'single'",
    "back\\slash",
    "%s%n",
    "a\tb",
    "\t",
    " ",
    "  ",
    "ünïcödé",
    "日本語",
    "🦀🦀",
    "\u{feff}",
    "{\"json\": [1, 2]}",
    "<xml/>",
    "\u{1b}[31mred",
    "-",
    "=",
    ":",
    ";",
    ",",
    "NULL",
    "null",
    "\\n",
    "\\0",
    "\r",
    "\u{7f}",
    "\u{2028}",
    "e\u{301}",
    "0",
];

/// The longest line: with its record's head it must fit into librdkafka's 1,000,000 byte messages.
const LONGEST_LINE: usize = 900_000;

/// At least `bytes` of text in lines of every length, empty ones too, the last one without an end of
/// line.
pub fn awkward(chance: &mut Chance, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + LONGEST_LINE);
    let mut long_ones = 0;
    while text.len() < bytes {
        let start = text.len();
        let length = match chance.below(1000) {
            0 => {
                long_ones += 1;
                chance.between(100_000, LONGEST_LINE)
            }
            1..80 => 0,
            80..100 => chance.between(2_000, 20_000),
            100..300 => chance.between(1, 30),
            _ => chance.between(30, 400),
        };
        // Now words, which compress, now noise, which does not.
        let noise = chance.below(4) == 0;
        while text.len() < start + length {
            if noise {
                text.extend(format!("{:x}", chance.number()).bytes());
            } else {
                text.extend_from_slice(chance.one_of(WORDS).as_bytes());
            }
        }
        text.push(b'\n');
    }
    assert!(
        long_ones > 0 || bytes < 5_000_000,
        "a long text has a long line"
    );
    text.extend_from_slice("the last line, and no end of line after it: ¶".as_bytes());
    text
}

/// Fails with the place and both sides' surroundings, not with fifty megabytes.
#[track_caller]
pub fn assert_same(got: &[u8], expected: &[u8], what: &str) {
    if got == expected {
        return;
    }
    let at = got.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let near = |side: &[u8]| {
        let (from, to) = (
            at.saturating_sub(60).min(side.len()),
            (at + 60).min(side.len()),
        );
        String::from_utf8_lossy(&side[from..to]).into_owned()
    };
    panic!(
        "{what}: {} bytes in place of {}, different from byte {at} on:\n got: {:?}\nwant: {:?}",
        got.len(),
        expected.len(),
        near(got),
        near(expected)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let text = |seed| awkward(&mut Chance::from_seed(seed), 6_000_000);
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
        assert!(
            text(7).split(|byte| *byte == b'\n').any(<[u8]>::is_empty),
            "it has empty lines"
        );
    }

    #[test]
    #[should_panic(expected = "different from byte 3 on")]
    fn a_changed_byte_is_seen() {
        assert_same(b"abcd", b"abce", "the text");
    }

    #[test]
    #[should_panic(expected = "3 bytes in place of 4")]
    fn a_missing_end_is_seen() {
        assert_same(b"abc", b"abcd", "the text");
    }
}
