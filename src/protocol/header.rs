//! Request headers (versions 1 and 2) and response headers (versions 0 and 1).

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;

use super::codec::{Malformed, Reader};

/// The bytes of [`Start`].
const START_LEN: usize = 8;

/// The fixed start of every request, read before anything else is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
    pub(crate) correlation_id: i32,
}

impl Start {
    /// Reads key, version and correlation id; `None` when the frame is shorter.
    pub(crate) fn of(frame: &[u8]) -> Option<Self> {
        let bytes = frame.first_chunk::<START_LEN>()?;
        Some(Self {
            api_key: i16::from_be_bytes([bytes[0], bytes[1]]),
            api_version: i16::from_be_bytes([bytes[2], bytes[3]]),
            correlation_id: i32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        })
    }
}

/// Reads the header and leaves the body in `frame`; the client id, `None` when null. It is a copy:
/// an answer that waits must not keep the frame in memory.
///
/// `flexible` tells whether the request has header version 2. The client id of version 2 is still
/// a classic string (KIP-482).
pub(crate) fn take(frame: &mut Bytes, flexible: bool) -> Result<Option<StrBytes>, Malformed> {
    let behind = frame.get(START_LEN..).ok_or(Malformed::Short)?;
    let mut reader = Reader::new(behind, 1, false);
    let client_id = reader
        .text()?
        .map(|id| StrBytes::from_string(id.to_owned()));
    if flexible {
        reader.become_flexible(2);
        reader.tags(|_, _| Ok(false))?;
    }
    let header = frame.len() - reader.left();
    frame.advance(header);
    Ok(client_id)
}

/// Appends a response header; `flexible` adds the empty tagged section of version 1.
pub(crate) fn put_response(out: &mut BytesMut, correlation_id: i32, flexible: bool) {
    out.put_i32(correlation_id);
    if flexible {
        out.put_u8(0);
    }
}
