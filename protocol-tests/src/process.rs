//! Other programs: started, watched line by line, ended, and never left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A program that runs beside the test; what it says can be waited for. Killed when dropped.
pub struct Running {
    name: String,
    pid: Pid,
    started: Instant,
    stdin: Option<ChildStdin>,
    said: Arc<Said>,
}

/// What a program has said so far and whether it has ended.
#[derive(Default)]
struct Said {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// Standard output and standard error, as the lines came.
    lines: Vec<String>,
    open_streams: usize,
    exit: Option<ExitStatus>,
}

impl Said {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.news.notify_all();
    }

    /// Waits until `look` finds something, or `limit` has passed.
    fn wait<T>(&self, limit: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            let left = end.checked_duration_since(Instant::now())?;
            state = self
                .news
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Running {
    pub fn start(name: &str, command: &mut Command) -> Self {
        let started = Instant::now();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start ({command:?}): {error}"));
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid is positive"));
        let said = Arc::new(Said::default());
        said.change(|state| state.open_streams = 2);
        follow(child.stdout.take().expect("it is piped"), &said);
        follow(child.stderr.take().expect("it is piped"), &said);
        let stdin = child.stdin.take();
        let watcher = Arc::clone(&said);
        thread::spawn(move || {
            let exit = child.wait().expect("a child can be waited for");
            watcher.change(|state| state.exit = Some(exit));
        });
        Self {
            name: name.to_owned(),
            pid,
            started,
            stdin,
            said,
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// The moment just before the program was spawned.
    pub fn started(&self) -> Instant {
        self.started
    }

    pub fn exit(&self) -> Option<ExitStatus> {
        self.said
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .exit
    }

    /// Everything said so far.
    pub fn lines(&self) -> Vec<String> {
        self.said
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .lines
            .clone()
    }

    /// Waits for the first line, at or after number `from`, that `wanted` takes; returns it.
    #[track_caller]
    pub fn wait_for_line(
        &self,
        from: usize,
        mut wanted: impl FnMut(&str) -> bool,
        limit: Duration,
    ) -> String {
        let mut next = from;
        let found = self.said.wait(limit, |state| {
            for line in state.lines.iter().skip(next) {
                next += 1;
                if wanted(line) {
                    return Some(Some(line.clone()));
                }
            }
            (state.exit.is_some() && state.open_streams == 0).then_some(None)
        });
        match found {
            Some(Some(line)) => line,
            Some(None) => panic!(
                "{} ended ({:?}) without the line; it said:\n{}",
                self.name,
                self.exit(),
                self.story()
            ),
            None => panic!(
                "{} did not say the line in {limit:?}; it said:\n{}",
                self.name,
                self.story()
            ),
        }
    }

    /// Waits until the program has ended and all it said was read.
    #[track_caller]
    pub fn wait_exit(&self, limit: Duration) -> ExitStatus {
        self.said
            .wait(limit, |state| {
                if state.open_streams == 0 {
                    state.exit
                } else {
                    None
                }
            })
            .unwrap_or_else(|| {
                panic!(
                    "{} did not end in {limit:?}; it said:\n{}",
                    self.name,
                    self.story()
                )
            })
    }

    /// Sends a signal, unless the program has ended already.
    pub fn signal(&self, signal: Signal) {
        if self.exit().is_none() {
            // It may end in this moment; then there is nobody to tell.
            let _ = kill(self.pid, signal);
        }
    }

    /// Gives the program a line on its standard input.
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("its standard input is open");
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .unwrap_or_else(|error| {
                panic!("{} does not listen: {error}", self.name);
            });
    }

    /// The last lines, for the message of a failure.
    pub fn story(&self) -> String {
        let lines = self.lines();
        let kept = lines.len().saturating_sub(60);
        lines[kept..].join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        let _ = self.said.wait(Duration::from_secs(10), |state| state.exit);
    }
}

fn follow(stream: impl Read + Send + 'static, said: &Arc<Said>) {
    let said = Arc::clone(said);
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while let Ok(1..) = stream.read_until(b'\n', &mut line) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']).to_owned();
            line.clear();
            said.change(|state| state.lines.push(text));
        }
        said.change(|state| state.open_streams -= 1);
    });
}

/// What a finished program left.
pub struct Output {
    pub name: String,
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Output {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    #[track_caller]
    pub fn expect_success(self) -> Self {
        assert!(
            self.status.success(),
            "{} ended with {}\nstandard error: {}\nstandard output: {}",
            self.name,
            self.status,
            self.stderr,
            self.text().chars().take(4000).collect::<String>()
        );
        self
    }
}

/// Runs a program to its end, with `input` on its standard input; killed and failed at the limit.
#[track_caller]
pub fn run(name: &str, command: &mut Command, input: &[u8], limit: Duration) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name} does not start ({command:?}): {error}"));
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a pid is positive"));
    let mut stdin = child.stdin.take().expect("it is piped");
    let stdout = swallow(child.stdout.take().expect("it is piped"));
    let stderr = swallow(child.stderr.take().expect("it is piped"));
    let status = thread::scope(|scope| {
        scope.spawn(move || {
            // A program may end without reading it all; its exit says whether that was right.
            let _ = stdin.write_all(input);
        });
        wait_or_kill(&mut child, pid, limit)
    });
    let output = Output {
        name: name.to_owned(),
        status: status.0,
        stdout: stdout.join().expect("the reader does not panic"),
        stderr: String::from_utf8_lossy(&stderr.join().expect("the reader does not panic"))
            .into_owned(),
    };
    assert!(
        !status.1,
        "{name} did not end in {limit:?} ({command:?})\nstandard error: {}\nstandard output: {}",
        output.stderr,
        output.text().chars().take(4000).collect::<String>()
    );
    output
}

fn swallow(mut stream: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        all
    })
}

/// The exit, and whether it had to be forced.
fn wait_or_kill(child: &mut Child, pid: Pid, limit: Duration) -> (ExitStatus, bool) {
    let done = Said::default();
    thread::scope(|scope| {
        let guard = scope.spawn(|| {
            let in_time = done.wait(limit, |state| state.exit).is_some();
            if !in_time {
                let _ = kill(pid, Signal::SIGKILL);
            }
            !in_time
        });
        let exit = child.wait().expect("a child can be waited for");
        done.change(|state| state.exit = Some(exit));
        (exit, guard.join().expect("the guard does not panic"))
    })
}
