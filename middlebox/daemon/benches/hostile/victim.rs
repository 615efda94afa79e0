//! An innocent agent: it adds or deletes a rule twenty times a second.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use hol_agent::{Server, Session, SessionError, nonces};
use hol_base::Duration;
use hol_simco::{Lifetime, Location, Pid, Reply, Request, SharedSecret};

use crate::peer::{SECRETS, enable, now, sleep, tuple};
use crate::server::ThreadTimes;

const PERIOD: Duration = Duration::from_millis(50);

/// An agent that sends requests during an attack, and whose response times are measured.
pub struct Victim {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Times>,
}

/// The measured times of an agent's requests, each list sorted.
pub struct Times {
    /// Response times, from when a request was due.
    spans: Vec<Duration>,
    /// Response times without the time for which the daemon waited for a processor, which other load on the machine
    /// causes.
    own: Vec<Duration>,
    /// Processor time that the daemon needs per request.
    processor: Vec<Duration>,
    /// Number of refused requests.
    refused: usize,
}

impl Victim {
    pub fn start(server: &Server, clocks: impl Fn() -> ThreadTimes + Send + 'static) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let secret = SharedSecret::parse("innocent", SECRETS, nonces()).expect("the agent has a secret");
        let mut session = Session::open(server, Box::new(secret)).expect("the daemon serves it");
        let thread = thread::spawn(move || ask(&mut session, &until, &clocks));
        Self { is_over, thread }
    }

    pub fn stop(self) -> Times {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("every request is answered")
    }
}

fn ask(session: &mut Session, is_over: &AtomicBool, clocks: &dyn Fn() -> ThreadTimes) -> Times {
    let (mut processor, mut own) = (Vec::new(), Vec::new());
    let (mut spans, mut refused, mut due, mut held) = (Vec::new(), 0, now(), None::<Pid>);
    while spans.is_empty() || !is_over.load(Ordering::Relaxed) {
        sleep(due.saturating_since(now()));
        let (before, mine, asked) = (clocks(), ThreadTimes::of_agent_threads(), now());
        let answer = session.ask(match held {
            Some(pid) => Request::Plc { pid, lifetime: Lifetime(0) },
            None => enable(
                Lifetime(3600),
                tuple(Location::Internal, ([172, 16, 0, 1], 5004), 2),
                tuple(Location::External, ([192, 0, 2, 77], 0), 1),
            ),
        });
        held = match answer {
            Ok(Reply::Per(rule)) => Some(rule.pid),
            Ok(_) => None,
            Err(SessionError::Refused(_)) => {
                refused += 1;
                None
            }
            Err(error) => panic!("{error}"),
        };
        let (after, passed) = (clocks(), now().since(asked));
        let used = after.processor.saturating_sub(before.processor);
        processor.push(used);
        let waited = after.delay.saturating_sub(before.delay)
            + ThreadTimes::of_agent_threads().delay.saturating_sub(mine.delay);
        // A long wait counts as many late answers, one for each request that would have become due. Both
        // processes may have waited at the same time.
        let mut late = passed.saturating_sub(waited).max(used);
        own.push(late);
        while late > PERIOD {
            late = late.saturating_sub(PERIOD);
            own.push(late);
        }
        spans.push(now().since(due));
        due += PERIOD;
    }
    // Requests that became due while an answer was late.
    while due < now() {
        spans.push(now().since(due));
        due += PERIOD;
    }
    spans.sort_unstable();
    processor.sort_unstable();
    own.sort_unstable();
    Times { spans, own, processor, refused }
}

impl Times {
    /// Returns the 99th percentile of the response times without waits for a processor.
    pub fn p99(&self) -> Duration {
        quantile(&self.own, 0.99)
    }
}

fn quantile(spans: &[Duration], share: f64) -> Duration {
    spans[((spans.len() - 1) as f64 * share) as usize]
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |span: Duration| span.as_nanos() as f64 / 1e6;
        let [median, p99, longest] = [0.5, 0.99, 1.0].map(|share| millis(quantile(&self.spans, share)));
        let (own, longest_own) = (millis(self.p99()), millis(quantile(&self.own, 1.0)));
        let (processor, count) = (millis(quantile(&self.processor, 0.99)), self.spans.len());
        write!(
            f,
            "{count} of them, {} refused, median {median:.1} ms, p99 {p99:.1} ms, longest {longest:.1} ms; without waits \
             for a processor p99 {own:.1} ms, longest {longest_own:.1} ms; of a processor's time p99 {processor:.1} ms",
            self.refused
        )
    }
}
