//! From raw rounds to the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::cells::{self, Cell, Figure};
use super::contestant::Kind;
use super::rounds::Sample;
use super::statistics::{Estimate, median};

/// A round counts only while the hypervisor kept less of the time than this.
const STEAL_MAX: f64 = 0.05;
/// The same of other processes and the kernel's own threads.
const OTHERS_MAX: f64 = 0.25;
/// How far the control broker may be off its own median.
const CONTROL_OFF_MAX: f64 = 0.25;
/// Fewer rounds than this give no verdict.
const ROUNDS_MIN: usize = 3;

/// A cell's samples: those of its calm rounds, or of all where too few were calm to judge by.
pub struct Sheet<'a> {
    pub cell: &'static Cell,
    rounds: Vec<BTreeMap<&'a str, &'a Sample>>,
    pub calm: usize,
    pub noisy: usize,
}

impl<'a> Sheet<'a> {
    /// Every cell that has samples, in the order of the table.
    pub fn all(samples: &'a [Sample]) -> Vec<Self> {
        cells::ALL
            .iter()
            .map(|cell| Self::of(cell, samples))
            .filter(|sheet| !sheet.rounds.is_empty())
            .collect()
    }

    fn of(cell: &'static Cell, samples: &'a [Sample]) -> Self {
        let mut rounds = BTreeMap::<(u64, u64), BTreeMap<&str, &Sample>>::new();
        for sample in samples.iter().filter(|sample| sample.cell == cell.name) {
            let round = rounds.entry((sample.run, sample.round)).or_default();
            round.insert(&sample.contestant, sample);
        }
        let rounds: Vec<_> = rounds.into_values().collect();
        let control = control_median(cell, &rounds);
        let (calm, noisy): (Vec<_>, Vec<_>) = rounds
            .into_iter()
            .partition(|round| is_calm(cell, round, control));
        let mut sheet = Self {
            cell,
            calm: calm.len(),
            noisy: noisy.len(),
            rounds: calm,
        };
        if !sheet.may_judge() {
            sheet.rounds.extend(noisy);
        }
        sheet
    }

    /// What a contestant's samples say of a figure.
    pub fn figure(&self, kind: Kind, key: &str) -> Option<Estimate> {
        let figures = self
            .rounds
            .iter()
            .filter_map(|round| value(round, kind, key));
        Estimate::of(&figures.collect::<Vec<_>>())
    }

    /// Ours in relation to another's, round by round.
    pub fn ratio(&self, other: Kind, key: &str) -> Option<Estimate> {
        let ratios = self.rounds.iter().filter_map(|round| {
            let ours = value(round, Kind::Barnabas, key)?;
            let theirs = value(round, other, key)?;
            (theirs > 0.0).then_some(ours / theirs)
        });
        Estimate::of(&ratios.collect::<Vec<_>>())
    }

    /// Whether enough rounds were calm; what only counts needs no more than one.
    fn may_judge(&self) -> bool {
        self.cell.counts || (self.calm >= ROUNDS_MIN && self.calm >= self.noisy)
    }

    /// Each goal of a figure in words, and whether it is met.
    fn judge(&self, figure: &Figure) -> Vec<(String, bool)> {
        let goal = figure.goal;
        let ours = self.figure(Kind::Barnabas, figure.key);
        let to = |kind| self.ratio(kind, figure.key);
        let mut verdicts = Vec::new();
        let mut add = |words: String, value: Option<f64>, most: f64| {
            if let Some(value) = value {
                verdicts.push((words, value <= most));
            }
        };
        if let Some(most) = goal.control {
            let ratio = to(Kind::Control).map(|ratio| ratio.median);
            add(format!("≤ {most} × control"), ratio, most);
        }
        if let Some(most) = goal.tuned {
            let ratio = to(Kind::KafkaTuned).map(|ratio| ratio.median);
            add(format!("≤ {most} × tuned"), ratio, most);
        }
        if let Some(most) = goal.most {
            let value = ours.map(|ours| ours.median);
            add(format!("≤ {most} {}", figure.unit), value, most);
        }
        if goal.not_below_tuned
            && let Some(ratio) = to(Kind::KafkaTuned)
        {
            verdicts.push(("≥ 1 × tuned".to_owned(), ratio.high >= 1.0));
        }
        verdicts
    }
}

fn value(round: &BTreeMap<&str, &Sample>, kind: Kind, key: &str) -> Option<f64> {
    round.get(kind.name())?.figures.get(key).copied()
}

fn control_median(cell: &Cell, rounds: &[BTreeMap<&str, &Sample>]) -> Option<f64> {
    let key = cell.figures.first()?.key;
    let values: Vec<f64> = rounds
        .iter()
        .filter_map(|round| value(round, Kind::Control, key))
        .collect();
    (!values.is_empty()).then(|| median(values))
}

fn is_calm(cell: &Cell, round: &BTreeMap<&str, &Sample>, control: Option<f64>) -> bool {
    if cell.counts {
        return true;
    }
    let quiet = round.values().all(|sample| {
        sample.noise.steal <= STEAL_MAX && (cell.others_work || sample.noise.others <= OTHERS_MAX)
    });
    let of_control = cell
        .figures
        .first()
        .and_then(|figure| value(round, Kind::Control, figure.key));
    let steady = match (of_control, control) {
        (Some(value), Some(median)) => (value / median - 1.0).abs() <= CONTROL_OFF_MAX,
        _ => true,
    };
    quiet && steady
}

/// The whole page: the table, then each cell with what bounds it. `notes` has a section for each
/// cell, headed by its name.
pub fn page(samples: &[Sample], machine: &str, notes: &str) -> String {
    let sheets = Sheet::all(samples);
    let notes = sections(notes);
    let mut page = String::new();
    page += notes.get("").map_or("", |words| words);
    page += "\n\n## The table\n\n";
    page += &table(&sheets);
    page += "\n`×` is the median of ratios within rounds, with its 90 % interval (bootstrap). A round is \
             not counted when the hypervisor kept more than 5 % of the time, others had more than a \
             quarter of the machine (unless they are the load), or the control broker was more than a quarter \
             off its own median, unless noise changes nothing; with fewer than three rounds left, or more left out than counted, there is no \
             verdict and the row is of all rounds.\n\n\
             ![cost in relation to Kafka](cost.svg)\n\n![latency](latency.svg)\n\n## What bounds each cell\n";
    for sheet in &sheets {
        let cell = sheet.cell;
        let words = notes.get(cell.name).map_or("", |words| words);
        let _ = write!(page, "\n### {}\n\n{}", cell.title, counted(sheet));
        if !words.is_empty() {
            let _ = write!(page, "\n\n{words}");
        }
        page.push('\n');
    }
    let _ = write!(page, "\n## The machine\n\n```\n{}\n```\n", machine.trim());
    page
}

fn counted(sheet: &Sheet<'_>) -> String {
    let real_time = sheet
        .rounds
        .iter()
        .flat_map(BTreeMap::values)
        .all(|sample| sample.real_time);
    let priority = match (sheet.cell.real_time, real_time) {
        (true, true) => ", broker and generator at a real-time priority",
        (true, false) => ", at normal priority: another was not allowed",
        (false, _) => "",
    };
    format!(
        "`{}`: {} calm rounds, {} noisy ones{}{priority}.",
        sheet.cell.name,
        sheet.calm,
        sheet.noisy,
        if sheet.may_judge() {
            ""
        } else {
            "; too few to judge by, so that the table shows all of them"
        }
    )
}

fn table(sheets: &[Sheet<'_>]) -> String {
    let mut table = String::from(
        "| cell | figure | Barnabas | Kafka, tuned | Kafka, as shipped | control | × control | × Kafka tuned | goal |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for sheet in sheets {
        for figure in sheet.cell.figures {
            let Some(ours) = sheet.figure(Kind::Barnabas, figure.key) else {
                continue;
            };
            let of = |kind| match sheet.figure(kind, figure.key) {
                Some(estimate) => number(estimate.median),
                None => "–".to_owned(),
            };
            let to = |kind| match sheet.ratio(kind, figure.key) {
                Some(ratio) => interval(&ratio),
                None => "–".to_owned(),
            };
            let title = match figure.title {
                "" => figure.unit.to_owned(),
                title => format!("{title}, {}", figure.unit),
            };
            let _ = writeln!(
                table,
                "| {} | {title} | **{}** | {} | {} | {} | {} | {} | {} |",
                sheet.cell.title,
                number(ours.median),
                of(Kind::KafkaTuned),
                of(Kind::Kafka),
                of(Kind::Control),
                to(Kind::Control),
                to(Kind::KafkaTuned),
                verdict(sheet, figure)
            );
        }
    }
    table
}

fn verdict(sheet: &Sheet<'_>, figure: &Figure) -> String {
    let goals = sheet.judge(figure);
    if goals.is_empty() {
        return "–".to_owned();
    }
    let judged = sheet.may_judge();
    let words: Vec<String> = goals
        .into_iter()
        .map(|(words, met)| match (judged, met) {
            (false, _) => format!("{words}: no verdict"),
            (true, true) => format!("{words}: met"),
            (true, false) => format!("{words}: **missed**"),
        })
        .collect();
    words.join("; ")
}

/// Three digits that matter.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        grouped(&format!("{value:.0}"))
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Digits in groups of three.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn interval(ratio: &Estimate) -> String {
    format!(
        "{} ({}–{})",
        number(ratio.median),
        number(ratio.low),
        number(ratio.high)
    )
}

/// A Markdown file cut at its headings of the second level; what comes before stands under "".
fn sections(text: &str) -> BTreeMap<String, String> {
    let mut sections = BTreeMap::<String, String>::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            name = heading.trim().to_owned();
        } else {
            let section = sections.entry(name.clone()).or_default();
            section.push_str(line);
            section.push('\n');
        }
    }
    for section in sections.values_mut() {
        *section = section.trim().to_owned();
    }
    sections
}

/// Cells that have no samples yet.
pub fn missing(samples: &[Sample]) -> Vec<&'static str> {
    let have: BTreeSet<&str> = samples.iter().map(|sample| sample.cell.as_str()).collect();
    let names = cells::ALL.iter().map(|cell| cell.name);
    names.filter(|name| !have.contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::Noise;

    fn sample(round: u64, contestant: Kind, cost: f64, others: f64) -> Sample {
        Sample {
            cell: "produce-16k".to_owned(),
            run: 1,
            round,
            contestant: contestant.name().to_owned(),
            figures: [("s_per_gb".to_owned(), cost)].into(),
            noise: Noise {
                steal: 0.0,
                others,
                load: 1.0,
            },
            real_time: false,
        }
    }

    fn rounds(costs: &[(f64, f64, f64)]) -> Vec<Sample> {
        let mut samples = Vec::new();
        for (round, (ours, control, others)) in (1..).zip(costs) {
            samples.push(sample(round, Kind::Barnabas, *ours, *others));
            samples.push(sample(round, Kind::Control, *control, *others));
            samples.push(sample(round, Kind::KafkaTuned, 4.0, *others));
        }
        samples
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let samples = rounds(&[(1.0, 0.9, 0.0), (1.2, 1.1, 0.0), (1.1, 1.0, 0.0)]);
        let sheets = Sheet::all(&samples);
        let ratio = sheets[0].ratio(Kind::Control, "s_per_gb").unwrap();
        assert!((ratio.median - 1.1).abs() < 0.001);
        let page = page(
            &samples,
            "a machine",
            "# Head\n\n## produce-16k\nThe kernel.\n",
        );
        assert!(page.starts_with("# Head"));
        assert!(page.contains("≤ 1.3 × control: met; ≤ 0.3 × tuned: met"));
        assert!(page.contains("3 calm rounds, 0 noisy ones.\n\nThe kernel."));
    }

    #[test]
    fn a_missed_goal_is_said() {
        let samples = rounds(&[(1.5, 1.0, 0.0), (1.6, 1.0, 0.0), (1.5, 1.0, 0.0)]);
        let page = page(&samples, "", "");
        assert!(page.contains("≤ 1.3 × control: **missed**"));
    }

    #[test]
    fn noisy_rounds_give_no_verdict() {
        let busy = rounds(&[(1.0, 1.0, 0.5), (1.0, 1.0, 0.5), (1.0, 1.0, 0.0)]);
        assert_eq!(Sheet::all(&busy)[0].noisy, 2);
        assert!(page(&busy, "", "").contains("≤ 1.3 × control: no verdict"));
        let unsteady = rounds(&[(1.0, 1.0, 0.0), (1.0, 1.0, 0.0), (1.0, 2.0, 0.0)]);
        assert_eq!(Sheet::all(&unsteady)[0].noisy, 1);
    }

    #[test]
    fn numbers_have_three_digits_that_matter() {
        let numbers = [0.0123, 0.456, 7.891, 45.67, 812.4, 1_012_345.0].map(number);
        assert_eq!(
            numbers,
            ["0.012", "0.46", "7.89", "45.7", "812", "1,012,345"]
        );
    }

    #[test]
    fn cells_without_samples_are_missing() {
        let missing = missing(&rounds(&[(1.0, 1.0, 0.0)]));
        assert!(missing.contains(&"fetch-1m") && !missing.contains(&"produce-16k"));
    }
}
