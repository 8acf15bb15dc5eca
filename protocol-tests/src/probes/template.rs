//! Frames as hex with placeholders, and the variables that fill them.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

/// What earlier answers of a story said, in the order in which the names came up.
#[derive(Default)]
pub(super) struct Variables(Vec<(String, Value)>);

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    fn value(&self, name: &str) -> &Value {
        let found = self.iter().find(|(known, _)| *known == name);
        found.map_or(&Value::Null, |(_, value)| value)
    }

    /// A number, or a neighbour of it: `x`, `x+1`, `x-1`.
    fn number(&self, of: &str) -> i64 {
        let (name, step) = match of.find(['+', '-']) {
            Some(at) => (&of[..at], of[at..].parse().expect("a step is a number")),
            None => (of, 0),
        };
        self.value(name).as_i64().unwrap_or(0) + step
    }

    fn text(&self, name: &str) -> &str {
        self.value(name).as_str().unwrap_or_default()
    }
}

/// The bytes of a template.
pub(super) fn fill(template: &str, variables: &Variables) -> Vec<u8> {
    let mut out = Vec::new();
    let mut checksums: Vec<(usize, usize)> = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        out.extend(hex(&rest[..start]));
        let end = start + rest[start..].find('}').expect("a placeholder ends");
        let (kind, of) = rest[start + 1..end]
            .split_once(':')
            .expect("a kind and a value");
        if kind == "crc32c" {
            checksums.push((out.len(), of.parse().expect("a count of bytes")));
        }
        put(&mut out, kind, of, variables);
        rest = &rest[end + 1..];
    }
    out.extend(hex(rest));
    for (at, len) in checksums {
        let from = at + 4;
        let sum = crc32c(&out[from..from + len]);
        out[at..from].copy_from_slice(&sum.to_be_bytes());
    }
    out
}

fn put(out: &mut Vec<u8>, kind: &str, of: &str, variables: &Variables) {
    match kind {
        "i16" => out.extend(
            i16::try_from(variables.number(of))
                .expect("an i16")
                .to_be_bytes(),
        ),
        "i32" => out.extend(
            i32::try_from(variables.number(of))
                .expect("an i32")
                .to_be_bytes(),
        ),
        "i64" => out.extend(variables.number(of).to_be_bytes()),
        "now" => out.extend((now_ms() + of.parse::<i64>().expect("a step")).to_be_bytes()),
        "crc32c" => out.extend([0; 4]),
        "uuid" => {
            let id: uuid::Uuid = variables.text(of).parse().unwrap_or_default();
            out.extend(id.as_bytes());
        }
        "str" => {
            let text = variables.text(of);
            out.extend(
                i16::try_from(text.len())
                    .expect("a short text")
                    .to_be_bytes(),
            );
            out.extend(text.bytes());
        }
        "cstr" => {
            let text = variables.text(of);
            let length = u8::try_from(text.len() + 1).expect("a short text");
            assert!(length < 0x80, "a length of one byte");
            out.push(length);
            out.extend(text.bytes());
        }
        "fill" => {
            let (times, byte) = of.split_once('*').expect("a count and a byte");
            let byte = byte.parse().expect("a byte");
            out.resize(out.len() + times.parse::<usize>().expect("a count"), byte);
        }
        other => panic!("a template names {other}"),
    }
}

fn hex(text: &str) -> impl Iterator<Item = u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("two hex digits"))
}

/// CRC-32C, bit by bit: the frames are short, and the broker's own is not asked.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| {
        let polynomial = if sum & 1 == 1 { 0x82f6_3b78 } else { 0 };
        sum >> 1 ^ polynomial
    };
    let all = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), step)
    });
    !all
}

fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("past 1970");
    i64::try_from(now.as_millis()).expect("before the year 292 million")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_become_bytes() {
        let mut variables = Variables::default();
        variables.set("x", 7.into());
        variables.set("m", "abc".into());
        assert_eq!(
            fill("00{i16:x+1}ff{cstr:m}", &variables),
            [0, 0, 8, 0xff, 4, b'a', b'b', b'c']
        );
        assert_eq!(
            fill("{fill:3*9}{i32:x-1}", &variables),
            [9, 9, 9, 0, 0, 0, 6]
        );
    }

    #[test]
    fn the_checksum_is_crc_32c() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let filled = fill("{crc32c:9}313233343536373839aa", &Variables::default());
        assert_eq!(filled[..4], 0xe306_9283_u32.to_be_bytes());
    }
}
