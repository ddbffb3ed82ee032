//! A command in a process group of its own: its lines as they come, what it may cost, and its end.
//!
//! No shell is involved, the environment is the one that is given, and whatever happens (an answer, the deadline, our own
//! end) the whole group is gone afterwards. A process that leaves its group is not followed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio as Pipe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use plumbline_rules::session::{StdioEnd, StdioEnding, StdioLine, StdioStream, Step};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::net::{NetError, Until};

/// How long a line may wait for its end before it counts as unterminated.
const LINE_ENDS_IN: Duration = Duration::from_secs(2);
/// Most bytes of one line.
const MOST_LINE: usize = 4 << 20;
/// Most bytes of its log that are kept; the rest is read and dropped.
const MOST_LOG: usize = 256 << 10;
/// How often its memory is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long after its end the last lines may take to arrive: a child of it may hold the pipe open.
const LAST_LINES: Duration = Duration::from_millis(500);

/// What is to be started.
pub(super) struct Start<'s> {
    pub(super) command: &'s [String],
    pub(super) env: &'s BTreeMap<String, String>,
    pub(super) folder: Option<&'s Path>,
    /// When an earlier run began, whose clock goes on.
    pub(super) since: Option<Instant>,
    pub(super) output_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) deadline: Duration,
}

/// What came of a line that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// The message that answers it.
    Answer(String),
    /// Nothing, and nothing was waited for.
    Nothing,
    /// Nothing in time.
    Silence,
    /// The process has ended, or was ended for what it cost.
    Gone,
}

/// A running command.
pub(super) struct Process {
    child: Child,
    group: Group,
    stdin: Option<ChildStdin>,
    arriving: mpsc::Receiver<Arrived>,
    lines: Vec<StdioLine>,
    began: Instant,
    deadline: Instant,
    memory_bytes: u64,
    ended: Option<ExitStatus>,
    /// Why we ended it before its time.
    overrun: Option<&'static str>,
    /// A line was written that cannot be read: the next complaint without an id is about it, not about what is asked then.
    owes_a_complaint: bool,
    _folder: Option<OwnFolder>,
}

/// The process group: gone when this is.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It may be gone already, which is all that is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// A folder that is removed when this is dropped.
struct OwnFolder(PathBuf);

impl OwnFolder {
    fn new() -> Result<OwnFolder, NetError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("plumbline-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| NetError::Machine(format!("{}: {error}", path.display())))?;
        Ok(OwnFolder(path))
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} stays: {error}", self.0.display());
        }
    }
}

/// What the readers tell.
enum Arrived {
    Line(StdioLine),
    TooMuch,
}

impl Process {
    /// Starts a command; the inner error says why it cannot be.
    ///
    /// # Errors
    /// Only when we failed.
    pub(super) fn start(start: &Start<'_>) -> Result<Result<Process, String>, NetError> {
        let Some((program, arguments)) = start.command.split_first() else {
            return Ok(Err("no command is named".to_owned()));
        };
        let own = if start.folder.is_none() { Some(OwnFolder::new()?) } else { None };
        let folder = start.folder.or(own.as_ref().map(|own| own.0.as_path()));
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(start.env).process_group(0).kill_on_drop(true);
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Ok(Err(format!("{program}: {error}"))),
        };
        let group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let began = start.since.unwrap_or_else(Instant::now);
        let (told, arriving) = mpsc::channel(256);
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            let most = usize::try_from(start.output_bytes).unwrap_or(usize::MAX);
            tokio::spawn(read_lines(stdout, StdioStream::Stdout, most, began, told.clone()));
            tokio::spawn(read_lines(stderr, StdioStream::Stderr, MOST_LOG, began, told));
        }
        let stdin = child.stdin.take();
        Ok(Ok(Process {
            child,
            group,
            stdin,
            arriving,
            lines: Vec::new(),
            began,
            deadline: began + start.deadline,
            memory_bytes: start.memory_bytes,
            ended: None,
            overrun: None,
            owes_a_complaint: false,
            _folder: own,
        }))
    }

    /// When the first run began.
    pub(super) fn began(&self) -> Instant {
        self.began
    }

    /// Whether it has ended by itself, or was ended for what it cost.
    pub(super) fn has_ended(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_some() || self.overrun.is_some()
    }

    /// Writes a line and waits for what answers it.
    pub(super) async fn ask(&mut self, step: Step, line: &str, until: &Until, patience: Duration) -> Heard {
        let deadline = (Instant::now() + patience).min(self.deadline);
        let from = self.lines.len();
        if self.has_ended() || !self.write(Some(step), line, deadline).await {
            self.take_what_is_there().await;
            return Heard::Gone;
        }
        let Until::Answer(id) = until else {
            self.owes_a_complaint |= step == Step::MalformedJson;
            return Heard::Nothing;
        };
        let mut looked_at = from;
        loop {
            while let Some(line) = self.lines.get(looked_at) {
                looked_at += 1;
                match own_message(line) {
                    Some(message) if self.owes_a_complaint && is_without_id(&message) => self.owes_a_complaint = false,
                    Some(message) if answers(&message, id) => {
                        return Heard::Answer(line.raw.clone().unwrap_or_default());
                    }
                    Some(message) => self.reply(&message, deadline).await,
                    None => {}
                }
            }
            if self.overrun.is_some() {
                return Heard::Gone;
            }
            match self.next(deadline).await {
                Came::Line => {}
                Came::Time if Instant::now() >= self.deadline => {
                    self.overrun("it took longer than one run may take");
                    return Heard::Gone;
                }
                Came::Time => return Heard::Silence,
                Came::End => {
                    self.take_what_is_there().await;
                    if looked_at == self.lines.len() {
                        return Heard::Gone;
                    }
                }
            }
        }
    }

    async fn write(&mut self, step: Option<Step>, line: &str, deadline: Instant) -> bool {
        let at_ms = elapsed_ms(self.began);
        let Some(stdin) = &mut self.stdin else { return false };
        let bytes = format!("{line}\n");
        let written = timeout_at(deadline, async {
            stdin.write_all(bytes.as_bytes()).await?;
            stdin.flush().await
        });
        let is_written = matches!(written.await, Ok(Ok(())));
        let raw = Some(line.to_owned());
        self.lines.push(StdioLine {
            at_ms,
            stream: StdioStream::Stdin,
            raw,
            raw_base64: None,
            step,
            is_unterminated: false,
            is_cut: false,
        });
        is_written
    }

    /// Answers what the server asks: `ping` as any client does, everything else as one that can do nothing.
    async fn reply(&mut self, message: &Value, deadline: Instant) {
        let Some(id) = message.get("id").filter(|_| message["method"].is_string()).cloned() else { return };
        let reply = if message["method"] == "ping" {
            json!({ "jsonrpc": "2.0", "id": id, "result": {} })
        } else {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } })
        };
        self.write(None, &reply.to_string(), deadline).await;
    }

    /// Waits for the next line, the end of the process, or the time.
    async fn next(&mut self, deadline: Instant) -> Came {
        loop {
            let look = (Instant::now() + LOOK_EVERY).min(deadline);
            tokio::select! {
                biased;
                arrived = self.arriving.recv() => return match arrived {
                    Some(Arrived::Line(line)) => { self.lines.push(line); Came::Line }
                    Some(Arrived::TooMuch) => { self.overrun("it wrote more than is read"); Came::End }
                    None => self.wait(deadline).await,
                },
                ended = self.child.wait(), if self.ended.is_none() => {
                    self.ended = ended.ok();
                    return Came::End;
                }
                () = tokio::time::sleep_until(look) => {
                    if Instant::now() >= deadline {
                        return Came::Time;
                    }
                    if self.uses_too_much().await {
                        self.overrun("it used more memory than it may");
                        return Came::End;
                    }
                }
            }
        }
    }

    /// Both streams are closed: it has ended, or says nothing more.
    async fn wait(&mut self, deadline: Instant) -> Came {
        if self.ended.is_some() {
            return Came::End;
        }
        match timeout_at(deadline, self.child.wait()).await {
            Ok(ended) => {
                self.ended = ended.ok();
                Came::End
            }
            Err(_) => Came::Time,
        }
    }

    async fn uses_too_much(&self) -> bool {
        let (Some(group), most) = (self.group.0, self.memory_bytes) else { return false };
        let look = tokio::task::spawn_blocking(move || memory_of(group.as_raw_nonzero().get()));
        look.await.is_ok_and(|used| used > most)
    }

    fn overrun(&mut self, why: &'static str) {
        self.overrun.get_or_insert(why);
        self.group.signal(Signal::KILL);
    }

    /// What was written before its end and has not arrived yet.
    async fn take_what_is_there(&mut self) {
        let deadline = Instant::now() + LAST_LINES;
        while let Ok(Some(Arrived::Line(line))) = timeout_at(deadline, self.arriving.recv()).await {
            self.lines.push(line);
        }
    }

    /// Closes its input, waits for its end, asks the group to end, and kills it in the end.
    pub(super) async fn end(mut self, end_in: Duration, term_in: Duration) -> (Vec<StdioLine>, StdioEnd) {
        let was_over = self.has_ended();
        drop(self.stdin.take());
        let mut how = if was_over { StdioEnding::Exited } else { StdioEnding::Closed };
        if self.overrun.is_none() && !self.ends_in(end_in).await {
            how = StdioEnding::Terminated;
            self.group.signal(Signal::TERM);
            if !self.ends_in(term_in).await {
                how = StdioEnding::Killed;
            }
        }
        self.group.signal(Signal::KILL);
        if self.ended.is_none() {
            self.ended = timeout(LAST_LINES, self.child.wait()).await.ok().and_then(Result::ok);
        }
        self.take_what_is_there().await;
        if self.overrun.is_some() {
            how = StdioEnding::Overrun;
        }
        let status = self.ended.map(|status| status.to_string());
        let what = self.overrun.map(str::to_owned).or(status);
        (std::mem::take(&mut self.lines), StdioEnd { at_ms: elapsed_ms(self.began), how, what, after: None })
    }

    /// Whether it ends within a time, while its lines are still read.
    async fn ends_in(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            if self.has_ended() {
                return true;
            }
            match self.next(deadline).await {
                Came::Line => {}
                Came::End => return true,
                Came::Time => return false,
            }
        }
    }
}

/// What was waited for, and came.
enum Came {
    Line,
    Time,
    End,
}

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The message in a line that the server wrote.
fn own_message(line: &StdioLine) -> Option<Value> {
    let text = line.raw.as_deref().filter(|_| line.stream == StdioStream::Stdout)?;
    serde_json::from_str(text).ok()
}

/// Whether a message answers something that has no id: a line that could not be read.
fn is_without_id(message: &Value) -> bool {
    message.get("error").is_some() && message.get("id").is_none_or(Value::is_null)
}

/// Whether a message answers the request of that id, or says that it cannot be answered.
fn answers(message: &Value, id: &Value) -> bool {
    let is_answer = message.get("result").is_some() || message.get("error").is_some();
    is_answer && message.get("id").is_none_or(|of| of == id || of.is_null())
}

/// Reads a stream line by line until it ends or has said too much. What is over the limit of a log is read and dropped.
async fn read_lines(
    mut from: impl AsyncRead + Unpin,
    stream: StdioStream,
    most: usize,
    began: Instant,
    told: mpsc::Sender<Arrived>,
) {
    let (mut rest, mut piece, mut total) = (Vec::new(), [0; 8 * 1024], 0_usize);
    loop {
        let length = match timeout(LINE_ENDS_IN, from.read(&mut piece)).await {
            Ok(Ok(length)) => length,
            Ok(Err(_)) => 0,
            Err(_) if rest.is_empty() => continue,
            Err(_) => {
                let line = line_of(std::mem::take(&mut rest), stream, began, true);
                if told.send(Arrived::Line(line)).await.is_err() {
                    return;
                }
                continue;
            }
        };
        if length == 0 {
            if !rest.is_empty() {
                let _ = told.send(Arrived::Line(line_of(rest, stream, began, true))).await;
            }
            return;
        }
        total += length;
        if total > most {
            if stream == StdioStream::Stdout {
                let _ = told.send(Arrived::TooMuch).await;
                return;
            }
            continue;
        }
        rest.extend_from_slice(&piece[..length]);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = rest.drain(..=end).collect();
            line.pop();
            if told.send(Arrived::Line(line_of(line, stream, began, false))).await.is_err() {
                return;
            }
        }
        if rest.len() > MOST_LINE {
            let _ = told.send(Arrived::TooMuch).await;
            return;
        }
    }
}

fn line_of(bytes: Vec<u8>, stream: StdioStream, began: Instant, is_unterminated: bool) -> StdioLine {
    let (raw, raw_base64) = match String::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(error) => (None, Some(BASE64.encode(error.into_bytes()))),
    };
    StdioLine { at_ms: elapsed_ms(began), stream, raw, raw_base64, step: None, is_unterminated, is_cut: false }
}

/// Bytes of memory that the processes of a group use together, as far as /proc tells.
fn memory_of(group: i32) -> u64 {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let numbered = processes.flatten().filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let stats = numbered.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter_map(|stat| memory_in(&stat, group)).sum()
}

/// The memory of a process by its line in /proc, when it is of that group.
fn memory_in(stat: &str, group: i32) -> Option<u64> {
    // The name in brackets may hold anything; group and pages are counted from behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    (fields.get(2)?.parse::<i32>().ok()? == group).then_some(())?;
    let pages: u64 = fields.get(21)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_counted_for_the_group_alone() {
        let stat = "7 (a ) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 100 2000000 250 18446744073709551615";
        assert_eq!(memory_in(stat, 42), Some(250 * rustix::param::page_size() as u64));
        assert_eq!(memory_in(stat, 43), None);
        assert_eq!(memory_in("nonsense", 42), None);
    }

    #[test]
    fn an_answer_has_the_id_of_its_question_or_none() {
        let is = |text: &str| answers(&serde_json::from_str(text).expect("JSON"), &7.into());
        assert!(is(r#"{"id": 7, "result": {}}"#) && is(r#"{"id": null, "error": {}}"#) && is(r#"{"error": {}}"#));
        assert!(!is(r#"{"id": "7", "result": {}}"#) && !is(r#"{"id": 7, "method": "ping"}"#));
    }
}
