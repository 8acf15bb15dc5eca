//! The comparison's command line; `scripts/bench` builds what it needs and calls it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use protocol_tests::bench::cells::{self, ALL};
use protocol_tests::bench::chart;
use protocol_tests::bench::contestant::{Kind, Programs};
use protocol_tests::bench::report::{self, Sheet};
use protocol_tests::bench::rounds::{self, Plan};
use protocol_tests::load::control;

const HELP: &str = "\
bench run --out DIR [--barnabas FILE] [--cells A,B] [--contestants A,B] [--rounds N]
    measures, and adds raw rounds to the folder
bench report DIR
    makes README.md and the charts of a folder from its raw rounds and its notes.md
bench cells
    names every cell
bench control PORT DIR
    is the control broker
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["run", options @ ..] => plan(options).and_then(|plan| measure(&plan)),
        ["report", folder] => write_report(Path::new(folder)),
        ["cells"] => {
            for cell in ALL {
                println!("{:<14} {}", cell.name, cell.title);
            }
            Ok(())
        }
        ["control", port, folder] => port
            .parse()
            .map_err(io::Error::other)
            .and_then(|port| control::serve(port, Path::new(folder))),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn plan(options: &[&str]) -> io::Result<Plan> {
    let bench = std::env::current_exe()?;
    let mut plan = Plan {
        cells: ALL.iter().collect(),
        contestants: Kind::ALL.to_vec(),
        rounds: None,
        programs: Programs {
            barnabas: bench.with_file_name("barnabas"),
            bench,
        },
        out: PathBuf::new(),
    };
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let value = words
            .next()
            .ok_or_else(|| io::Error::other(format!("{word} needs a value")))?;
        match *word {
            "--out" => plan.out = value.into(),
            "--barnabas" => plan.programs.barnabas = value.into(),
            "--rounds" => plan.rounds = Some(value.parse().map_err(io::Error::other)?),
            "--cells" => plan.cells = each(value, cells::by_name)?,
            "--contestants" => plan.contestants = each(value, Kind::by_name)?,
            other => return Err(io::Error::other(format!("{other} is not an option"))),
        }
    }
    if plan.out.as_os_str().is_empty() {
        return Err(io::Error::other("--out says where the raw rounds go"));
    }
    Ok(plan)
}

fn each<T>(list: &str, find: impl Fn(&str) -> Option<T>) -> io::Result<Vec<T>> {
    list.split(',')
        .map(|name| find(name).ok_or_else(|| io::Error::other(format!("there is no {name}"))))
        .collect()
}

fn measure(plan: &Plan) -> io::Result<()> {
    fs::create_dir_all(&plan.out)?;
    fs::write(plan.out.join("machine.txt"), machine())?;
    rounds::run(plan)
}

/// What absolute figures depend on.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_once(':'));
        value.map_or_else(String::new, |(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let java = Command::new("java").arg("-version").output();
    let java = java.map_or_else(
        |_| String::new(),
        |output| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            said.lines().next().unwrap_or_default().to_owned()
        },
    );
    format!(
        "{cores} x {}\nmemory {}\nLinux {}TCP congestion control {}\n{java}\n",
        field(&read("/proc/cpuinfo"), "model name"),
        field(&read("/proc/meminfo"), "MemTotal"),
        read("/proc/sys/kernel/osrelease"),
        protocol_tests::bench::measure::congestion_control(),
    )
}

fn write_report(folder: &Path) -> io::Result<()> {
    let samples = rounds::read(folder)?;
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let page = report::page(&samples, &text("machine.txt"), &text("notes.md"));
    fs::write(folder.join("README.md"), page)?;
    let sheets = Sheet::all(&samples);
    fs::write(folder.join("cost.svg"), chart::cost(&sheets))?;
    fs::write(folder.join("latency.svg"), chart::latency(&sheets))?;
    let missing = report::missing(&samples);
    if !missing.is_empty() {
        eprintln!("without samples: {}", missing.join(", "));
    }
    Ok(())
}
