//! Small text files that are replaced whole: offsets per partition, and the starts of leader
//! epochs (org.apache.kafka.server.common.CheckpointFile).
//!
//! A version, a count, then a line per entry. A file of no bytes holds no entries.

use std::fmt::Write as _;
use std::path::Path;

use super::fault::{At, Fault};
use crate::base::TopicPartition;
use crate::os::disk::Disk;

/// Offsets flushed to disk.
pub(crate) const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// Log starts that are not the start of a segment.
pub(crate) const LOG_STARTS: &str = "log-start-offset-checkpoint";
/// High watermarks.
pub(crate) const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
/// First offsets that were not compacted yet.
pub(crate) const CLEANER_OFFSETS: &str = "cleaner-offset-checkpoint";
/// The starts of the leader epochs of one partition.
pub(crate) const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";

const VERSION: &str = "0";

/// Reads a file of offsets per partition; an absent one has no entries.
pub(crate) fn read_offsets(disk: Disk, path: &Path) -> Result<Vec<(TopicPartition, i64)>, Fault> {
    let text = read_text(disk, path)?;
    let lines = lines_of(&text).ok_or_else(|| malformed(path))?;
    lines
        .map(|line| parse_offset(line).ok_or_else(|| malformed(path)))
        .collect()
}

/// Replaces a file of offsets per partition.
pub(crate) fn write_offsets<'a>(
    disk: Disk,
    path: &Path,
    offsets: impl IntoIterator<Item = (&'a TopicPartition, i64)>,
) -> Result<(), Fault> {
    let mut body = String::new();
    let mut count = 0usize;
    for (of, offset) in offsets {
        let _ = writeln!(body, "{} {} {offset}", of.topic, of.partition);
        count += 1;
    }
    disk.write_atomically(path, text_of(count, &body).as_bytes())
        .at(path)
}

/// Reads epochs with their start offsets; an absent file has none.
pub(crate) fn read_epochs(disk: Disk, path: &Path) -> Result<Vec<(i32, i64)>, Fault> {
    let text = read_text(disk, path)?;
    let lines = lines_of(&text).ok_or_else(|| malformed(path))?;
    lines
        .map(|line| parse_epoch(line).ok_or_else(|| malformed(path)))
        .collect()
}

/// How a small file is replaced: [`Disk::write_atomically`], or [`Disk::write_in_place`] before it
/// means anything.
pub(crate) type Replace = fn(Disk, &Path, &[u8]) -> std::io::Result<()>;

/// Replaces the epochs with their start offsets.
pub(crate) fn write_epochs(
    disk: Disk,
    path: &Path,
    epochs: &[(i32, i64)],
    replace: Replace,
) -> Result<(), Fault> {
    let mut body = String::new();
    for (epoch, start) in epochs {
        let _ = writeln!(body, "{epoch} {start}");
    }
    replace(disk, path, text_of(epochs.len(), &body).as_bytes()).at(path)
}

fn read_text(disk: Disk, path: &Path) -> Result<String, Fault> {
    if !disk.exists(path) {
        return Ok(String::new());
    }
    String::from_utf8(disk.read(path).at(path)?).map_err(|_| malformed(path))
}

fn text_of(count: usize, body: &str) -> String {
    format!("{VERSION}\n{count}\n{body}")
}

/// The entries' lines, when version and count are as they should be.
fn lines_of(text: &str) -> Option<impl Iterator<Item = &str>> {
    let mut lines = text.lines();
    let count = match lines.next() {
        None => 0,
        Some(version) if version.trim() == VERSION => lines.next()?.trim().parse::<usize>().ok()?,
        Some(_) => return None,
    };
    let entries = || text.lines().skip(2).filter(|line| !line.trim().is_empty());
    (entries().count() == count).then(entries)
}

fn parse_offset(line: &str) -> Option<(TopicPartition, i64)> {
    let mut words = line.split_whitespace();
    let topic = words.next()?;
    let partition = words.next()?.parse().ok()?;
    let offset = words.next()?.parse().ok()?;
    words
        .next()
        .is_none()
        .then(|| (TopicPartition::new(topic, partition), offset))
}

fn parse_epoch(line: &str) -> Option<(i32, i64)> {
    let (epoch, start) = line.trim().split_once(' ')?;
    Some((epoch.parse().ok()?, start.trim().parse().ok()?))
}

fn malformed(path: &Path) -> Fault {
    Fault::Malformed {
        path: path.to_owned(),
        why: "not a checkpoint of version 0 with as many entries as it says",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::disk::TempDir;

    #[test]
    fn offsets_survive_the_round_trip() {
        let dir = TempDir::new();
        let path = dir.path().join(RECOVERY_POINTS);
        assert!(read_offsets(Disk, &path).unwrap().is_empty());
        let of = TopicPartition::new("a-b.c", 7);
        write_offsets(Disk, &path, [(&of, 42)]).unwrap();
        assert_eq!(Disk.read(&path).unwrap(), b"0\n1\na-b.c 7 42\n");
        assert_eq!(read_offsets(Disk, &path).unwrap(), [(of, 42)]);
    }

    #[test]
    fn an_empty_file_has_no_entries_and_a_short_one_is_refused() {
        let dir = TempDir::new();
        let path = dir.path().join(LEADER_EPOCHS);
        let write = |text: &str| Disk.write_atomically(&path, text.as_bytes()).unwrap();
        write("");
        assert!(read_epochs(Disk, &path).unwrap().is_empty());
        write("0\n2\n0 0\n2 8\n");
        assert_eq!(read_epochs(Disk, &path).unwrap(), [(0, 0), (2, 8)]);
        for bad in ["0\n2\n0 0\n", "1\n0\n", "0\n", "0\n1\n0 x\n", "0\n1\n0\n"] {
            write(bad);
            assert!(read_epochs(Disk, &path).is_err(), "{bad:?}");
        }
    }
}
