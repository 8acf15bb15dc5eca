//! The disk: files by positioned reads and writes, directories, and what makes them durable.
//!
//! A file's data is durable after [`File::sync_data`]; its name only after [`Disk::sync_dir`] of
//! the folder that holds it.

use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

#[cfg(test)]
use super::sim_disk;

/// The handle to the machine's disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk;

/// An open file; positions are always given, so that a handle can be shared.
#[derive(Debug)]
pub(crate) struct File(fs::File);

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it is made when absent.
    Write,
    /// For reading and writing; it must not exist.
    New,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_dir: bool,
}

/// An exclusive lock on a file, held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _flock: nix::fcntl::Flock<fs::File>,
}

/// Space on the file system of a folder, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) total: u64,
    pub(crate) usable: u64,
}

impl Disk {
    /// Opens a file.
    pub(crate) fn open(self, path: &Path, how: Open) -> io::Result<File> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(how != Open::Read);
        options
            .create(how == Open::Write)
            .create_new(how == Open::New)
            .mode(0o644);
        #[cfg(test)]
        let is_new = how != Open::Read && !path.exists();
        let file = options.open(path)?;
        #[cfg(test)]
        if is_new {
            sim_disk::created(path, &file);
        }
        Ok(File(file))
    }

    /// Reads a whole file; for small ones.
    pub(crate) fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    /// Makes a folder and those above it; its name is durable in its parent afterwards.
    pub(crate) fn create_dir_all(self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        fs::create_dir_all(path)?;
        #[cfg(test)]
        sim_disk::made_dir(path);
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.sync_dir(parent),
            _ => Ok(()),
        }
    }

    /// Makes one folder; its name is durable after [`Disk::sync_dir`] of the folder that holds it.
    pub(crate) fn create_dir(self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)?;
        #[cfg(test)]
        sim_disk::made_dir(path);
        Ok(())
    }

    /// Lists a folder, sorted by name; names that are not UTF-8 are left out.
    pub(crate) fn list(self, path: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(Entry {
                    name,
                    is_dir: entry.file_type()?.is_dir(),
                });
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Renames, replacing what stands there; durable after [`Disk::sync_dir`].
    pub(crate) fn rename(self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)?;
        #[cfg(test)]
        sim_disk::renamed(from, to);
        Ok(())
    }

    /// Removes a file.
    pub(crate) fn remove_file(self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)?;
        #[cfg(test)]
        sim_disk::removed(path);
        Ok(())
    }

    /// Removes a folder with all it holds.
    pub(crate) fn remove_dir_all(self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    /// The path from the root on, without a look at the disk.
    pub(crate) fn absolute(self, path: &Path) -> PathBuf {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }

    /// The path from the root on, with links followed.
    pub(crate) fn canonical(self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    /// Whether a file or folder exists.
    pub(crate) fn exists(self, path: &Path) -> bool {
        path.exists()
    }

    /// The length of a file in bytes, if there is one.
    pub(crate) fn len_of(self, path: &Path) -> io::Result<Option<u64>> {
        match fs::metadata(path) {
            Ok(meta) => Ok(Some(meta.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_dir(self, path: &Path) -> io::Result<()> {
        #[cfg(test)]
        if sim_disk::dir_synced(path)? {
            return Ok(());
        }
        let folder = fs::OpenOptions::new().read(true).open(path)?;
        folder.sync_all().map_err(unsynced)
    }

    /// Replaces a small file whole: written beside it, synced, renamed over it, folder synced.
    pub(crate) fn write_atomically(self, path: &Path, content: &[u8]) -> io::Result<()> {
        let tmp = with_suffix(path, ".tmp");
        let file = self.open(&tmp, Open::Write)?;
        file.set_len(0)?;
        file.write_all_at(content, 0)?;
        file.sync_data()?;
        self.rename(&tmp, path)?;
        match path.parent() {
            Some(parent) => self.sync_dir(parent),
            None => Ok(()),
        }
    }

    /// Replaces a small file whole, as [`Disk::write_atomically`] but without waiting for the disk:
    /// after a crash of the machine the old file, the new one or an empty one stands there. For
    /// what can be computed again.
    pub(crate) fn replace(self, path: &Path, content: &[u8]) -> io::Result<()> {
        let tmp = with_suffix(path, ".tmp");
        let file = self.open(&tmp, Open::Write)?;
        file.set_len(0)?;
        file.write_all_at(content, 0)?;
        self.rename(&tmp, path)
    }

    /// Writes a small file in its place and waits for nothing: a crash may leave it empty. For what
    /// means nothing before somebody else makes it durable.
    pub(crate) fn write_in_place(self, path: &Path, content: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        {
            let file = self.open(path, Open::Write)?;
            file.set_len(0)?;
            file.write_all_at(content, 0)
        }
        #[cfg(not(test))]
        fs::write(path, content)
    }

    /// Takes the right to write from everybody (mode 0400).
    pub(crate) fn make_read_only(self, path: &Path) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(0o400))
    }

    /// Locks a file exclusively, making it when absent; fails at once when another process
    /// holds it.
    pub(crate) fn lock(self, path: &Path) -> io::Result<Lock> {
        let file = self.open(path, Open::Write)?.0;
        nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusiveNonblock)
            .map(|flock| Lock { _flock: flock })
            .map_err(|(_, errno)| errno.into())
    }

    /// The space on the file system that holds `path`.
    pub(crate) fn space(self, path: &Path) -> io::Result<Space> {
        let stat = nix::sys::statvfs::statvfs(path)?;
        let unit = stat.fragment_size();
        Ok(Space {
            total: stat.blocks().saturating_mul(unit),
            usable: stat.blocks_available().saturating_mul(unit),
        })
    }
}

impl File {
    /// Reads up to the length of `into` at `position`; fewer bytes only at the end of the file.
    pub(crate) fn read_at(&self, into: &mut [u8], position: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], position + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Fills `into` from `position`; an error when the file ends before.
    pub(crate) fn read_exact_at(&self, into: &mut [u8], position: u64) -> io::Result<()> {
        self.0.read_exact_at(into, position)
    }

    /// Writes all of `content` at `position`.
    pub(crate) fn write_all_at(&self, content: &[u8], position: u64) -> io::Result<()> {
        #[cfg(test)]
        {
            let done = sim_disk::writing(&self.0, position, content)?;
            if done < content.len() {
                self.0.write_all_at(&content[..done], position)?;
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        self.0.write_all_at(content, position)
    }

    /// Writes several pieces one behind the other at `position`, in one system call when the
    /// kernel takes them whole.
    pub(crate) fn write_pieces_at(&self, pieces: &[&[u8]], mut position: u64) -> io::Result<()> {
        const FEW: usize = 4;
        #[cfg(test)]
        {
            let whole = pieces.concat();
            let done = sim_disk::writing(&self.0, position, &whole)?;
            if done < whole.len() {
                self.0.write_all_at(&whole[..done], position)?;
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let mut few = [IoSlice::new(&[]); FEW];
        let mut many = Vec::new();
        let mut rest = if pieces.len() <= FEW {
            &mut few[..pieces.len()]
        } else {
            many.resize(pieces.len(), IoSlice::new(&[]));
            &mut many[..]
        };
        for (slice, piece) in rest.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let offset = position
                .try_into()
                .map_err(|_| io::ErrorKind::FileTooLarge)?;
            match nix::sys::uio::pwritev(&self.0, rest, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    position += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Cuts or extends the file.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        #[cfg(test)]
        sim_disk::set_len(&self.0, len);
        self.0.set_len(len)
    }

    /// The length of the file in bytes.
    pub(crate) fn len(&self) -> io::Result<u64> {
        self.0.metadata().map(|meta| meta.len())
    }

    /// When the file was last written to, in milliseconds since 1970.
    pub(crate) fn modified_ms(&self) -> io::Result<i64> {
        let since = self.0.metadata()?.modified()?.duration_since(UNIX_EPOCH);
        let since = since.unwrap_or_default().as_millis();
        Ok(since.try_into().unwrap_or(i64::MAX))
    }

    /// Says when the file was last written to.
    pub(crate) fn set_modified_ms(&self, at_ms: i64) -> io::Result<()> {
        let since = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
        self.0.set_modified(UNIX_EPOCH + since)
    }

    /// Makes the file's data and length durable. A failure is final for what was written.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        #[cfg(test)]
        if sim_disk::synced(&self.0)? {
            return Ok(());
        }
        self.0.sync_data().map_err(unsynced)
    }
}

/// A failed sync says nothing of its cause: whatever it was, what was written may be lost, and a
/// second try that succeeds would not bring it back.
fn unsynced(error: io::Error) -> io::Error {
    io::Error::other(format!("a sync failed: {error}"))
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The path with `suffix` added to its last name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
pub(crate) use tests::TempDir;

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own for a test, removed at its end.
    pub(crate) struct TempDir(PathBuf);

    impl TempDir {
        pub(crate) fn new() -> Self {
            let path =
                std::env::temp_dir().join(format!("barnabas-test-{}", crate::os::random::uuid()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn pieces_are_written_one_behind_the_other() {
        let dir = TempDir::new();
        let file = Disk.open(&dir.path().join("f"), Open::New).unwrap();
        file.write_pieces_at(&[b"ab", b"", b"cde"], 1).unwrap();
        let mut read = [0; 8];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 6);
        assert_eq!(&read[..6], b"\0abcde");
        file.write_pieces_at(&[b"", b""], 3).unwrap();
        assert_eq!(file.len().unwrap(), 6);
    }

    #[test]
    fn a_file_is_locked_by_one_holder_only() {
        let dir = TempDir::new();
        let path = dir.path().join(".lock");
        let lock = Disk.lock(&path).unwrap();
        assert!(Disk.lock(&path).is_err());
        drop(lock);
        Disk.lock(&path).unwrap();
    }

    #[test]
    fn a_small_file_is_replaced_whole() {
        let dir = TempDir::new();
        let path = dir.path().join("c");
        Disk.write_atomically(&path, b"a longer text").unwrap();
        Disk.write_atomically(&path, b"short").unwrap();
        assert_eq!(Disk.read(&path).unwrap(), b"short");
        assert_eq!(Disk.list(dir.path()).unwrap().len(), 1);
    }
}
