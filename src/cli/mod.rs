//! Commands and flags.

mod logging;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use crate::config::markdown::markdown;
use crate::config::{BrokerConfig, properties};
use crate::os::disk::Disk;
use crate::os::limits;
use crate::server::node::Node;

/// A Kafka broker in one small binary.
///
/// Without a command and without options a single node starts on localhost:9092 and keeps its
/// data in ./barnabas-data.
#[derive(Debug, Parser)]
#[command(name = "barnabas", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts a node; an empty data folder is formatted.
    Start(Start),
    /// Prints every option as Markdown: what it does, its type, default and bounds.
    Options,
}

/// Options come from the file, then from KAFKA_* variables (KAFKA_LOG_DIRS is log.dirs), then
/// from --override; the last one counts.
#[derive(Debug, Default, Args)]
struct Start {
    /// A server.properties file, as Kafka's.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One option; may be repeated.
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = pair)]
    overrides: Vec<(String, String)>,
    /// Tells metrics to Prometheus at http://ADDRESS/metrics, as 127.0.0.1:9404.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as key=value")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Runs the command line.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let start = match cli.command {
        Some(Command::Options) => return print_options(),
        Some(Command::Start(start)) => start,
        None => Start::default(),
    };
    logging::begin();
    let config = match configuration(&start) {
        Ok(config) => config,
        Err(why) => return refuse(&why),
    };
    limits::raise_open_files();
    limits::warn_of_strict_memory();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(serve(config, start.metrics));
            runtime.shutdown_background();
            code
        }
        Err(why) => refuse(&format!("the runtime does not start: {why}")),
    }
}

fn print_options() -> ExitCode {
    // A reader that has seen enough closes the pipe.
    match std::io::stdout().write_all(markdown().as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn refuse(why: &str) -> ExitCode {
    error!("Exiting Kafka due to fatal exception: {why}");
    ExitCode::FAILURE
}

/// The options of the file, the environment and the command line.
fn configuration(start: &Start) -> Result<BrokerConfig, String> {
    let mut given = match &start.config {
        Some(path) => {
            let text = Disk
                .read(path)
                .map_err(|why| format!("{}: {why}", path.display()))?;
            properties::parse(&String::from_utf8_lossy(&text))
        }
        None => Vec::new(),
    };
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    given.extend(properties::from_environment(variables));
    given.extend(start.overrides.iter().cloned());
    if start.config.is_none() {
        given = properties::over_single_node_defaults(&given);
    }
    let (config, warnings) =
        BrokerConfig::from_properties(&given).map_err(|why| why.to_string())?;
    if !warnings.unknown.is_empty() {
        warn!("options that nobody knows: {}", warnings.unknown.join(", "));
    }
    if !warnings.without_effect.is_empty() {
        info!(
            "options without effect in this release: {}",
            warnings.without_effect.join(", ")
        );
    }
    Ok(config)
}

async fn serve(config: BrokerConfig, metrics: Option<SocketAddr>) -> ExitCode {
    let signals = signal(SignalKind::terminate())
        .and_then(|term| Ok((term, signal(SignalKind::interrupt())?)));
    let (mut term, mut interrupt) = match signals {
        Ok(signals) => signals,
        Err(why) => return refuse(&format!("signals cannot be waited for: {why}")),
    };
    let node = tokio::select! {
        started = Node::start(config, metrics) => match started {
            Ok(node) => node,
            Err(fault) => return refuse(&fault.to_string()),
        },
        _ = term.recv() => return ExitCode::SUCCESS,
        _ = interrupt.recv() => return ExitCode::SUCCESS,
    };
    let code = tokio::select! {
        _ = term.recv() => ExitCode::SUCCESS,
        _ = interrupt.recv() => ExitCode::SUCCESS,
        () = node.broken() => ExitCode::FAILURE,
    };
    node.stop().await;
    code
}
