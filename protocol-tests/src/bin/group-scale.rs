//! How long a large group is without progress; `scripts/group-scale` builds what it needs and calls
//! it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use protocol_tests::bench::measure::cpu_time;
use protocol_tests::scale::{self, Size};
use protocol_tests::{Broker, Kind};

struct Plan {
    size: Size,
    protocols: Vec<String>,
    brokers: Vec<Kind>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match plan(&arguments) {
        Ok(plan) => {
            for kind in &plan.brokers {
                for protocol in &plan.protocols {
                    measure(*kind, protocol, plan.size);
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("group-scale: {error}");
            ExitCode::from(2)
        }
    }
}

fn plan(arguments: &[String]) -> Result<Plan, String> {
    let mut plan = Plan {
        size: Size {
            members: 100,
            partitions: 1000,
            session: Duration::from_secs(10),
        },
        protocols: ["eager", "cooperative", "consumer"]
            .map(str::to_owned)
            .into(),
        brokers: vec![Kind::Barnabas],
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{value} is no number"));
        match word.as_str() {
            "--members" => plan.size.members = number()?,
            "--partitions" => plan.size.partitions = number()?,
            "--session-ms" => plan.size.session = Duration::from_millis(number()? as u64),
            "--protocols" => plan.protocols = value.split(',').map(str::to_owned).collect(),
            "--brokers" => plan.brokers = value.split(',').map(kind).collect::<Result<_, _>>()?,
            other => return Err(format!("{other} is not an option")),
        }
    }
    Ok(plan)
}

fn kind(name: &str) -> Result<Kind, String> {
    match name {
        "barnabas" => Ok(Kind::Barnabas),
        "apache-kafka" => Ok(Kind::ApacheKafka),
        other => Err(format!("{other} is neither barnabas nor apache-kafka")),
    }
}

fn measure(kind: Kind, protocol: &str, size: Size) {
    let settings = scale::settings(size);
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let broker = Broker::start_kind(kind, &settings);
    let pid = broker.process().pid();
    let cpu = || cpu_time(pid).unwrap_or_default();
    let mut before = cpu();
    scale::run(&broker, protocol, size, |seen| {
        let after = cpu();
        let spent = after.saturating_sub(before).as_millis();
        before = after;
        println!(
            "{kind:?} {protocol} {}: {}, broker CPU {spent}",
            seen.step,
            told(&seen.numbers)
        );
    });
}

fn told(numbers: &BTreeMap<String, u64>) -> String {
    let of = |name| numbers.get(name).copied().unwrap_or(0);
    format!(
        "settled after {} ms, {} partitions moved, the longest without an owner {} ms, \
         in the mean {} ms, nothing owned for {} ms, owned twice {}",
        of("settled"),
        of("moved"),
        of("longest"),
        of("mean"),
        of("stopped"),
        of("twice"),
    )
}
