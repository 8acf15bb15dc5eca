//! A node that ends anywhere and starts again, and ends again: what the first end left must not be
//! believed of what was written after it.

use std::path::Path;

use super::moving_test::{Node, of, records};
use crate::log::fault::Fault;
use crate::os::disk::{Disk, Open, TempDir};
use crate::os::random::Dice;
use crate::os::sim_disk;

/// Crashes in one life.
const CRASHES: usize = 40;

fn start(root: &Path) -> Node {
    Node::start_on(&[root.to_owned()], None, 0)
}

fn checkpoint(node: &Node) {
    assert!(node.manager.dirs().checkpoint().is_empty());
}

#[test]
fn a_recovery_point_beyond_the_end_is_not_believed_of_what_is_written_later() {
    let dir = TempDir::new();
    let root = dir.path().join("node");
    let node = start(&root);
    for _ in 0..10 {
        node.append(1);
    }
    node.partition().with_log(|log| log.flush_now()).unwrap();
    checkpoint(&node);
    drop(node);
    // What a crash in a truncation leaves: the log is cut, the checkpoint is not written yet.
    let path = root.join("t-0/00000000000000000000.log");
    let file = Disk.open(&path, Open::Write).unwrap();
    file.set_len(file.len().unwrap() / 2).unwrap();

    sim_disk::begin_on(&root).unwrap();
    let node = start(&root);
    assert_eq!(node.end(), 5);
    sim_disk::mark(0);
    for n in 0..10 {
        if n % 3 == 0 {
            let roll = |log: &mut crate::log::log::Log| log.roll(log.log_end_offset(), 0);
            node.partition().with_log(roll).unwrap();
        }
        node.append(1);
    }
    let all = records(&node.partition());
    drop(node);
    let journal = sim_disk::end();
    let mut dice = Dice(5);
    for _ in 0..CRASHES {
        let at = journal.found() + dice.below(journal.len() - journal.found() + 1);
        let crashed = journal.crash(at, &mut |bound| dice.below(bound));
        let left = dir.path().join("left");
        crashed.restore(&root, &left).unwrap();
        if crashed.mark.is_none() {
            continue;
        }
        let node = start(&left);
        let found = records(&node.partition());
        assert!((0..5).all(|at| found.contains_key(&at)));
        assert!(found.iter().all(|(at, bytes)| all.get(at) == Some(bytes)));
    }
}

#[test]
fn a_new_topic_takes_no_offsets_from_one_of_its_name_that_a_crash_took_away() {
    let dir = TempDir::new();
    let node = start(dir.path());
    for _ in 0..10 {
        node.append(1);
    }
    let forward = |log: &mut crate::log::log::Log| -> Result<bool, Fault> {
        log.flush_now()?;
        log.advance_log_start(7)
    };
    assert!(node.partition().with_log(forward).unwrap());
    checkpoint(&node);
    // The node ends when the folder has its other name, and the checkpoints still the old one.
    node.partition().retire();
    assert!(node.manager.dirs().delete(&of()).unwrap().is_some());
    drop(node);

    let node = start(dir.path());
    assert_eq!(node.end(), 0);
    node.append(1);
    node.append(1);
    let all = records(&node.partition());
    drop(node);
    let node = start(dir.path());
    assert_eq!((node.end(), records(&node.partition())), (2, all));
}

#[test]
fn a_directory_whose_checkpoints_cannot_be_corrected_is_not_used() {
    let dir = TempDir::new();
    let root = dir.path().join("node");
    let node = start(&root);
    node.append(1);
    node.partition().with_log(|log| log.flush_now()).unwrap();
    checkpoint(&node);
    assert!(node.manager.dirs().delete(&of()).unwrap().is_some());
    drop(node);
    // Its place is taken, so it cannot be written.
    Disk.create_dir_all(&root.join("recovery-point-offset-checkpoint.tmp"))
        .unwrap();
    let node = start(&root);
    assert!(node.manager.dirs().dirs().is_empty());
}
