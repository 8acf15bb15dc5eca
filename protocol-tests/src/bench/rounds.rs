//! The order of samples, and one JSON line for each.
//!
//! In each round every contestant has its turn, in one order and in the next round in the other
//! (A B, B A), so that what drifts hurts both alike. The first round of a cell warms up and is not
//! written.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::cells::{self, Cell, Life};
use super::contestant::{Contestant, Kind, Programs};
use super::measure::{self, Noise, RealTime, Watch};

/// Memory that is touched before each sample: more than any but the crash writes to the page cache.
const TOUCHED: u64 = 3 << 29;

/// What is to be run.
pub struct Plan {
    pub cells: Vec<&'static Cell>,
    pub contestants: Vec<Kind>,
    /// For every cell; `None` leaves it to the cells.
    pub rounds: Option<usize>,
    pub programs: Programs,
    /// Where the raw rounds go.
    pub out: PathBuf,
}

/// One contestant's turn at a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub cell: String,
    /// Samples of one run and round are compared with each other.
    pub run: u64,
    pub round: u64,
    pub contestant: String,
    pub figures: BTreeMap<String, f64>,
    pub noise: Noise,
    pub real_time: bool,
}

impl Sample {
    fn to_json(&self) -> Value {
        json!({
            "cell": self.cell,
            "run": self.run,
            "round": self.round,
            "contestant": self.contestant,
            "figures": self.figures,
            "steal": rounded(self.noise.steal),
            "others": rounded(self.noise.others),
            "load": self.noise.load,
            "real_time": self.real_time,
            "congestion": measure::congestion_control(),
        })
    }

    pub fn from_json(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let number = |key: &str| value[key].as_f64();
        let figures = value["figures"].as_object()?;
        Some(Self {
            cell: value["cell"].as_str()?.to_owned(),
            run: value["run"].as_u64()?,
            round: value["round"].as_u64()?,
            contestant: value["contestant"].as_str()?.to_owned(),
            figures: figures
                .iter()
                .filter_map(|(key, figure)| Some((key.clone(), figure.as_f64()?)))
                .collect(),
            noise: Noise {
                steal: number("steal")?,
                others: number("others")?,
                load: number("load")?,
            },
            real_time: value["real_time"].as_bool()?,
        })
    }
}

fn rounded(part: f64) -> f64 {
    (part * 1e4).round() / 1e4
}

/// Runs the plan; says on standard error what it does.
pub fn run(plan: &Plan) -> io::Result<()> {
    fs::create_dir_all(&plan.out)?;
    let folder = tempfile::Builder::new()
        .prefix("barnabas-bench-")
        .tempdir()?;
    let run = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let mut field = Field {
        plan,
        folder: folder.path(),
        run,
        running: Vec::new(),
    };
    for cell in &plan.cells {
        match cell.life {
            Life::Shared => field.start_all()?,
            Life::Own => field.end_all()?,
        }
        for round in 0..=plan.rounds.unwrap_or(cell.daily) {
            field.round(cell, round as u64)?;
        }
    }
    field.end_all()
}

struct Field<'a> {
    plan: &'a Plan,
    folder: &'a Path,
    run: u64,
    running: Vec<Contestant>,
}

impl Field<'_> {
    fn start_all(&mut self) -> io::Result<()> {
        if !self.running.is_empty() {
            return Ok(());
        }
        for kind in &self.plan.contestants {
            eprintln!("starting {}", kind.name());
            let contestant = Contestant::new(*kind, &self.plan.programs, self.folder)?;
            let mut contestant = contestant.shared();
            contestant.start()?;
            eprintln!("warming {}", kind.name());
            let span = if kind.is_java() { 15 } else { 1 };
            cells::warm(&mut contestant, Duration::from_secs(span))?;
            contestant.freeze();
            self.running.push(contestant);
        }
        Ok(())
    }

    fn end_all(&mut self) -> io::Result<()> {
        self.running
            .drain(..)
            .try_for_each(|mut contestant| contestant.remove())
    }

    /// Every contestant once; the round 0 is not written.
    fn round(&mut self, cell: &'static Cell, round: u64) -> io::Result<()> {
        // What needs no warm virtual machine needs no round for it.
        if round == 0 && cell.life == Life::Own {
            return Ok(());
        }
        let mut order: Vec<Kind> = self.plan.contestants.clone();
        if round % 2 == 1 {
            order.reverse();
        }
        for kind in order {
            if cell.without.contains(&kind) {
                continue;
            }
            let sample = self.sample(cell, round, kind)?;
            let figures: Vec<String> = sample
                .figures
                .iter()
                .map(|(key, figure)| format!("{key} {figure:.3}"))
                .collect();
            eprintln!(
                "{} {round} {:<12} {} (others {:.0} %, steal {:.1} %)",
                cell.name,
                kind.name(),
                figures.join(", "),
                sample.noise.others * 100.0,
                sample.noise.steal * 100.0
            );
            if round > 0 {
                self.write(&sample)?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, cell: &'static Cell, round: u64, kind: Kind) -> io::Result<Sample> {
        let shared = self.running.iter_mut().find(|one| one.kind == kind);
        let mut own;
        let contestant = match shared {
            Some(contestant) => contestant,
            None => {
                own = Contestant::new(kind, &self.plan.programs, self.folder)?;
                &mut own
            }
        };
        if cell.life == Life::Shared {
            contestant.thaw();
        }
        measure::prefault(TOUCHED)?;
        let real_time = cell.real_time.then(|| RealTime::of(contestant.pid()));
        let watch = Watch::begin()?;
        let taken = (cell.run)(contestant);
        let granted = real_time
            .as_ref()
            .is_some_and(|real_time| real_time.granted);
        drop(real_time);
        let taken = taken?;
        let noise = watch.end(taken.cpu)?;
        match cell.life {
            Life::Shared => contestant.freeze(),
            Life::Own => contestant.remove()?,
        }
        Ok(Sample {
            cell: cell.name.to_owned(),
            run: self.run,
            round,
            contestant: kind.name().to_owned(),
            figures: taken
                .figures
                .into_iter()
                .map(|(key, figure)| (key.to_owned(), figure))
                .collect(),
            noise,
            real_time: granted,
        })
    }

    fn write(&self, sample: &Sample) -> io::Result<()> {
        let path = self.plan.out.join(format!("{}.jsonl", sample.cell));
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{}", sample.to_json())
    }
}

/// All samples of a folder, as they were written.
pub fn read(folder: &Path) -> io::Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            let text = fs::read_to_string(&path)?;
            samples.extend(text.lines().filter_map(Sample::from_json));
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_as_it_was_written() {
        let sample = Sample {
            cell: "produce-16k".to_owned(),
            run: 1_700_000_000,
            round: 3,
            contestant: "control".to_owned(),
            figures: [("cpu".to_owned(), 0.25)].into(),
            noise: Noise {
                steal: 0.01,
                others: 0.125,
                load: 1.5,
            },
            real_time: true,
        };
        let line = sample.to_json().to_string();
        assert_eq!(Sample::from_json(&line), Some(sample));
        assert_eq!(Sample::from_json("{}"), None);
    }
}
