//! The log on standard output, in the shape of Kafka's: `[time] LEVEL message (logger)`.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::os::log_levels;

/// Begins to log. `BARNABAS_LOG` chooses what, as `debug` or `info,barnabas::net=debug`.
pub(crate) fn begin() {
    // openraft tells of every election and append.
    let chosen = std::env::var("BARNABAS_LOG").unwrap_or_default();
    let chosen = match EnvFilter::try_new(&chosen) {
        Ok(_) if !chosen.is_empty() => chosen,
        Ok(_) | Err(_) => "info,openraft=error".to_owned(),
    };
    let format = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(&chosen))
        .with_ansi(false)
        .event_format(Line)
        .with_filter_reloading();
    let handle = format.reload_handle();
    // Only fails when a log was begun before; there is one call.
    let _ = format.try_init();
    log_levels::begin(&chosen, move |filter| {
        // The log ends with the process; until then its filter can be replaced.
        let _ = handle.reload(filter);
    });
}

struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        out.write_char('[')?;
        SystemTime.format_time(&mut out)?;
        let meta = event.metadata();
        write!(out, "] {} ", meta.level())?;
        context.format_fields(out.by_ref(), event)?;
        writeln!(out, " ({})", meta.target())
    }
}
