//! Connections that wait: with nothing asked, or with a long poll each.

use std::io::{self, Write};
use std::net::TcpStream;

use kafka_protocol::messages::ApiVersionsRequest;
use kafka_protocol::protocol::StrBytes;

use super::connect;
use super::frames::{Appetite, FetchFrame, Target};
use super::produce::whole;
use crate::wire::frame;

/// Opens so many connections, each of which has asked for the versions, as clients do.
pub fn open(port: u16, count: usize) -> io::Result<Vec<TcpStream>> {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("load"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    let request = frame(3, 1, &request);
    (0..count)
        .map(|_| {
            let mut stream = connect(port)?;
            stream.write_all(&request)?;
            skip_answer(&mut stream)?;
            Ok(stream)
        })
        .collect()
}

/// Sends a fetch at the end of an empty partition on each of the connections, which then wait for
/// as long as that.
pub fn poll_long(streams: &mut [TcpStream], targets: &[Target], wait_ms: i32) -> io::Result<()> {
    let appetite = Appetite {
        max_wait_ms: wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 20,
    };
    for (stream, target) in streams.iter_mut().zip(targets.iter().cycle()) {
        stream.write_all(FetchFrame::new(*target, appetite).at(2, 0))?;
    }
    Ok(())
}

fn skip_answer(stream: &mut TcpStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while whole(&bytes)?.is_none() {
        match io::Read::read(stream, &mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => bytes.extend(&piece[..read]),
        }
    }
    Ok(())
}
