//! Open files, few of them: what is being written stays open, the rest is opened when it is asked
//! for and kept in a small cache.
//!
//! Whoever holds an `Arc<File>` keeps its bytes alive, whatever happens to the name or the cache.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::fault::{At, Fault};
use crate::os::disk::{Disk, File, Open};

/// Files opened for reading, the last few kept open.
#[derive(Debug)]
pub(crate) struct FileCache {
    disk: Disk,
    capacity: usize,
    open: Mutex<VecDeque<Arc<File>>>,
}

impl FileCache {
    /// A cache that keeps at most `capacity` files open.
    pub(crate) fn new(disk: Disk, capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            disk,
            capacity,
            open: Mutex::default(),
        })
    }

    /// The disk that the files are on.
    pub(crate) fn disk(&self) -> Disk {
        self.disk
    }

    fn keep(&self, file: &Arc<File>) {
        let mut open = self.open.lock();
        open.push_back(Arc::clone(file));
        while open.len() > self.capacity {
            open.pop_front();
        }
    }
}

/// A file by its name, open or not.
#[derive(Debug)]
pub(crate) struct LazyFile {
    cache: Arc<FileCache>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    path: PathBuf,
    /// Open for writing until released.
    pinned: Option<Arc<File>>,
    /// Open as long as the cache or a reader holds it.
    recent: Weak<File>,
}

impl LazyFile {
    /// Names a file; nothing is opened.
    pub(crate) fn new(cache: &Arc<FileCache>, path: PathBuf) -> Self {
        Self {
            cache: Arc::clone(cache),
            state: Mutex::new(State {
                path,
                pinned: None,
                recent: Weak::new(),
            }),
        }
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> PathBuf {
        self.state.lock().path.clone()
    }

    /// The file, for reading.
    pub(crate) fn read(&self) -> Result<Arc<File>, Fault> {
        let mut state = self.state.lock();
        if let Some(file) = &state.pinned {
            return Ok(Arc::clone(file));
        }
        if let Some(file) = state.recent.upgrade() {
            return Ok(file);
        }
        let file = self.cache.disk.open(&state.path, Open::Read);
        let file = Arc::new(file.at(&state.path)?);
        state.recent = Arc::downgrade(&file);
        self.cache.keep(&file);
        Ok(file)
    }

    /// The file, for writing; made when absent and kept open until released.
    pub(crate) fn write(&self) -> Result<Arc<File>, Fault> {
        let mut state = self.state.lock();
        if let Some(file) = &state.pinned {
            return Ok(Arc::clone(file));
        }
        let file = self.cache.disk.open(&state.path, Open::Write);
        let file = Arc::new(file.at(&state.path)?);
        state.pinned = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Lets it be closed once nobody reads it.
    pub(crate) fn release(&self) {
        let mut state = self.state.lock();
        if let Some(file) = state.pinned.take() {
            state.recent = Arc::downgrade(&file);
            self.cache.keep(&file);
        }
    }

    /// Gives it another name, which it has from its making on when it is not there yet; it stays
    /// readable through this handle.
    pub(crate) fn rename_if_exists(&self, to: PathBuf) -> Result<(), Fault> {
        let mut state = self.state.lock();
        if self.cache.disk.exists(&state.path) {
            self.cache.disk.rename(&state.path, &to).at(&state.path)?;
        }
        state.path = to;
        Ok(())
    }

    /// Follows a folder that was renamed.
    pub(crate) fn moved_to(&self, folder: &Path) {
        let mut state = self.state.lock();
        if let Some(name) = state.path.file_name() {
            state.path = folder.join(name);
        }
    }

    /// Its length in bytes, if it exists; it is not opened for that.
    pub(crate) fn len(&self) -> Result<Option<u64>, Fault> {
        let state = self.state.lock();
        let len = match &state.pinned {
            Some(file) => file.len().map(Some),
            None => self.cache.disk.len_of(&state.path),
        };
        len.at(&state.path)
    }

    /// Whether the file exists.
    pub(crate) fn exists(&self) -> bool {
        let state = self.state.lock();
        state.pinned.is_some() || self.cache.disk.exists(&state.path)
    }
}
