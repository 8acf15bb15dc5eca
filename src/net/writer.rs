//! Chunks to the wire: bytes by vectored writes, resident file slices by sendfile, cold ones
//! read on the blocking pool and copied.

use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};
use tokio::net::TcpStream;

use crate::os::{residency, splice, tasks};
use crate::protocol::chunk::{Chunk, Chunks, FileSlice};

/// The most bytes of a file handled at once: one sendfile call, one residency question, one
/// buffer of the copying writer.
const PIECE: usize = 1 << 20;

/// The same for whoever reads what was not in memory: he does not wait for records, and others on his
/// thread do.
const COLD_PIECE: usize = 128 << 10;

/// The most pieces given to one vectored write.
const PIECES: usize = 64;

/// The most pieces written without waiting.
const FEW: usize = 8;

/// Writes a few chunks of bytes if the socket takes them at once; whether that was all. The rest,
/// and slices of files, stay in `chunks` for [`write`].
pub(crate) fn write_now(stream: &TcpStream, chunks: &mut Chunks) -> io::Result<bool> {
    let mut slices = [IoSlice::new(&[]); FEW];
    if chunks.len() > FEW {
        return Ok(false);
    }
    for (slice, chunk) in slices.iter_mut().zip(chunks.iter()) {
        match chunk {
            Chunk::Bytes(bytes) => *slice = IoSlice::new(bytes),
            Chunk::File(_) => return Ok(false),
        }
    }
    let mut sent = match splice::send_bytes_now(stream, &slices[..chunks.len()]) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
        sent => sent?,
    };
    while let Some(Chunk::Bytes(first)) = chunks.first_mut() {
        if sent < first.len() {
            first.advance(sent);
            return Ok(false);
        }
        sent -= first.len();
        chunks.remove(0);
    }
    Ok(true)
}

/// Writes all chunks in order and leaves `chunks` empty.
pub(crate) async fn write(stream: &TcpStream, chunks: &mut Chunks) -> io::Result<()> {
    let mut rest = &chunks[..];
    while let Some(first) = rest.first() {
        let done = match first {
            Chunk::Bytes(_) => write_bytes(stream, rest).await?,
            Chunk::File(slice) => {
                write_slice(stream, slice).await?;
                1
            }
        };
        rest = &rest[done..];
    }
    chunks.clear();
    Ok(())
}

/// Writes the bytes at the front; how many chunks they were.
async fn write_bytes(stream: &TcpStream, chunks: &[Chunk]) -> io::Result<usize> {
    let mut slices = Vec::with_capacity(chunks.len().min(PIECES));
    for chunk in chunks.iter().take(PIECES) {
        let Chunk::Bytes(bytes) = chunk else { break };
        slices.push(IoSlice::new(bytes));
    }
    let count = slices.len();
    let more = chunks.len() > count;
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let sent = splice::send_bytes(stream, rest, more).await?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        IoSlice::advance_slices(&mut rest, sent);
    }
    Ok(count)
}

async fn write_slice(stream: &TcpStream, slice: &FileSlice) -> io::Result<()> {
    let mut rest = slice.clone();
    let mut is_cold = is_read_from_the_disk(slice);
    while rest.len > 0 {
        let len = rest.len.min(PIECE);
        is_cold = is_cold || !residency::is_resident(&rest.file, rest.position, len);
        let sent = if is_cold {
            let len = len.min(COLD_PIECE);
            let cold = FileSlice {
                len,
                ..rest.clone()
            };
            copy(stream, cold).await?
        } else {
            splice::send_file(stream, &rest.file, rest.position, len).await?
        };
        if sent == 0 {
            // The frame's size is out already: nothing but closing is left.
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the log is shorter",
            ));
        }
        rest.position += sent as u64;
        rest.len -= sent;
        if rest.len > 0 {
            // A socket that takes all would keep the thread for the whole answer.
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Whether the slice is of a long read of what was not in memory, which this thread is to have no
/// part in, though the kernel may have read so far ahead. A short one is asked about by itself.
fn is_read_from_the_disk(slice: &FileSlice) -> bool {
    let end = slice.position + slice.len as u64;
    slice.len >= COLD_PIECE && !residency::is_resident_beyond(&slice.file, end)
}

/// Reads the slice on the blocking pool and writes it; its length.
async fn copy(stream: &TcpStream, slice: FileSlice) -> io::Result<usize> {
    let len = slice.len;
    let read = tasks::blocking(move || -> io::Result<Bytes> {
        let mut buffer = vec![0; slice.len];
        slice.file.read_exact_at(&mut buffer, slice.position)?;
        Ok(buffer.into())
    });
    let bytes = read.await.map_err(io::Error::other)??;
    write_bytes(stream, &[Chunk::Bytes(bytes)]).await?;
    Ok(len)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::os::disk::{Disk, File, Open, TempDir};
    use crate::os::net::{self, Sockets};

    /// What arrives at the other end of a socket when `send` writes to this one.
    async fn received<F: Future<Output = ()>>(send: impl FnOnce(TcpStream) -> F) -> Vec<u8> {
        let listener = net::listen(([127, 0, 0, 1], 0).into(), Sockets::default()).unwrap();
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        let connect = socket.connect(listener.local_addr().unwrap());
        let (client, server) = tokio::join!(connect, listener.accept());
        let mut client = client.unwrap();
        let mut got = Vec::new();
        tokio::join!(send(server.unwrap().0), async {
            client.read_to_end(&mut got).await.unwrap();
        });
        got
    }

    fn log_file(dir: &TempDir) -> (Arc<File>, Vec<u8>) {
        let content: Vec<u8> = (0..3_000_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        let file = Disk.open(&dir.path().join("log"), Open::New).unwrap();
        file.write_all_at(&content, 0).unwrap();
        (Arc::new(file), content)
    }

    #[tokio::test]
    async fn spliced_and_copied_slices_are_the_same_bytes() {
        let dir = TempDir::new();
        let (file, content) = log_file(&dir);
        let slice = FileSlice {
            file,
            position: 4_097,
            len: 2_900_003,
        };
        let expected = &content[4_097..2_904_100];

        let spliced = received(|stream| async {
            let stream = stream;
            let mut position = slice.position;
            let mut left = slice.len;
            while left > 0 {
                let sent = splice::send_file(&stream, &slice.file, position, left.min(PIECE))
                    .await
                    .unwrap();
                position += sent as u64;
                left -= sent;
            }
        })
        .await;
        let copied = received(|stream| async {
            let stream = stream;
            assert_eq!(copy(&stream, slice.clone()).await.unwrap(), slice.len);
        })
        .await;
        assert!(spliced == expected);
        assert!(copied == expected);
    }

    #[tokio::test]
    async fn chunks_arrive_in_order() {
        let dir = TempDir::new();
        let (file, content) = log_file(&dir);
        let mut chunks = vec![
            Chunk::Bytes(Bytes::from_static(b"head")),
            Chunk::File(FileSlice {
                file: file.clone(),
                position: 10,
                len: 2_000_000,
            }),
            Chunk::Bytes(Bytes::new()),
            Chunk::Bytes(Bytes::from_static(b"middle")),
            Chunk::File(FileSlice {
                file,
                position: 0,
                len: 5,
            }),
            Chunk::Bytes(Bytes::from_static(b"tail")),
        ];
        let expected = [
            b"head",
            &content[10..2_000_010],
            b"middle",
            &content[..5],
            b"tail",
        ]
        .concat();
        let got = received(|stream| async move {
            write(&stream, &mut chunks).await.unwrap();
            assert!(chunks.is_empty());
        })
        .await;
        assert!(got == expected);
    }

    #[tokio::test]
    async fn what_is_not_taken_at_once_is_left() {
        let long = Bytes::from(vec![7; 20_000_000]);
        let mut chunks = vec![
            Chunk::Bytes(Bytes::from_static(b"head")),
            Chunk::Bytes(long.clone()),
        ];
        let got = received(|stream| async move {
            stream.writable().await.unwrap();
            assert!(!write_now(&stream, &mut chunks).unwrap());
            assert_eq!(chunks.len(), 1);
            write(&stream, &mut chunks).await.unwrap();
            let mut tail = vec![Chunk::Bytes(Bytes::from_static(b"tail"))];
            stream.writable().await.unwrap();
            assert!(write_now(&stream, &mut tail).unwrap() && tail.is_empty());
        })
        .await;
        assert!(got == [b"head", &long[..], b"tail"].concat());
    }

    #[tokio::test]
    async fn a_file_shorter_than_promised_is_an_error() {
        let dir = TempDir::new();
        let (file, _) = log_file(&dir);
        let mut chunks = vec![Chunk::File(FileSlice {
            file,
            position: 2_999_990,
            len: 20,
        })];
        received(|stream| async move {
            assert!(write(&stream, &mut chunks).await.is_err());
        })
        .await;
    }
}
