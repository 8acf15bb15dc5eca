//! Groups that commit their offsets.

use std::io;
use std::time::Duration;

use super::{Cell, Figure, Goal, Life, Taken, with_cpu};
use crate::bench::contestant::{Contestant, Kind};
use crate::load::commits::{Groups, Rhythm};

pub(super) const COMMITS: Cell = Cell {
    name: "commits",
    title: "1,000 groups, each a member of the classic protocol that commits once a second",
    figures: &[
        Figure {
            key: "us_per_commit",
            title: "broker CPU",
            unit: "µs per commit",
            goal: Goal::most(8.0),
        },
        Figure {
            key: "us_at_once",
            title: "broker CPU when all commit at once",
            unit: "µs per commit",
            goal: Goal::most(8.0),
        },
        Figure {
            key: "p50",
            title: "p50",
            unit: "µs",
            goal: Goal::NONE,
        },
        Figure {
            key: "p99",
            title: "p99",
            unit: "µs",
            goal: Goal::NONE,
        },
    ],
    life: Life::Shared,
    real_time: true,
    daily: 3,
    counts: false,
    others_work: false,
    // It keeps no groups.
    without: &[Kind::Control],
    run: sample,
};

const GROUPS: usize = 1000;

/// How often each commits, the first time included, which warms up.
const TIMES: u32 = 6;

/// How often all commit at once.
const AT_ONCE: u32 = 100;

fn sample(contestant: &mut Contestant) -> io::Result<Taken> {
    let (topic, _) = contestant.new_topic(1)?;
    let mut groups = Groups::join(contestant.port, GROUPS, &topic)?;
    let rhythm = Rhythm {
        times: TIMES,
        interval: Duration::from_secs(1),
    };
    let (cpu, latencies) = with_cpu(contestant, || groups.commit(rhythm))?;
    let (at_once, ()) = with_cpu(contestant, || groups.commit_at_once(AT_ONCE))?;
    groups.leave()?;
    contestant.delete_topic(&topic)?;
    let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
    let commits = GROUPS as f64 * f64::from(TIMES);
    Ok(Taken {
        cpu,
        figures: vec![
            ("p50", at(0.5)),
            ("p99", at(0.99)),
            ("p999", at(0.999)),
            ("max", latencies.max() as f64 / 1e3),
            ("us_per_commit", cpu.as_secs_f64() * 1e6 / commits),
            (
                "us_at_once",
                at_once.as_secs_f64() * 1e6 / (GROUPS as f64 * f64::from(AT_ONCE)),
            ),
        ],
    })
}
