//! What is measured. A cell is a row of [`ALL`] and a function that takes one sample of a contestant.
//!
//! A new cell needs nothing else: the rounds, the table and the charts read this list.

mod calls;
mod clients;
mod fetch;
mod footprint;
mod groups;
mod latency;
mod life;
mod produce;

use std::io;
use std::time::{Duration, Instant};

use super::contestant::{Contestant, Kind};
use super::measure::cpu_time;

/// Whether a cell's samples share one process of each contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// One that is started and warmed before the first sample, and frozen in between.
    Shared,
    /// The sample starts one of its own.
    Own,
}

/// Something to measure.
pub struct Cell {
    pub name: &'static str,
    /// What is done, for a reader who knows no more.
    pub title: &'static str,
    pub figures: &'static [Figure],
    pub life: Life,
    /// Whether broker and generator run at a real-time priority, where the system allows it.
    pub real_time: bool,
    /// Its rounds in a daily run; all cells together take half an hour.
    pub daily: usize,
    /// Whether it counts things that a busy machine does not change.
    pub counts: bool,
    /// Whether part of the load is in other programs or in the kernel's own threads, whose share of the
    /// machine then says nothing of noise.
    pub others_work: bool,
    /// Who has no part in it.
    pub without: &'static [Kind],
    pub run: fn(&mut Contestant) -> io::Result<Taken>,
}

/// A number of a sample, and what it should be; less is better unless its goal says otherwise.
pub struct Figure {
    pub key: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub goal: Goal,
}

/// What a figure of ours is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Goal {
    /// At most so many times that of the control broker.
    pub control: Option<f64>,
    /// At most so many times that of the tuned Kafka.
    pub tuned: Option<f64>,
    /// At most this.
    pub most: Option<f64>,
    /// More is better: the interval of the ratio to the tuned Kafka must reach one.
    pub not_below_tuned: bool,
}

impl Goal {
    const NONE: Self = Self {
        control: None,
        tuned: None,
        most: None,
        not_below_tuned: false,
    };

    const fn ratios(control: f64, tuned: f64) -> Self {
        Self {
            control: Some(control),
            tuned: Some(tuned),
            ..Self::NONE
        }
    }

    const fn most(most: f64) -> Self {
        Self {
            most: Some(most),
            ..Self::NONE
        }
    }

    const fn most_and_tuned(most: f64, tuned: f64) -> Self {
        Self {
            most: Some(most),
            tuned: Some(tuned),
            ..Self::NONE
        }
    }
}

/// What a sample came to.
pub struct Taken {
    /// CPU time of the contestant.
    pub cpu: Duration,
    pub figures: Vec<(&'static str, f64)>,
}

/// Measures the contestant's CPU time while `work` runs.
fn with_cpu<T>(
    contestant: &Contestant,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<(Duration, T)> {
    let before = cpu_time(contestant.pid())?;
    let result = work()?;
    Ok((cpu_time(contestant.pid())?.saturating_sub(before), result))
}

/// Bytes as the unit of throughput, 10^9.
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Every cell, in the order of the table.
pub const ALL: &[Cell] = &[
    produce::LARGE,
    produce::MIDDLE,
    produce::SMALL,
    fetch::LARGE,
    fetch::SMALL,
    latency::BUSY,
    latency::CALM,
    latency::TAIL,
    groups::COMMITS,
    calls::CALLS,
    footprint::MEMORY,
    footprint::IDLE,
    life::START,
    life::CRASH,
    clients::LIBRDKAFKA,
    clients::JAVA,
];

/// The cell of this name.
pub fn by_name(name: &str) -> Option<&'static Cell> {
    ALL.iter().find(|cell| cell.name == name)
}

/// Gives the contestant the work of the cells for so long: a virtual machine compiles meanwhile.
pub fn warm(contestant: &mut Contestant, span: Duration) -> io::Result<()> {
    let end = Instant::now() + span;
    loop {
        produce::warm(contestant)?;
        fetch::warm(contestant)?;
        if Instant::now() > end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cells_and_their_figures_have_names_of_their_own() {
        let names: BTreeSet<_> = ALL.iter().map(|cell| cell.name).collect();
        assert_eq!(names.len(), ALL.len());
        for cell in ALL {
            let keys: BTreeSet<_> = cell.figures.iter().map(|figure| figure.key).collect();
            assert_eq!(keys.len(), cell.figures.len(), "{}", cell.name);
        }
    }
}
