//! The primitives of Kafka's generated schemas, for the record schemas that we keep ourselves.
//!
//! A schema is a list of fields in [`message!`]; it reads and writes classic versions (lengths as
//! int16 and int32, -1 for null) and flexible ones (unsigned varints, tagged sections, KIP-482).
//! Reading never panics and never reserves memory that the input does not hold. What a value is
//! framed in, and which versions exist, is the caller's business.

use std::sync::Arc;

use bytes::{BufMut, Bytes};

use crate::base::{
    DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, ProducerId, TopicId, Uuid, varint,
};

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// A field needs more bytes than there are.
    #[error("the bytes end inside a field")]
    Short,
    /// A varint is longer than its type allows.
    #[error("a variable-length integer is cut short or too long")]
    Varint,
    /// A length is negative, or null where null has no meaning.
    #[error("a length is negative or null where it may not be")]
    Length,
    /// A string is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A tagged field does not fill its declared size.
    #[error("a tagged field does not fill its declared size")]
    TagSize,
    /// Something follows the last field.
    #[error("bytes follow the last field")]
    Trailing,
    /// The frame, kind or version is not known.
    #[error("the kind or version of the value is not known")]
    Unknown,
}

/// Reads fields of one version from untrusted bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    input: &'a [u8],
    version: i16,
    flexible: bool,
}

/// Writes fields of one version.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    version: i16,
    flexible: bool,
}

/// A value with an encoding of its own.
pub(crate) trait Field: Sized {
    /// Takes the value from the front of the input.
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Appends the value.
    fn write(&self, writer: &mut Writer<'_>);
}

/// Reads a whole value; nothing may follow it.
pub(crate) fn decode<T: Field>(input: &[u8], version: i16, flexible: bool) -> Result<T, Malformed> {
    let mut reader = Reader::new(input, version, flexible);
    let value = T::read(&mut reader)?;
    reader.finish()?;
    Ok(value)
}

/// Appends a whole value.
pub(crate) fn encode<T: Field>(value: &T, version: i16, flexible: bool, out: &mut Vec<u8>) {
    value.write(&mut Writer::new(out, version, flexible));
}

impl<'a> Reader<'a> {
    /// Reads `input` as `version` of a schema.
    pub(crate) fn new(input: &'a [u8], version: i16, flexible: bool) -> Self {
        Self {
            input,
            version,
            flexible,
        }
    }

    /// The version being read.
    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    /// Reads on as a flexible version: a request's header begins as a classic one.
    pub(crate) fn become_flexible(&mut self, version: i16) {
        self.version = version;
        self.flexible = true;
    }

    /// How many bytes have not been read.
    pub(crate) fn left(&self) -> usize {
        self.input.len()
    }

    /// Ends the reading; nothing may be left.
    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.input.is_empty() {
            Ok(())
        } else {
            Err(Malformed::Trailing)
        }
    }

    /// Takes an unsigned varint.
    pub(crate) fn unsigned_varint(&mut self) -> Result<u32, Malformed> {
        varint::take_unsigned(&mut self.input).ok_or(Malformed::Varint)
    }

    /// Takes the next `count` bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.input.split_at_checked(count).ok_or(Malformed::Short)?;
        self.input = rest;
        Ok(taken)
    }

    /// Takes the tagged section of a flexible version and offers each field to `each`, which says
    /// whether it knows the tag; others are skipped. Classic versions have no such section.
    pub(crate) fn tags(
        &mut self,
        mut each: impl FnMut(u32, &mut Self) -> Result<bool, Malformed>,
    ) -> Result<(), Malformed> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let size = self.unsigned_varint()? as usize;
            let mut field = Reader::new(self.take(size)?, self.version, true);
            if each(tag, &mut field)? && !field.input.is_empty() {
                return Err(Malformed::TagSize);
            }
        }
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.input.split_first_chunk().ok_or(Malformed::Short)?;
        self.input = rest;
        Ok(*taken)
    }

    /// A length that no more than the remaining bytes can honour; `None` for null.
    fn length(&mut self, classic: Classic) -> Result<Option<usize>, Malformed> {
        let length = if self.flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else {
            match classic {
                Classic::Short => i16::read(self)?.into(),
                Classic::Int => i32::read(self)?.into(),
            }
        };
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
        // Even an element takes a byte, so that a count beyond the bytes can only be a lie.
        if length > self.input.len() {
            return Err(Malformed::Short);
        }
        Ok(Some(length))
    }

    /// Takes a string; `None` for null.
    pub(crate) fn text(&mut self) -> Result<Option<&'a str>, Malformed> {
        let Some(length) = self.length(Classic::Short)? else {
            return Ok(None);
        };
        let bytes = self.take(length)?;
        str::from_utf8(bytes).map(Some).map_err(|_| Malformed::Utf8)
    }
}

impl<'a> Writer<'a> {
    /// Appends `version` of a schema to `out`.
    pub(crate) fn new(out: &'a mut Vec<u8>, version: i16, flexible: bool) -> Self {
        Self {
            out,
            version,
            flexible,
        }
    }

    /// The version being written.
    pub(crate) fn version(&self) -> i16 {
        self.version
    }

    /// Appends an unsigned varint.
    pub(crate) fn unsigned_varint(&mut self, value: u32) {
        varint::put_unsigned(self.out, value);
    }

    /// Appends a tagged section, its fields in ascending order; nothing in classic versions.
    pub(crate) fn tags(&mut self, fields: &[(u32, Vec<u8>)]) {
        if !self.flexible {
            return;
        }
        self.unsigned_varint(count(fields.len()));
        for (tag, bytes) in fields {
            self.unsigned_varint(*tag);
            self.unsigned_varint(count(bytes.len()));
            self.out.extend_from_slice(bytes);
        }
    }

    /// The bytes of one tagged field.
    pub(crate) fn tagged<T: Field>(&self, value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.write(&mut Writer::new(&mut bytes, self.version, true));
        bytes
    }

    fn length(&mut self, length: Option<usize>, classic: Classic) {
        if self.flexible {
            let length = length.map_or(0, |length| count(length) + 1);
            self.unsigned_varint(length);
            return;
        }
        let length = length.map_or(-1, |length| count(length).cast_signed());
        match classic {
            Classic::Short => self
                .out
                .put_i16(i16::try_from(length).expect("a string has at most 32767 bytes")),
            Classic::Int => self.out.put_i32(length),
        }
    }

    fn text(&mut self, text: Option<&str>) {
        self.length(text.map(str::len), Classic::Short);
        self.out.extend_from_slice(text.unwrap_or("").as_bytes());
    }
}

/// How wide a length is before flexible versions.
#[derive(Clone, Copy)]
enum Classic {
    Short,
    Int,
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("our own values stay below 4 GiB")
}

macro_rules! number_fields {
    ($($ty:ty, $put:ident;)*) => {$(
        impl Field for $ty {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(Self::from_be_bytes(reader.array()?))
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.out.$put(*self);
            }
        }
    )*};
}

number_fields! {
    i8, put_i8;
    i16, put_i16;
    u16, put_u16;
    i32, put_i32;
    i64, put_i64;
    f64, put_f64;
}

impl Field for bool {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(i8::read(reader)? != 0)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.out.put_u8(u8::from(*self));
    }
}

impl Field for Uuid {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(reader.array()?))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.out.extend_from_slice(&self.0);
    }
}

macro_rules! newtype_fields {
    ($($ty:ty, $inner:ty;)*) => {$(
        impl Field for $ty {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                <$inner>::read(reader).map(Self)
            }

            fn write(&self, writer: &mut Writer<'_>) {
                self.0.write(writer);
            }
        }
    )*};
}

newtype_fields! {
    NodeId, i32;
    LeaderEpoch, i32;
    PartitionEpoch, i32;
    ProducerId, i64;
    TopicId, Uuid;
    DirectoryId, Uuid;
}

macro_rules! text_fields {
    ($($ty:ty;)*) => {$(
        impl Field for $ty {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                reader.text()?.map(Self::from).ok_or(Malformed::Length)
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.text(Some(self));
            }
        }

        impl Field for Option<$ty> {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
                Ok(reader.text()?.map(<$ty>::from))
            }

            fn write(&self, writer: &mut Writer<'_>) {
                writer.text(self.as_deref());
            }
        }
    )*};
}

text_fields! {
    String;
    Arc<str>;
}

impl Field for Option<Bytes> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Some(length) = reader.length(Classic::Int)? else {
            return Ok(None);
        };
        reader.take(length).map(Bytes::copy_from_slice).map(Some)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.length(self.as_ref().map(Bytes::len), Classic::Int);
        writer
            .out
            .extend_from_slice(self.as_deref().unwrap_or_default());
    }
}

impl Field for Bytes {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Option::<Self>::read(reader)?.ok_or(Malformed::Length)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.length(Some(self.len()), Classic::Int);
        writer.out.extend_from_slice(self);
    }
}

impl<T: Field> Field for Option<Vec<T>> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let Some(length) = reader.length(Classic::Int)? else {
            return Ok(None);
        };
        let affordable = reader.input.len() / size_of::<T>().max(1);
        let mut items = Vec::with_capacity(length.min(affordable));
        for _ in 0..length {
            items.push(T::read(reader)?);
        }
        Ok(Some(items))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.length(self.as_ref().map(Vec::len), Classic::Int);
        for item in self.iter().flatten() {
            item.write(writer);
        }
    }
}

impl<T: Field> Field for Vec<T> {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Option::<Self>::read(reader)?.ok_or(Malformed::Length)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.length(Some(self.len()), Classic::Int);
        for item in self {
            item.write(writer);
        }
    }
}

/// A tagged section kept as it came, for structs that carry what others do not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tags(pub(crate) Vec<(u32, Bytes)>);

impl Field for Tags {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut kept = Vec::new();
        reader.tags(|tag, field| {
            kept.push((tag, Bytes::copy_from_slice(field.take(field.input.len())?)));
            Ok(true)
        })?;
        Ok(Self(kept))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let fields: Vec<_> = self.0.iter().map(|(tag, b)| (*tag, b.to_vec())).collect();
        writer.tags(&fields);
    }
}

/// Declares a struct and its encoding, field by field as in Kafka's schemas:
///
/// ```text
/// message! {
///     /// What it says.
///     pub(crate) struct Example {
///         id: i32 = -1,                   // in every version; absent means -1
///         [1..] names: Vec<String>,       // since version 1; absent means empty
///     } tagged {
///         [2..] 0 note: Option<String>,   // tag 0, left out while it has its default
///     }
/// }
/// ```
///
/// A field that a version lacks is not written and reads as its default; unknown tags are skipped.
macro_rules! message {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($([$versions:expr])? $field:ident: $ty:ty $(= $default:expr)?),* $(,)?
        } $(tagged {
            $($([$tag_versions:expr])? $tag:literal $tag_field:ident: $tag_ty:ty
                $(= $tag_default:expr)?),* $(,)?
        })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $(pub(crate) $field: $ty,)*
            $($(pub(crate) $tag_field: $tag_ty,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $crate::protocol::codec::message!(@default $($default)?),)*
                    $($($tag_field: $crate::protocol::codec::message!(@default $($tag_default)?),)*)?
                }
            }
        }

        impl $crate::protocol::codec::Field for $name {
            #[allow(unused_mut, reason = "a struct may have no fields")]
            fn read(
                reader: &mut $crate::protocol::codec::Reader<'_>,
            ) -> Result<Self, $crate::protocol::codec::Malformed> {
                let mut value = Self::default();
                $(if $crate::protocol::codec::message!(@has reader $($versions)?) {
                    value.$field = $crate::protocol::codec::Field::read(reader)?;
                })*
                reader.tags(|_tag, _field| {
                    $($(if _tag == $tag
                        && $crate::protocol::codec::message!(@has _field $($tag_versions)?)
                    {
                        value.$tag_field = $crate::protocol::codec::Field::read(_field)?;
                        return Ok(true);
                    })*)?
                    Ok(false)
                })?;
                Ok(value)
            }

            #[allow(unused_mut, reason = "a struct may have no tagged fields")]
            fn write(&self, writer: &mut $crate::protocol::codec::Writer<'_>) {
                $(if $crate::protocol::codec::message!(@has writer $($versions)?) {
                    $crate::protocol::codec::Field::write(&self.$field, writer);
                })*
                let mut tags = Vec::new();
                $($({
                    let absent: $tag_ty =
                        $crate::protocol::codec::message!(@default $($tag_default)?);
                    if $crate::protocol::codec::message!(@has writer $($tag_versions)?)
                        && self.$tag_field != absent
                    {
                        tags.push(($tag, writer.tagged(&self.$tag_field)));
                    }
                })*)?
                writer.tags(&tags);
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default };
    (@has $context:ident) => { true };
    (@has $context:ident $versions:expr) => { ($versions).contains(&$context.version()) };
}

pub(crate) use message;

#[cfg(test)]
mod tests {
    use super::*;

    message! {
        /// One of each.
        struct Sample {
            id: i32 = -1,
            [1..] names: Vec<String>,
            [2..=2] gone: i64,
            note: Option<Arc<str>>,
            blob: Option<Bytes>,
        } tagged {
            0 weight: f64 = 1.5,
            [3..] 7 later: Option<Vec<i32>>,
        }
    }

    fn sample() -> Sample {
        Sample {
            id: 7,
            names: vec!["a".into(), "ünï".into()],
            gone: 9,
            note: Some("n".into()),
            blob: Some(Bytes::from_static(b"xyz")),
            weight: 2.0,
            later: Some(vec![1, -1]),
        }
    }

    #[test]
    fn a_version_carries_its_fields_and_no_others() {
        for (version, flexible) in [(0, false), (1, false), (2, true), (3, true)] {
            let mut out = Vec::new();
            encode(&sample(), version, flexible, &mut out);
            let read: Sample = decode(&out, version, flexible).unwrap();
            let mut expected = sample();
            if version < 1 {
                expected.names.clear();
            }
            if version != 2 {
                expected.gone = 0;
            }
            if !flexible {
                expected.weight = 1.5;
            }
            if version < 3 {
                expected.later = None;
            }
            assert_eq!(read, expected, "version {version}");
        }
    }

    #[test]
    fn an_unknown_tag_is_skipped_or_kept() {
        let mut out = Vec::new();
        encode(&sample(), 3, true, &mut out);
        let read: Sample = decode(&out, 2, true).unwrap_or_default();
        assert_ne!(read, sample());
        let tags = Tags(vec![(9, Bytes::from_static(b"ours"))]);
        let mut out = Vec::new();
        encode(&tags, 0, true, &mut out);
        assert_eq!(out, b"\x01\x09\x04ours");
        assert_eq!(decode(&out, 0, true), Ok(tags));
    }

    #[test]
    fn a_cut_value_is_refused_at_every_byte() {
        for (version, flexible) in [(1, false), (3, true)] {
            let mut out = Vec::new();
            encode(&sample(), version, flexible, &mut out);
            for end in 0..out.len() {
                assert!(decode::<Sample>(&out[..end], version, flexible).is_err());
            }
            out.push(0);
            assert_eq!(
                decode::<Sample>(&out, version, flexible),
                Err(Malformed::Trailing)
            );
        }
    }

    #[test]
    fn a_count_beyond_the_bytes_reserves_nothing() {
        let claims = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2];
        assert_eq!(decode::<Vec<i64>>(&claims, 0, true), Err(Malformed::Short));
        let claims = [0x7f, 0xff, 0xff, 0xff, 1, 2];
        assert_eq!(
            decode::<Vec<Sample>>(&claims, 0, false),
            Err(Malformed::Short)
        );
        assert_eq!(decode::<String>(&[0], 0, true), Err(Malformed::Length));
        assert_eq!(
            decode::<Vec<i8>>(&[0x80, 0, 0, 0], 0, false),
            Err(Malformed::Length)
        );
    }
}
