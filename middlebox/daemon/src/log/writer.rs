//! Writes the log on a thread of its own, because its reader may be slow and agents must not wait.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hol_simco::AgentId;

/// The handle of the thread that writes the log.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

/// The state that the log shares with the writing thread.
#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Lines that have not been written.
#[derive(Debug, Default)]
struct Queue {
    octets: Vec<u8>,
    /// Number of queued octets that each agent has caused.
    octets_by_agent: BTreeMap<AgentId, usize>,
    /// Number of lines dropped since the last line was queued.
    dropped: u64,
    /// Number of lines dropped since the start.
    dropped_in_all: u64,
    /// Whether the log accepts no more lines.
    is_closed: bool,
    /// Whether the writing thread has written all lines and ended.
    writer_has_ended: bool,
}

impl Writer {
    /// Maximum number of octets in the queue.
    const MAX_QUEUED_OCTETS: usize = 1 << 20;
    /// Maximum time to wait for the queue to become empty when the log is closed.
    const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

    /// Starts the thread that writes the log to `out`.
    pub fn start(mut out: Box<dyn Write + Send>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let write = move || {
            while let Some(octets) = theirs.next() {
                // A failure cannot be reported.
                let _ = out.write_all(&octets);
            }
        };
        thread::Builder::new().name("log".into()).spawn(write)?;
        Ok(Self(shared))
    }

    /// Queues a line if there is room for it. `note` returns a line that states the number of lines dropped before. An
    /// agent's queued octets may not exceed the free space, so that there is room for lines of other agents (Choudhury
    /// and Hahne 1998: dynamic queue length thresholds).
    pub fn push(&self, agent: Option<AgentId>, line: &str, note: impl FnOnce(u64) -> String) {
        let mut queue = self.0.lock();
        let share = agent.and_then(|agent| queue.octets_by_agent.get(&agent)).copied().unwrap_or(0);
        if queue.octets.len() + line.len() + share > Self::MAX_QUEUED_OCTETS {
            queue.dropped += 1;
            queue.dropped_in_all += 1;
            return;
        }
        if queue.dropped > 0 {
            let note = note(std::mem::take(&mut queue.dropped));
            queue.octets.extend_from_slice(note.as_bytes());
        }
        if let Some(agent) = agent {
            *queue.octets_by_agent.entry(agent).or_default() += line.len();
        }
        queue.octets.extend_from_slice(line.as_bytes());
        self.0.changed.notify_all();
    }

    /// Returns the number of lines dropped since the start.
    pub fn dropped_lines(&self) -> u64 {
        self.0.lock().dropped_in_all
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        self.0.changed.notify_all();
        let done =
            self.0.changed.wait_timeout_while(queue, Self::FLUSH_TIMEOUT, |queue| !queue.writer_has_ended);
        drop(done);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue contains only whole lines, even after a panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines and returns them; `None` once the log is closed and the queue is empty.
    fn next(&self) -> Option<Vec<u8>> {
        let is_idle = |queue: &mut Queue| queue.octets.is_empty() && !queue.is_closed;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let mut queue = waiting.unwrap_or_else(PoisonError::into_inner);
        if queue.octets.is_empty() {
            queue.writer_has_ended = true;
            self.changed.notify_all();
            return None;
        }
        queue.octets_by_agent.clear();
        Some(std::mem::take(&mut queue.octets))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use hol_simco::Policy;

    use super::*;

    /// The socket pair buffers somewhat more than 64 KiB; more lines than that are written.
    #[test]
    fn an_unread_log_drops_lines_and_counts_them() {
        let (mut reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        let note = |dropped| format!("lost={dropped}\n");
        (0..40_000).for_each(|_| writer.push(None, &line, note));
        let dropped_in_all = writer.dropped_lines();
        assert!(dropped_in_all > 10_000, "{dropped_in_all} lines exceed the room");
        let reading = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        while writer.0.lock().octets.len() > Writer::MAX_QUEUED_OCTETS / 2 {
            thread::yield_now();
        }
        writer.push(None, "last\n", note);
        drop(writer);
        let text = reading.join().unwrap().unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64, 40_000 - dropped_in_all);
        let told = text.lines().filter_map(|line| line.strip_prefix("lost=")?.parse::<u64>().ok());
        assert_eq!(told.sum::<u64>(), dropped_in_all);
        assert!(text.ends_with("\nlast\n"));
    }

    #[test]
    fn unread_lines_of_an_agent_leave_space_for_others() {
        let policy = Policy::of_agents(["attacker", "innocent"]).unwrap();
        let [attacker, innocent] = ["attacker", "innocent"].map(|name| policy.agent(name));
        let (_reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        let line = "x".repeat(100);
        let push = |agent| writer.push(agent, &line, |_| String::new());
        // More lines than the thread has taken and the queue can hold.
        (0..40_000).for_each(|_| push(attacker));
        let dropped_in_all = writer.dropped_lines();
        assert!(dropped_in_all > 10_000);
        (0..1000).for_each(|_| push(innocent));
        (0..100).for_each(|_| push(None));
        assert_eq!(writer.dropped_lines(), dropped_in_all, "lines of others are not dropped");
    }

    #[test]
    fn an_unread_log_does_not_delay_the_shutdown() {
        let (_reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        (0..40_000).for_each(|_| writer.push(None, &"x".repeat(100), |_| String::new()));
        drop(writer);
    }
}
