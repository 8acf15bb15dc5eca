//! A response on its way out: a list of chunks, each bytes or a slice of a file.

use std::sync::Arc;

use bytes::Bytes;

use crate::os::disk::File;

/// Bytes of a file that were there when the slice was cut and do not change while it lives.
#[derive(Clone, Debug)]
pub(crate) struct FileSlice {
    pub(crate) file: Arc<File>,
    pub(crate) position: u64,
    pub(crate) len: usize,
}

/// One piece of a response.
#[derive(Clone, Debug)]
pub(crate) enum Chunk {
    Bytes(Bytes),
    File(FileSlice),
}

impl Chunk {
    /// The length in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::File(slice) => slice.len,
        }
    }
}

/// The pieces of a response in order; the first holds the frame's size.
pub(crate) type Chunks = Vec<Chunk>;
