//! Writes the log on a thread of its own: whoever reads it may be slow, and agents must not wait for that.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use hol_simco::AgentId;

/// Lines that wait for the thread.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    octets: Vec<u8>,
    /// Octets of each agent's among them.
    shares: BTreeMap<AgentId, usize>,
    /// Lines left out since the last one that waits.
    left_out: u64,
    /// Lines left out in all.
    lost: u64,
    is_closed: bool,
    is_done: bool,
}

impl Writer {
    /// Maximum octets that wait.
    const MOST: usize = 1 << 20;
    /// How long to wait at the end until everything is written.
    const FAREWELL: Duration = Duration::from_secs(1);

    /// Starts the thread.
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

    /// Queues a line, if there is room. `note` returns the line that tells how many before it are missing. Of an agent at most
    /// as much waits as there is room for, so that others find some (Choudhury and Hahne 1998: dynamic queue length thresholds).
    pub fn push(&self, agent: Option<AgentId>, line: &str, note: impl FnOnce(u64) -> String) {
        let mut queue = self.0.lock();
        let share = agent.and_then(|agent| queue.shares.get(&agent)).copied().unwrap_or(0);
        if queue.octets.len() + line.len() + share > Self::MOST {
            queue.left_out += 1;
            queue.lost += 1;
            return;
        }
        if queue.left_out > 0 {
            let note = note(std::mem::take(&mut queue.left_out));
            queue.octets.extend_from_slice(note.as_bytes());
        }
        if let Some(agent) = agent {
            *queue.shares.entry(agent).or_default() += line.len();
        }
        queue.octets.extend_from_slice(line.as_bytes());
        self.0.changed.notify_all();
    }

    /// Returns the number of lines that were left out.
    pub fn lost(&self) -> u64 {
        self.0.lock().lost
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.is_closed = true;
        self.0.changed.notify_all();
        let done = self.0.changed.wait_timeout_while(queue, Self::FAREWELL, |queue| !queue.is_done);
        drop(done);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Whole lines are added at once.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for lines; `None` at the end.
    fn next(&self) -> Option<Vec<u8>> {
        let is_idle = |queue: &mut Queue| queue.octets.is_empty() && !queue.is_closed;
        let waiting = self.changed.wait_while(self.lock(), is_idle);
        let mut queue = waiting.unwrap_or_else(PoisonError::into_inner);
        if queue.octets.is_empty() {
            queue.is_done = true;
            self.changed.notify_all();
            return None;
        }
        queue.shares.clear();
        Some(std::mem::take(&mut queue.octets))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use hol_simco::Policy;

    use super::*;

    /// A pipe takes 64 KiB, this socket somewhat more.
    #[test]
    fn a_log_that_nobody_reads_loses_lines_and_says_how_many() {
        let (mut reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        let line = format!("{}\n", "x".repeat(99));
        let note = |lost| format!("lost={lost}\n");
        (0..40_000).for_each(|_| writer.push(None, &line, note));
        let lost = writer.lost();
        assert!(lost > 10_000, "{lost} lines are more than there is room for");
        let reading = thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        while writer.0.lock().octets.len() > Writer::MOST / 2 {
            thread::yield_now();
        }
        writer.push(None, "last\n", note);
        drop(writer);
        let text = reading.join().unwrap().unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64, 40_000 - lost);
        let told = text.lines().filter_map(|line| line.strip_prefix("lost=")?.parse::<u64>().ok());
        assert_eq!(told.sum::<u64>(), lost);
        assert!(text.ends_with("\nlast\n"));
    }

    #[test]
    fn an_agent_whose_lines_wait_leaves_room_for_those_of_others() {
        let policy = Policy::of_agents(["attacker", "innocent"]).unwrap();
        let [attacker, innocent] = ["attacker", "innocent"].map(|name| policy.agent(name));
        let (_reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        let line = "x".repeat(100);
        let push = |agent| writer.push(agent, &line, |_| String::new());
        // More than the thread has taken, and than may wait.
        (0..40_000).for_each(|_| push(attacker));
        let lost = writer.lost();
        assert!(lost > 10_000);
        (0..1000).for_each(|_| push(innocent));
        (0..100).for_each(|_| push(None));
        assert_eq!(writer.lost(), lost, "nothing of others is left out");
    }

    #[test]
    fn a_log_that_nobody_reads_does_not_hold_up_the_end() {
        let (_reader, out) = UnixStream::pair().unwrap();
        let writer = Writer::start(Box::new(out)).unwrap();
        (0..40_000).for_each(|_| writer.push(None, &"x".repeat(100), |_| String::new()));
        drop(writer);
    }
}
