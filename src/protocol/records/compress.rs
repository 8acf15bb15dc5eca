//! The codecs as Kafka frames them, each inflating as a stream, so that a small batch that
//! swells enormously costs time up to a limit and never memory.
//!
//! gzip is plain. Snappy is framed as xerial's Java library does it, and accepted raw too. LZ4 is
//! one frame of independent blocks of 64 KiB without checksums. zstd is a stream of frames.

use std::io::{self, Read, Write};

use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Codec {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl Codec {
    /// The codec of the lowest three attribute bits.
    pub(crate) fn from_bits(bits: i16) -> Option<Self> {
        match bits {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The attribute bits.
    pub(crate) fn bits(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// Kafka's name, as in `compression.type`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// A codec with the level it works at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Compression {
    pub(crate) codec: Codec,
    /// `None` is the codec's default; snappy has no levels and our LZ4 has one.
    pub(crate) level: Option<i32>,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        Self { codec, level: None }
    }
}

impl Compression {
    /// Compresses `records` in one go.
    pub(crate) fn compress(self, records: &[u8]) -> io::Result<Vec<u8>> {
        match self.codec {
            Codec::None => Ok(records.to_vec()),
            Codec::Gzip => {
                // -1 asks for the library's default, as in java.util.zip.Deflater.
                let level = match self.level.and_then(|level| u32::try_from(level).ok()) {
                    Some(level) => flate2::Compression::new(level.min(9)),
                    None => flate2::Compression::default(),
                };
                let mut out = flate2::write::GzEncoder::new(Vec::new(), level);
                out.write_all(records)?;
                out.finish()
            }
            Codec::Snappy => snappy_compress(records),
            Codec::Lz4 => {
                let info = FrameInfo::new()
                    .block_size(BlockSize::Max64KB)
                    .block_mode(BlockMode::Independent);
                let mut out = FrameEncoder::with_frame_info(info, Vec::new());
                out.write_all(records)?;
                out.finish().map_err(io::Error::other)
            }
            Codec::Zstd => {
                let level = self.level.unwrap_or(zstd::DEFAULT_COMPRESSION_LEVEL);
                let mut out = zstd::stream::write::Encoder::new(Vec::new(), level)?;
                out.write_all(records)?;
                out.finish()
            }
        }
    }
}

/// Inflates a whole block into memory; more than `limit` bytes are refused.
pub(crate) fn inflate(codec: Codec, bytes: &[u8], limit: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    Inflate::new(codec, bytes, limit)?.read_to_end(&mut out)?;
    Ok(out)
}

/// A block being inflated, piece by piece, up to a limit.
pub(crate) struct Inflate<'a> {
    decoder: Decoder<'a>,
    left: u64,
}

enum Decoder<'a> {
    Plain(&'a [u8]),
    Gzip(Box<GzipReader<'a>>),
    Snappy(SnappyReader<'a>),
    Lz4(Box<FrameDecoder<&'a [u8]>>),
    Zstd(zstd::stream::read::Decoder<'static, &'a [u8]>),
}

impl<'a> Inflate<'a> {
    /// Begins to inflate `bytes`.
    pub(crate) fn new(codec: Codec, bytes: &'a [u8], limit: u64) -> io::Result<Self> {
        let decoder = match codec {
            Codec::None => Decoder::Plain(bytes),
            Codec::Gzip => Decoder::Gzip(Box::new(GzipReader::new(bytes))),
            Codec::Snappy => Decoder::Snappy(SnappyReader::new(bytes)),
            Codec::Lz4 => {
                check_lz4_frame(bytes)?;
                Decoder::Lz4(Box::new(FrameDecoder::new(bytes)))
            }
            Codec::Zstd => Decoder::Zstd(zstd::stream::read::Decoder::with_buffer(bytes)?),
        };
        Ok(Self {
            decoder,
            left: limit,
        })
    }
}

impl Read for Inflate<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let count = match &mut self.decoder {
            Decoder::Plain(bytes) => bytes.read(into)?,
            Decoder::Gzip(decoder) => decoder.read(into)?,
            Decoder::Snappy(decoder) => decoder.read(into)?,
            Decoder::Lz4(decoder) => decoder.read(into)?,
            Decoder::Zstd(decoder) => decoder.read(into)?,
        };
        self.left = self.left.checked_sub(count as u64).ok_or_else(too_much)?;
        Ok(count)
    }
}

/// The members of a gzip stream, one after the other. What follows the last one and is no member is
/// left alone (java.util.zip.GZIPInputStream): some writers pad.
struct GzipReader<'a> {
    member: flate2::bufread::GzDecoder<&'a [u8]>,
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

impl<'a> GzipReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            member: flate2::bufread::GzDecoder::new(bytes),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.member.read(into)?;
            let rest: &'a [u8] = self.member.get_ref();
            if count > 0 || !rest.starts_with(&GZIP_MAGIC) {
                return Ok(count);
            }
            *self = Self::new(rest);
        }
    }
}

/// In the flags of an LZ4 frame: the header has the content's size.
const LZ4_CONTENT_SIZE: u8 = 0x08;

/// Java's reader insists on a whole frame of version 1 with independent blocks; a frame that only
/// other readers understand, or put up with, must not get into a log (Lz4BlockInputStream).
fn check_lz4_frame(bytes: &[u8]) -> io::Result<()> {
    lz4_frame_end(bytes).ok_or_else(|| broken("not a whole LZ4 frame of independent blocks"))
}

/// The same frame with the right checksum in its header: early writers counted too many bytes
/// (KAFKA-3160).
pub(crate) fn mend_lz4_header(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let cut = || broken("an LZ4 frame is cut short");
    let flags = *bytes.get(4).ok_or_else(cut)?;
    let end = if flags & LZ4_CONTENT_SIZE == 0 { 6 } else { 14 };
    let hash = XxHash32::oneshot(0, bytes.get(4..end).ok_or_else(cut)?);
    let mut mended = bytes.to_vec();
    *mended.get_mut(end).ok_or_else(cut)? = hash.to_be_bytes()[2];
    Ok(mended)
}

fn lz4_frame_end(bytes: &[u8]) -> Option<()> {
    const VERSION_1_INDEPENDENT: u8 = 0x60;
    const BLOCK_CHECKSUM: u8 = 0x10;
    const CONTENT_CHECKSUM: u8 = 0x04;
    let (head, rest) = bytes.split_first_chunk::<6>()?;
    let [0x04, 0x22, 0x4d, 0x18, flags, _] = *head else {
        return None;
    };
    if flags & 0xe0 != VERSION_1_INDEPENDENT {
        return None;
    }
    let if_set = |flag: u8, len: usize| if flags & flag == 0 { 0 } else { len };
    // The last byte of the descriptor is its checksum.
    let mut rest = rest.get(if_set(LZ4_CONTENT_SIZE, 8) + 1..)?;
    loop {
        let (size, block) = rest.split_first_chunk::<4>()?;
        // The highest bit says that a block is not compressed.
        let size = u32::from_le_bytes(*size) & 0x7fff_ffff;
        if size == 0 {
            return block.get(if_set(CONTENT_CHECKSUM, 4)..).map(|_| ());
        }
        rest = block.get(size as usize + if_set(BLOCK_CHECKSUM, 4)..)?;
    }
}

const XERIAL_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, version, compatible version.
const XERIAL_HEADER_LEN: usize = 16;
const XERIAL_BLOCK: usize = 32 * 1024;
/// A copy of three bytes gives 64 at most, so nothing swells more than this.
const SNAPPY_MOST_PER_BYTE: usize = 22;

fn snappy_compress(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend(1i32.to_be_bytes());
    out.extend(1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in records.chunks(XERIAL_BLOCK) {
        let block = encoder.compress_vec(block)?;
        let len = u32::try_from(block.len()).expect("a block of 32 KiB stays small");
        out.extend(len.to_be_bytes());
        out.extend(block);
    }
    Ok(out)
}

/// Blocks of xerial's framing, or one raw block when the magic is missing.
struct SnappyReader<'a> {
    rest: &'a [u8],
    raw: bool,
    block: Vec<u8>,
    at: usize,
}

impl<'a> SnappyReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let framed = bytes.len() >= XERIAL_HEADER_LEN && bytes.starts_with(&XERIAL_MAGIC);
        Self {
            rest: if framed {
                &bytes[XERIAL_HEADER_LEN..]
            } else {
                bytes
            },
            raw: !framed,
            block: Vec::new(),
            at: 0,
        }
    }

    /// Takes the next compressed block from the input.
    fn next_block(&mut self) -> io::Result<Option<&'a [u8]>> {
        if self.raw {
            let all = std::mem::take(&mut self.rest);
            return Ok((!all.is_empty()).then_some(all));
        }
        // Streams may be joined: a header in place of a length is skipped.
        while self.rest.len() >= XERIAL_HEADER_LEN && self.rest.starts_with(&XERIAL_MAGIC) {
            self.rest = &self.rest[XERIAL_HEADER_LEN..];
        }
        if self.rest.is_empty() {
            return Ok(None);
        }
        let cut = || broken("a snappy block is cut short");
        let (len, rest) = self.rest.split_first_chunk().ok_or_else(cut)?;
        let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| cut())?;
        let (block, rest) = rest.split_at_checked(len).ok_or_else(cut)?;
        self.rest = rest;
        Ok(Some(block))
    }

    fn fill(&mut self) -> io::Result<bool> {
        while self.at == self.block.len() {
            let Some(packed) = self.next_block()? else {
                return Ok(false);
            };
            let len = snap::raw::decompress_len(packed)?;
            if len > packed.len().saturating_mul(SNAPPY_MOST_PER_BYTE) {
                return Err(broken("a snappy block claims more than it can hold"));
            }
            self.block.resize(len, 0);
            self.at = 0;
            let got = snap::raw::Decoder::new().decompress(packed, &mut self.block)?;
            self.block.truncate(got);
        }
        Ok(true)
    }
}

impl Read for SnappyReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.fill()? {
            return Ok(0);
        }
        let count = (&self.block[self.at..]).read(into)?;
        self.at += count;
        Ok(count)
    }
}

fn too_much() -> io::Error {
    let words = "the records inflate to more than is allowed";
    io::Error::new(io::ErrorKind::FileTooLarge, words)
}

/// Whether the data is not broken but larger than its reader allows.
pub(crate) fn is_too_much(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}

fn broken(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Codec; 5] = [
        Codec::None,
        Codec::Gzip,
        Codec::Snappy,
        Codec::Lz4,
        Codec::Zstd,
    ];

    fn text() -> Vec<u8> {
        (0..20_000u32).flat_map(|n| (n / 7).to_be_bytes()).collect()
    }

    #[test]
    fn every_codec_gives_back_what_it_took() {
        for codec in ALL {
            for input in [Vec::new(), b"x".to_vec(), text()] {
                let packed = Compression::from(codec).compress(&input).unwrap();
                let limit = input.len() as u64;
                assert_eq!(inflate(codec, &packed, limit).unwrap(), input, "{codec:?}");
                if !input.is_empty() {
                    assert!(inflate(codec, &packed, limit - 1).is_err(), "{codec:?}");
                }
            }
        }
    }

    #[test]
    fn the_frames_begin_as_java_writes_them() {
        let lz4 = Compression::from(Codec::Lz4).compress(&text()).unwrap();
        assert_eq!(lz4[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
        let snappy = Compression::from(Codec::Snappy).compress(&text()).unwrap();
        assert_eq!(snappy[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
    }

    #[test]
    fn raw_snappy_is_understood() {
        let packed = snap::raw::Encoder::new().compress_vec(&text()).unwrap();
        assert_eq!(inflate(Codec::Snappy, &packed, 1 << 20).unwrap(), text());
    }

    #[test]
    fn a_snappy_block_cannot_claim_a_gigabyte() {
        let claim = [0x80, 0x80, 0x80, 0x80, 0x04, 0x00];
        assert!(inflate(Codec::Snappy, &claim, u64::MAX).is_err());
    }

    #[test]
    fn linked_lz4_blocks_are_refused() {
        let info = FrameInfo::new().block_mode(BlockMode::Linked);
        let mut out = FrameEncoder::with_frame_info(info, Vec::new());
        out.write_all(&text()).unwrap();
        assert!(inflate(Codec::Lz4, &out.finish().unwrap(), 1 << 20).is_err());
    }

    #[test]
    fn a_cut_stream_is_an_error() {
        let mut checked = FrameEncoder::with_frame_info(
            FrameInfo::new()
                .block_checksums(true)
                .content_checksum(true)
                .content_size(Some(text().len() as u64)),
            Vec::new(),
        );
        checked.write_all(&text()).unwrap();
        let mut streams = vec![(Codec::Lz4, checked.finish().unwrap())];
        for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            streams.push((codec, Compression::from(codec).compress(&text()).unwrap()));
        }
        for (codec, packed) in streams {
            assert_eq!(inflate(codec, &packed, 1 << 20).unwrap(), text());
            for cut in 1..=12 {
                let packed = &packed[..packed.len() - cut];
                assert!(inflate(codec, packed, 1 << 20).is_err(), "{codec:?} {cut}");
            }
        }
    }
}
