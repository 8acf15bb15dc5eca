//! Answers read by the layouts on file: from bytes to JSON, with no message library of either side.

use serde_json::{Map, Value, json};

/// The layouts by key and version.
pub(super) struct Layouts(Value);

type Read<T> = Result<T, String>;

impl Layouts {
    pub(super) fn load() -> Self {
        let text = include_str!("../../fixtures/probes/layouts.json");
        Self(serde_json::from_str(text).expect("the layouts are JSON"))
    }

    /// Reads a whole frame, header included; no byte may be left.
    pub(super) fn read(&self, key: i16, version: i64, frame: &[u8]) -> Read<Value> {
        let layout = &self.0[key.to_string()][version.to_string()];
        if layout.is_null() {
            return Err(format!(
                "there is no layout for API {key} version {version}"
            ));
        }
        let mut bytes = Bytes {
            rest: frame,
            flexible: layout["flex"].as_bool().unwrap_or(false),
        };
        bytes.take(4)?;
        if layout["header"] == json!(1) {
            bytes.skip_tags()?;
        }
        let answer = bytes.fields(&layout["fields"])?;
        if bytes.rest.is_empty() {
            Ok(answer)
        } else {
            Err(format!(
                "{} bytes are left after {answer}",
                bytes.rest.len()
            ))
        }
    }
}

struct Bytes<'a> {
    rest: &'a [u8],
    flexible: bool,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| format!("{len} bytes are missing"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?
            .try_into()
            .map_err(|_| "a number is cut".to_owned())
    }

    fn varint(&mut self) -> Read<usize> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let byte = usize::from(self.take(1)?[0]);
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint does not end".to_owned())
    }

    /// A length or count, `None` for null.
    fn length(&mut self, wide: bool) -> Read<Option<usize>> {
        if self.flexible {
            return Ok(self.varint()?.checked_sub(1));
        }
        let length = if wide {
            i32::from_be_bytes(self.number()?)
        } else {
            i16::from_be_bytes(self.number()?).into()
        };
        Ok(usize::try_from(length).ok())
    }

    fn fields(&mut self, fields: &Value) -> Read<Value> {
        let mut out = Map::new();
        let fields = fields.as_array().ok_or("fields are a list")?;
        let named = |field: &Value| field[0].as_str().unwrap_or_default().to_owned();
        for field in fields.iter().filter(|field| field.get(2).is_none()) {
            let value = self
                .value(&field[1])
                .map_err(|why| format!("{}: {why}", named(field)))?;
            out.insert(named(field), value);
        }
        if !self.flexible {
            return Ok(out.into());
        }
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let len = self.varint()?;
            let mut inside = Bytes {
                rest: self.take(len)?,
                flexible: true,
            };
            let field = fields
                .iter()
                .find(|field| field.get(2) == Some(&json!(tag)));
            let field = field.ok_or_else(|| format!("tag {tag} is unknown"))?;
            let value = inside
                .value(&field[1])
                .map_err(|why| format!("{}: {why}", named(field)))?;
            if !inside.rest.is_empty() {
                return Err(format!("{}: bytes are left in the tag", named(field)));
            }
            out.insert(named(field), value);
        }
        Ok(out.into())
    }

    fn skip_tags(&mut self) -> Read<()> {
        for _ in 0..self.varint()? {
            self.varint()?;
            let len = self.varint()?;
            self.take(len)?;
        }
        Ok(())
    }

    fn value(&mut self, kind: &Value) -> Read<Value> {
        if let Some(name) = kind.as_str() {
            return self.plain(name);
        }
        if let Some(element) = kind.get("array") {
            let Some(count) = self.length(true)? else {
                return Ok(Value::Null);
            };
            return (0..count).map(|_| self.value(element)).collect();
        }
        if kind["null"] == json!(true) && i8::from_be_bytes(self.number()?) < 0 {
            return Ok(Value::Null);
        }
        self.fields(&kind["struct"])
    }

    fn plain(&mut self, kind: &str) -> Read<Value> {
        Ok(match kind {
            "bool" => json!(self.number::<1>()? != [0]),
            "i8" => json!(i8::from_be_bytes(self.number()?)),
            "i16" => json!(i16::from_be_bytes(self.number()?)),
            "i32" => json!(i32::from_be_bytes(self.number()?)),
            "i64" => json!(i64::from_be_bytes(self.number()?)),
            "u16" => json!(u16::from_be_bytes(self.number()?)),
            "u32" => json!(u32::from_be_bytes(self.number()?)),
            "f64" => json!(f64::from_be_bytes(self.number()?)),
            "uuid" => json!(uuid::Uuid::from_bytes(self.number()?).to_string()),
            "str" => match self.length(false)? {
                Some(len) => json!(String::from_utf8_lossy(self.take(len)?)),
                None => Value::Null,
            },
            "bytes" => match self.length(true)? {
                Some(len) => json!(hex(self.take(len)?)),
                None => Value::Null,
            },
            "records" => match self.length(true)? {
                Some(len) => records(self.take(len)?)?,
                None => Value::Null,
            },
            other => return Err(format!("nobody knows the type {other}")),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whole batches by their fixed headers, and how much of a cut one follows.
fn records(all: &[u8]) -> Read<Value> {
    let mut batches = Vec::new();
    let mut rest = all;
    while let Some((batch, after)) = split_batch(rest) {
        batches.push(batch_header(batch)?);
        rest = after;
    }
    Ok(json!({"Size": all.len(), "Batches": batches, "Rest": rest.len()}))
}

fn split_batch(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = i32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    bytes.split_at_checked(12 + usize::try_from(length).ok()?)
}

fn batch_header(batch: &[u8]) -> Read<Value> {
    let mut bytes = Bytes {
        rest: batch,
        flexible: false,
    };
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("BaseOffset", bytes.plain("i64")?);
    bytes.take(4)?;
    put("LeaderEpoch", bytes.plain("i32")?);
    put("Magic", bytes.plain("i8")?);
    bytes.take(4)?;
    let attributes = i16::from_be_bytes(bytes.number()?);
    put("Attributes", attributes.into());
    let names = [
        ("LastOffsetDelta", "i32"),
        ("BaseTimestamp", "i64"),
        ("MaxTimestamp", "i64"),
        ("ProducerId", "i64"),
        ("ProducerEpoch", "i16"),
        ("BaseSequence", "i32"),
        ("Count", "i32"),
    ];
    for (name, kind) in names {
        put(name, bytes.plain(kind)?);
    }
    if attributes & 0x20 != 0 {
        // Length, attributes, timestamp and offset delta, key length; then version and type.
        bytes.take(5)?;
        bytes.take(2)?;
        put("ControlType", bytes.plain("i16")?);
    }
    Ok(out.into())
}
