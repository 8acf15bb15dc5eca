//! A disk that loses what was not made durable: everything a test does to the disk is noted, and
//! from the notes the folder is made again as a crash at any operation may have left it.
//!
//! What a sync covered is there. Of the rest, names survive in their order up to some point, each
//! folder for itself; of a file's writes those up to some point, the last perhaps in part, or of
//! each sector another number of them, for a disk writes back in its own order. An operation can be
//! made to fail: a short write, a full disk, a sync that fails once. After a failed sync the kernel
//! takes what was written for clean: a later sync succeeds and covers none of it.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "each question is about a few kinds of operations"
)]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// A file, whatever it is called; numbers of removed files are used again by the file system.
type Inode = (u64, u32);

/// What a disk writes as a whole.
const SECTOR: usize = 512;
/// Operations before a crash that are shown when it did harm.
const SHOWN: usize = 12;
/// How often a long run tells of itself, in worlds.
const TELL: u64 = 500;

/// What was done to the disk.
#[derive(Clone, Debug)]
enum Op {
    Create(PathBuf, Inode),
    MakeDir(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDir(PathBuf),
    Write(Inode, u64, Vec<u8>),
    SetLen(Inode, u64),
    Sync(Inode),
    SyncFailed(Inode),
    /// The test has promised something.
    Mark(usize),
}

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Half of a write is done, then there is no room.
    Full,
    /// A write or a sync does nothing and says so.
    Broken,
}

/// Everything that was done since it began.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    ops: Vec<Op>,
    /// How often a number was given to a new file.
    uses: HashMap<u64, u32>,
    failure: Option<(usize, Failure)>,
    /// How many of them stand for what was there when it began.
    found: usize,
}

thread_local! {
    static JOURNAL: RefCell<Option<Arc<Mutex<Journal>>>> = const { RefCell::new(None) };
}

/// Begins to note what this thread, and those that it starts, do to the disk.
pub(crate) fn begin() {
    JOURNAL.set(Some(Arc::default()));
}

/// Begins on a folder that is there already, all of it durable.
pub(crate) fn begin_on(root: &Path) -> io::Result<()> {
    let mut journal = Journal::default();
    journal.find(root)?;
    journal.found = journal.ops.len();
    JOURNAL.set(Some(Arc::new(Mutex::new(journal))));
    Ok(())
}

/// Ends, with the notes.
pub(crate) fn end() -> Journal {
    let journal = JOURNAL.take().expect("it was begun");
    std::mem::take(&mut *journal.lock())
}

/// What a new thread is to be given, so that it notes into the same journal as this one.
pub(super) fn heritage() -> impl FnOnce() + Send + 'static {
    let journal = JOURNAL.with_borrow(Clone::clone);
    move || JOURNAL.set(journal)
}

/// Makes the operation fail that comes after so many others.
pub(crate) fn fail_after(count: usize, failure: Failure) {
    with(|journal| journal.failure = Some((journal.ops.len() + count, failure)));
}

/// Notes that the test promises something from here on.
pub(crate) fn mark(number: usize) {
    with(|journal| journal.ops.push(Op::Mark(number)));
}

fn with<T>(work: impl FnOnce(&mut Journal) -> T) -> Option<T> {
    JOURNAL.with_borrow(|journal| journal.as_ref().map(|journal| work(&mut journal.lock())))
}

impl Journal {
    fn inode(&self, file: &fs::File) -> Inode {
        let number = file.metadata().map_or(0, |meta| meta.ino());
        (number, self.uses.get(&number).copied().unwrap_or(0))
    }

    /// Notes what stands in a folder.
    fn find(&mut self, folder: &Path) -> io::Result<()> {
        self.ops.push(Op::MakeDir(folder.to_owned()));
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.find(&path)?;
                continue;
            }
            let inode = (fs::metadata(&path)?.ino(), 0);
            let content = fs::read(&path)?;
            self.ops.push(Op::Create(path, inode));
            self.ops.push(Op::Write(inode, 0, content));
            self.ops.push(Op::Sync(inode));
        }
        self.ops.push(Op::SyncDir(folder.to_owned()));
        self.ops
            .extend(folder.parent().map(|parent| Op::SyncDir(parent.to_owned())));
        Ok(())
    }

    /// The failure of a write, if it is to fail.
    fn failing(&mut self) -> Option<Failure> {
        let (at, failure) = self.failure?;
        if self.ops.len() < at {
            return None;
        }
        self.failure = None;
        Some(failure)
    }

    /// Whether a sync is to fail; there is always room for one.
    fn fails_to_sync(&mut self) -> bool {
        matches!(self.failure, Some((_, Failure::Broken))) && self.failing().is_some()
    }
}

pub(super) fn created(path: &Path, file: &fs::File) {
    with(|journal| {
        let number = file.metadata().map_or(0, |meta| meta.ino());
        *journal.uses.entry(number).or_default() += 1;
        let inode = journal.inode(file);
        journal.ops.push(Op::Create(path.to_owned(), inode));
    });
}

pub(super) fn made_dir(path: &Path) {
    with(|journal| journal.ops.push(Op::MakeDir(path.to_owned())));
}

pub(super) fn renamed(from: &Path, to: &Path) {
    let (from, to) = (from.to_owned(), to.to_owned());
    with(|journal| journal.ops.push(Op::Rename(from, to)));
}

pub(super) fn removed(path: &Path) {
    with(|journal| journal.ops.push(Op::Remove(path.to_owned())));
}

/// Whether that was noted, which is as good as done.
pub(super) fn dir_synced(path: &Path) -> io::Result<bool> {
    with(|journal| {
        if journal.fails_to_sync() {
            return Err(io::ErrorKind::Other.into());
        }
        journal.ops.push(Op::SyncDir(path.to_owned()));
        Ok(true)
    })
    .unwrap_or(Ok(false))
}

/// Before a write; says how much of it is to be done.
pub(super) fn writing(file: &fs::File, at: u64, content: &[u8]) -> io::Result<usize> {
    with(|journal| {
        let inode = journal.inode(file);
        let done = match journal.failing() {
            None => content.len(),
            Some(Failure::Full) => content.len() / 2,
            Some(Failure::Broken) => return Err(io::ErrorKind::Other.into()),
        };
        journal
            .ops
            .push(Op::Write(inode, at, content[..done].to_vec()));
        Ok(done)
    })
    .unwrap_or(Ok(content.len()))
}

pub(super) fn set_len(file: &fs::File, len: u64) {
    with(|journal| {
        let inode = journal.inode(file);
        journal.ops.push(Op::SetLen(inode, len));
    });
}

/// Whether that was noted, which is as good as done.
pub(super) fn synced(file: &fs::File) -> io::Result<bool> {
    with(|journal| {
        let inode = journal.inode(file);
        if journal.fails_to_sync() {
            journal.ops.push(Op::SyncFailed(inode));
            return Err(io::ErrorKind::Other.into());
        }
        journal.ops.push(Op::Sync(inode));
        Ok(true)
    })
    .unwrap_or(Ok(false))
}

/// A folder after a crash.
pub(crate) struct Crashed {
    names: BTreeMap<PathBuf, Option<Inode>>,
    files: HashMap<Inode, Vec<u8>>,
    /// The last promise before it.
    pub(crate) mark: Option<usize>,
}

impl Journal {
    /// How many operations there are.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// How many of them stand for what was there when it began.
    pub(crate) fn found(&self) -> usize {
        self.found
    }

    /// The last `count` operations before `at`.
    pub(crate) fn describe(&self, at: usize, count: usize) -> String {
        let from = at.saturating_sub(count);
        let show = |op: &Op| match op {
            Op::Write(inode, at, bytes) => format!("Write({inode:?}, {at}, {} bytes)", bytes.len()),
            Op::Create(..)
            | Op::MakeDir(..)
            | Op::Rename(..)
            | Op::Remove(..)
            | Op::SyncDir(..)
            | Op::SetLen(..)
            | Op::Sync(..)
            | Op::SyncFailed(..)
            | Op::Mark(..) => format!("{op:?}"),
        };
        let shown: Vec<String> = self.ops[from..at].iter().map(show).collect();
        shown.join("\n")
    }

    /// What a crash before operation `at` may leave; `chance` gives numbers below a bound.
    pub(crate) fn crash(&self, at: usize, chance: &mut dyn FnMut(usize) -> usize) -> Crashed {
        let ops = &self.ops[..at];
        let mark = ops.iter().rev().find_map(|op| match op {
            Op::Mark(number) => Some(*number),
            _ => None,
        });
        Crashed {
            names: names(ops, chance),
            files: contents(ops, chance),
            mark,
        }
    }
}

/// The name that an operation is about, in the folder whose sync makes it durable.
fn name_of(op: &Op) -> Option<&Path> {
    match op {
        Op::Create(path, _) | Op::MakeDir(path) | Op::Rename(path, _) | Op::Remove(path) => {
            Some(path)
        }
        _ => None,
    }
}

/// A folder, whatever it is called; those that were there before get theirs when they are met.
type Folder = usize;

/// Which folders the operations were about, as they were called then.
#[derive(Default)]
struct Folders {
    count: Folder,
    called: BTreeMap<PathBuf, Folder>,
    /// Those that were there before.
    roots: BTreeMap<Folder, PathBuf>,
}

impl Folders {
    fn at(&mut self, path: &Path) -> Folder {
        if let Some(folder) = self.called.get(path) {
            return *folder;
        }
        let folder = self.make(path);
        self.roots.insert(folder, path.to_owned());
        folder
    }

    fn make(&mut self, path: &Path) -> Folder {
        self.count += 1;
        self.called.insert(path.to_owned(), self.count);
        self.count
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let below = |path: &PathBuf| {
            let below = path.strip_prefix(from).ok()?;
            Some(to.iter().chain(below.iter()).collect::<PathBuf>())
        };
        let moved = self.called.iter();
        let moved: Vec<_> = moved
            .filter_map(|(path, folder)| Some((path.clone(), below(path)?, *folder)))
            .collect();
        for (before, _, _) in &moved {
            self.called.remove(before);
        }
        for (_, after, folder) in moved {
            self.called.insert(after, folder);
        }
    }
}

/// What a name stands for.
#[derive(Clone, Copy)]
enum Stands {
    File(Inode),
    Folder(Folder),
}

/// An operation with the folder it was done in, and the one it made.
struct Done<'a> {
    op: &'a Op,
    within: Folder,
    made: Option<Folder>,
}

fn names(ops: &[Op], chance: &mut dyn FnMut(usize) -> usize) -> BTreeMap<PathBuf, Option<Inode>> {
    let mut folders = Folders::default();
    let mut done: BTreeMap<usize, Done<'_>> = BTreeMap::new();
    let mut synced: HashMap<Folder, usize> = HashMap::new();
    let mut pending: BTreeMap<Folder, Vec<usize>> = BTreeMap::new();
    for (at, op) in ops.iter().enumerate() {
        if let Op::SyncDir(path) = op {
            let folder = folders.at(path);
            synced.insert(folder, at);
            pending.remove(&folder);
            continue;
        }
        let Some(path) = name_of(op) else {
            continue;
        };
        let within = folders.at(path.parent().expect("a name is in a folder"));
        pending.entry(within).or_default().push(at);
        let mut made = None;
        match op {
            Op::MakeDir(path) => made = Some(folders.make(path)),
            Op::Rename(from, to) => folders.rename(from, to),
            _ => {}
        }
        done.insert(at, Done { op, within, made });
    }
    // Of each folder the names up to here survive.
    let mut until: HashMap<Folder, usize> = HashMap::new();
    for (folder, waiting) in &pending {
        let count = some_of(waiting.len(), chance);
        let end = match count {
            0 => synced.get(folder).copied().unwrap_or(0),
            count => waiting[count - 1] + 1,
        };
        until.insert(*folder, end);
    }
    let is_durable =
        |at: &usize, done: &Done<'_>| until.get(&done.within).is_none_or(|until| *at < *until);
    let mut left: BTreeMap<Folder, BTreeMap<PathBuf, Stands>> = BTreeMap::new();
    for (_, one) in done.iter().filter(|(at, one)| is_durable(at, one)) {
        let here = left.entry(one.within).or_default();
        let name = |path: &Path| PathBuf::from(path.file_name().expect("a name"));
        match one.op {
            Op::Create(path, inode) => {
                here.insert(name(path), Stands::File(*inode));
            }
            Op::MakeDir(path) => {
                here.insert(name(path), Stands::Folder(one.made.expect("it was made")));
            }
            Op::Rename(from, to) => {
                if let Some(stands) = here.remove(&name(from)) {
                    here.insert(name(to), stands);
                }
            }
            Op::Remove(path) => {
                here.remove(&name(path));
            }
            _ => {}
        }
    }
    let mut names = BTreeMap::new();
    for (folder, path) in &folders.roots {
        list(*folder, path, &left, &mut names);
    }
    names
}

/// Names what is left in a folder and below.
fn list(
    folder: Folder,
    path: &Path,
    left: &BTreeMap<Folder, BTreeMap<PathBuf, Stands>>,
    names: &mut BTreeMap<PathBuf, Option<Inode>>,
) {
    for (name, stands) in left.get(&folder).into_iter().flatten() {
        let path = path.join(name);
        match stands {
            Stands::File(inode) => {
                names.insert(path, Some(*inode));
            }
            Stands::Folder(folder) => {
                names.insert(path.clone(), None);
                list(*folder, &path, left, names);
            }
        }
    }
}

fn contents(ops: &[Op], chance: &mut dyn FnMut(usize) -> usize) -> HashMap<Inode, Vec<u8>> {
    let mut histories: BTreeMap<Inode, History<'_>> = BTreeMap::new();
    for op in ops {
        match op {
            Op::Write(inode, ..) | Op::SetLen(inode, _) => {
                histories.entry(*inode).or_default().changes.push(Change {
                    op,
                    state: State::Dirty,
                });
            }
            Op::Sync(inode) => histories.entry(*inode).or_default().settle(State::Durable),
            Op::SyncFailed(inode) => histories.entry(*inode).or_default().settle(State::Doubtful),
            _ => {}
        }
    }
    let left = histories.into_iter().map(|(inode, history)| {
        let content = match chance(4) {
            0 => history.scattered(chance),
            _ => history.in_order(chance),
        };
        (inode, content)
    });
    left.collect()
}

/// What was done to one file's content.
#[derive(Default)]
struct History<'a> {
    changes: Vec<Change<'a>>,
}

struct Change<'a> {
    op: &'a Op,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// A sync would cover it.
    Dirty,
    /// Its sync failed: whether it is on the disk nobody knows.
    Doubtful,
    Durable,
}

impl Change<'_> {
    fn is_cut(&self) -> bool {
        matches!(self.op, Op::SetLen(..))
    }

    fn touches(&self, sector: usize) -> bool {
        let Op::Write(_, position, bytes) = self.op else {
            return false;
        };
        let at = usize::try_from(*position).unwrap_or(0);
        at < sector + SECTOR && at + bytes.len() > sector
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self.op {
            Op::Write(_, position, bytes) => put(content, *position, bytes),
            Op::SetLen(_, len) => content.resize(usize::try_from(*len).unwrap_or(0), 0),
            _ => {}
        }
    }
}

impl History<'_> {
    /// A sync ends: what was dirty is so no more.
    fn settle(&mut self, state: State) {
        for change in self.changes.iter_mut().rev() {
            match change.state {
                State::Dirty => change.state = state,
                State::Doubtful => {}
                State::Durable => return,
            }
        }
    }

    /// After how many changes everything durable is there.
    fn durable(&self) -> usize {
        let last = self
            .changes
            .iter()
            .rposition(|one| one.state == State::Durable);
        last.map_or(0, |last| last + 1)
    }

    fn after(&self, count: usize) -> Vec<u8> {
        let mut content = Vec::new();
        for change in &self.changes[..count] {
            change.apply(&mut content);
        }
        content
    }

    /// Everything up to some change, and perhaps a part of the next.
    fn in_order(&self, chance: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let durable = self.durable();
        let count = durable + some_of(self.changes.len() - durable, chance);
        let mut content = self.after(count);
        if let Some(Op::Write(_, position, bytes)) = self.changes.get(count).map(|next| next.op)
            && chance(3) == 0
        {
            put(&mut content, *position, &bytes[..chance(bytes.len() + 1)]);
        }
        content
    }

    /// Of each sector what it was after some change, within a length and cuts that are in order.
    fn scattered(&self, chance: &mut dyn FnMut(usize) -> usize) -> Vec<u8> {
        let durable = self.durable();
        let count = durable + some_of(self.changes.len() - durable, chance);
        let cut_before = self.changes[..count].iter().rposition(Change::is_cut);
        let cut_after = self.changes[count..].iter().position(Change::is_cut);
        let until = cut_after.map_or(self.changes.len(), |after| count + after);
        let mut content = self.after(count);
        for sector in (0..content.len()).step_by(SECTOR) {
            let is_kept = |one: &Change<'_>| one.state == State::Durable && one.touches(sector);
            let kept = self.changes[..until]
                .iter()
                .rposition(is_kept)
                .max(cut_before);
            let kept = kept.map_or(0, |kept| kept + 1);
            let version = self.after(kept + some_of(until - kept, chance));
            let end = content.len().min(sector + SECTOR);
            for (at, byte) in content[sector..end].iter_mut().enumerate() {
                *byte = version.get(sector + at).copied().unwrap_or(0);
            }
        }
        content
    }
}

fn put(content: &mut Vec<u8>, position: u64, bytes: &[u8]) {
    let at = usize::try_from(position).unwrap_or(0);
    if content.len() < at + bytes.len() {
        content.resize(at + bytes.len(), 0);
    }
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// None, all, or some of so many.
fn some_of(count: usize, chance: &mut dyn FnMut(usize) -> usize) -> usize {
    match chance(4) {
        0 => 0,
        1 => count,
        _ => chance(count + 1),
    }
}

impl Crashed {
    /// Writes what is left below `from` to another folder.
    pub(crate) fn restore(&self, from: &Path, to: &Path) -> io::Result<()> {
        if to.exists() {
            fs::remove_dir_all(to)?;
        }
        fs::create_dir_all(to)?;
        for (path, inode) in &self.names {
            let Ok(below) = path.strip_prefix(from) else {
                continue;
            };
            let path = to.join(below);
            match inode {
                None => fs::create_dir_all(&path)?,
                Some(inode) if path.parent().is_some_and(Path::exists) => {
                    let content = self.files.get(inode).map(Vec::as_slice);
                    fs::write(&path, content.unwrap_or_default())?;
                }
                // Its folder is not one of those that were made.
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// Runs worlds by their seeds: a few, or those that the environment names. `BARNABAS_CRASH_SEED=7`
/// runs one, `BARNABAS_CRASH_SEEDS=10000` so many from `BARNABAS_CRASH_FIRST` on. Each is told how
/// many operations to show of a failure, after which the next has its turn.
pub(crate) fn worlds(few: u64, run: impl Fn(u64, usize)) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("BARNABAS_CRASH_SEED") {
        return run(seed, usize::MAX);
    }
    let count = number("BARNABAS_CRASH_SEEDS").unwrap_or(few);
    let first = number("BARNABAS_CRASH_FIRST").unwrap_or(0);
    let mut failed = Vec::new();
    for seed in first..first + count {
        let lived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, SHOWN)));
        if lived.is_err() {
            failed.push(seed);
        }
        let done = seed + 1 - first;
        if done.is_multiple_of(TELL) {
            println!("{done} worlds");
        }
    }
    println!("{count} worlds from seed {first}");
    assert!(
        failed.is_empty(),
        "the worlds of these seeds failed: {failed:?}"
    );
}
