//! Metrics for Prometheus, under the names that dashboards of Kafka ask for: those that the usual
//! rules of the JMX exporter make of Kafka's MBeans.
//!
//! There is no listener unless one is asked for. What is told is read when it is asked for.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use metrics::{
    Counter, Gauge, counter, describe_counter, describe_gauge, gauge, with_local_recorder,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::{debug, info, warn};

use crate::os::clock;
use crate::os::tasks::Tasks;
use crate::replica::cleaner_stats::CleanerStats;
use crate::replica::manager::Manager;

/// How many may ask at once; others wait.
const CLIENTS: usize = 8;
/// The longest head of a request.
const HEAD_BYTES: usize = 8 << 10;
/// How long a client may take for its request and for the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted.
const AGAIN: Duration = Duration::from_secs(1);

/// The parts of a node that tell of themselves.
pub(super) struct Metrics {
    replicas: Arc<Manager>,
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    cleaner: Cleaner,
}

/// A gauge or counter of each name.
struct Cleaner {
    max_dirty_percent: Gauge,
    since_last_run_ms: Gauge,
    recopy_percent: Gauge,
    buffer_utilization_percent: Gauge,
    clean_time_secs: Gauge,
    compaction_delay_secs: Gauge,
    dead_threads: Gauge,
    io_bytes: Counter,
}

const UNCLEANABLE_PARTITIONS: &str = "kafka_log_logcleanermanager_uncleanable_partitions_count";
const UNCLEANABLE_BYTES: &str = "kafka_log_logcleanermanager_uncleanable_bytes";

impl Cleaner {
    fn new() -> Self {
        let named = |name: &'static str, words: &'static str| {
            describe_gauge!(name, words);
            gauge!(name)
        };
        describe_gauge!(
            UNCLEANABLE_PARTITIONS,
            "Logs that are not compacted any more because they cannot be read"
        );
        describe_gauge!(UNCLEANABLE_BYTES, "Bytes of such logs");
        let io = "kafka_utils_throttler_cleaner_io_total";
        describe_counter!(io, "Bytes read and written by compaction");
        Self {
            max_dirty_percent: named(
                "kafka_log_logcleanermanager_max_dirty_percent",
                "Dirty share of the dirtiest log of the last round",
            ),
            since_last_run_ms: named(
                "kafka_log_logcleanermanager_time_since_last_run_ms",
                "Milliseconds since the last round; -1 before the first",
            ),
            recopy_percent: named(
                "kafka_log_logcleaner_cleaner_recopy_percent",
                "Bytes written of those that were read, in the last round",
            ),
            buffer_utilization_percent: named(
                "kafka_log_logcleaner_max_buffer_utilization_percent",
                "How full the memory for keys was, in the last round",
            ),
            clean_time_secs: named(
                "kafka_log_logcleaner_max_clean_time_secs",
                "The longest compaction of the last round",
            ),
            compaction_delay_secs: named(
                "kafka_log_logcleaner_max_compaction_delay_secs",
                "How late the latest compaction of the last round began",
            ),
            dead_threads: named(
                "kafka_log_logcleaner_deadthreadcount",
                "Compactions that ended by a defect",
            ),
            io_bytes: counter!(io),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "gauges are floating point")]
    fn set(&self, stats: &CleanerStats) {
        self.max_dirty_percent.set(stats.max_dirty_percent);
        let since = stats.since_last_run.map(|it| it.as_millis() as f64);
        self.since_last_run_ms.set(since.unwrap_or(-1.0));
        self.recopy_percent.set(stats.recopy_percent);
        self.buffer_utilization_percent
            .set(stats.buffer_utilization_percent);
        self.clean_time_secs.set(stats.clean_time.as_secs_f64());
        self.compaction_delay_secs
            .set(stats.compaction_delay.as_secs_f64());
        self.dead_threads.set(stats.dead_threads as f64);
        self.io_bytes.absolute(stats.io_bytes);
        for of in &stats.uncleanable {
            let directory = of.directory.display().to_string();
            gauge!(UNCLEANABLE_PARTITIONS, "logDirectory" => directory.clone())
                .set(of.partitions as f64);
            gauge!(UNCLEANABLE_BYTES, "logDirectory" => directory).set(of.bytes as f64);
        }
    }
}

impl Metrics {
    pub(super) fn new(replicas: Arc<Manager>) -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        let handle = recorder.handle();
        let cleaner = with_local_recorder(&recorder, Cleaner::new);
        Self {
            replicas,
            recorder,
            handle,
            cleaner,
        }
    }

    /// Everything as it stands, in Prometheus' text format.
    fn text(&self) -> String {
        let stats = self.replicas.cleaner_stats();
        with_local_recorder(&self.recorder, || self.cleaner.set(&stats));
        self.handle.render()
    }

    /// Answers whoever asks, until the group stops.
    pub(super) fn serve(self, listener: TcpListener, tasks: &Tasks) {
        let (this, stop) = (Arc::new(self), tasks.clone());
        tasks.spawn("metrics", async move {
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = this.accept(listener, &stop) => {}
            }
        });
    }

    async fn accept(self: Arc<Self>, listener: TcpListener, tasks: &Tasks) {
        let places = Arc::new(Semaphore::new(CLIENTS));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    warn!(%error, "a connection for metrics cannot be accepted");
                    clock::sleep(AGAIN).await;
                    continue;
                }
            };
            let (this, stop) = (self.clone(), tasks.clone());
            tasks.spawn("metrics-client", async move {
                let _place = place;
                let served = tokio::select! {
                    biased;
                    () = stop.stopped() => return,
                    served = tokio::time::timeout(PATIENCE, this.answer(stream, peer)) => served,
                };
                match served {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => debug!(%peer, %error, "a client of metrics is lost"),
                    Err(_) => {
                        warn!(%peer, "a client of metrics is too slow, its connection is closed")
                    }
                }
            });
        }
    }

    async fn answer(&self, mut stream: TcpStream, peer: SocketAddr) -> io::Result<()> {
        let head = read_head(&mut stream).await?;
        let (status, body) = match wanted(&head) {
            Some("/metrics") => ("200 OK", self.text()),
            Some(_) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            None => {
                warn!(%peer, "a client of metrics sends something else than a GET");
                ("400 Bad Request", "ask with GET /metrics\n".to_owned())
            }
        };
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }
}

/// Takes the address into use.
pub(super) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address).await?;
    info!("metrics are at http://{}/metrics", listener.local_addr()?);
    Ok(listener)
}

/// A request up to the empty line, or as much as may be of it.
async fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1 << 10);
    while head.len() < HEAD_BYTES && !head.windows(4).any(|at| at == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

/// The path that a GET asks for, without its query (RFC 9112, section 3).
fn wanted(head: &[u8]) -> Option<&str> {
    let end = head.windows(2).position(|at| at == b"\r\n")?;
    let line = str::from_utf8(&head[..end]).ok()?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_known = method == "GET" && version.starts_with("HTTP/1.") && words.next().is_none();
    is_known.then(|| target.split('?').next().unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_wants_something() {
        let cases = [
            ("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", Some("/metrics")),
            ("GET /metrics?name=a HTTP/1.0\r\n\r\n", Some("/metrics")),
            ("GET / HTTP/1.1\r\n\r\n", Some("/")),
            ("POST /metrics HTTP/1.1\r\n\r\n", None),
            ("GET /metrics\r\n\r\n", None),
            ("GET /metrics HTTP/1.1", None),
            ("GET  /metrics HTTP/1.1\r\n", None),
            ("", None),
        ];
        for (head, expected) in cases {
            assert_eq!(wanted(head.as_bytes()), expected, "{head:?}");
        }
        assert_eq!(wanted(b"\xff\xff /metrics HTTP/1.1\r\n"), None);
    }
}
