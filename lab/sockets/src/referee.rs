//! Decides when a flow ends: the rules of the flow, on the client's host; the server's host reports to them.

use hol_base::{Duration, Time};
use hol_scenario::{Flow, FlowProgress, RunEnd};
use hol_workloads::{AbortReason, Progress};

use crate::peer_report::{PeerReport, ReportCallback};

/// Where the events of a flow are reported: to its rules, or to the other host.
pub(crate) enum Referee<'p> {
    /// To the local rules.
    Rules(Flow),
    /// To the host that has them.
    Host(Reporter<'p>),
}

/// Reports the local server to the other host, at limited intervals, because reports share the path of the
/// measured flow.
pub(crate) struct Reporter<'p> {
    tell: ReportCallback<'p>,
    /// The news to report, if any.
    news: Option<PeerReport>,
    /// The earliest time of the next report.
    next: Time,
    stopped: Option<RunEnd>,
}

impl<'p> Reporter<'p> {
    const INTERVAL: Duration = Duration::from_millis(200);

    /// Creates a reporter that uses `tell`.
    pub(crate) fn new(tell: ReportCallback<'p>) -> Self {
        Self { tell, news: None, next: Time::ZERO, stopped: None }
    }

    fn news(&mut self) -> &mut PeerReport {
        self.news.get_or_insert_default()
    }

    fn fail(&mut self, reason: &str) {
        self.news().failed.get_or_insert(reason.to_owned());
        self.next = Time::ZERO;
    }

    fn tell(&mut self, now: Time, standing: Progress) {
        if let Some(news) = self.news.take_if(|_| now >= self.next) {
            self.next = now + Self::INTERVAL;
            (self.tell)(PeerReport { standing, ..news });
        }
    }
}

/// The progress of the client's and of the server's application.
pub(crate) type Standings = [Progress; 2];

fn tally(flow: &Flow, [client, server]: Standings) -> FlowProgress {
    flow.limits().tally(client, server)
}

impl Referee<'_> {
    /// Returns when every connection was open.
    pub(crate) fn connected(&self) -> Option<Time> {
        match self {
            Self::Rules(flow) => flow.connected(),
            Self::Host(_) => None,
        }
    }

    /// Returns why the flow ended, once it has; on the server's host, that it was told to end.
    pub(crate) fn stopped(&self) -> Option<&RunEnd> {
        match self {
            Self::Rules(flow) => flow.stopped(),
            Self::Host(reporter) => reporter.stopped.as_ref(),
        }
    }

    /// Returns when to call [`check`](Self::check).
    pub(crate) fn deadline(&self, standings: Standings) -> Time {
        match self {
            Self::Rules(flow) => flow.deadline(tally(flow, standings)),
            Self::Host(Reporter { news: Some(_), next, .. }) => *next,
            Self::Host(_) => Time::MAX,
        }
    }

    /// Ends the flow if it has stalled or its time is up.
    pub(crate) fn check(&mut self, now: Time, standings: Standings) {
        match self {
            Self::Rules(flow) => flow.check(now, tally(flow, standings)),
            Self::Host(reporter) => reporter.tell(now, standings[1]),
        }
    }

    /// Notes that the client requests a connection.
    pub(crate) fn note_opening(&mut self) {
        self.rules().note_opening();
    }

    /// Notes that a connection of the client is open.
    pub(crate) fn note_opened(&mut self, now: Time) {
        self.rules().note_opened(now);
    }

    /// Notes that the client sends a message.
    pub(crate) fn note_sending(&mut self, now: Time, standings: Standings) {
        let flow = self.rules();
        flow.note_sending(now, tally(flow, standings));
    }

    /// Notes that the server has accepted a connection.
    pub(crate) fn note_accepted(&mut self, now: Time) {
        match self {
            Self::Rules(flow) => flow.note_accepted(now),
            Self::Host(reporter) => reporter.news().accepted = true,
        }
    }

    /// Notes a delivery.
    pub(crate) fn note_delivery(&mut self, now: Time, standings: Standings) {
        match self {
            Self::Rules(flow) => flow.note_delivery(now, tally(flow, standings)),
            Self::Host(reporter) => reporter.news().delivered = true,
        }
    }

    /// Notes that an application gives up.
    pub(crate) fn note_quit(&mut self, now: Time, quit: AbortReason) {
        match (self, quit) {
            (Self::Rules(flow), _) => flow.note_quit(now, quit),
            (Self::Host(reporter), AbortReason::Connection(reason) | AbortReason::Nonsense(reason)) => {
                reporter.fail(reason);
            }
            (Self::Host(_), AbortReason::BehindSchedule { .. }) => unreachable!("a server has no schedule"),
        }
    }

    /// Notes that a connection failed.
    pub(crate) fn note_failure(&mut self, reason: &'static str) {
        match self {
            Self::Rules(flow) => flow.note_failure(reason),
            Self::Host(reporter) => reporter.fail(reason),
        }
    }

    /// Handles a report of the other host, whose application has the progress in `standings`.
    pub(crate) fn note_news(&mut self, now: Time, news: PeerReport, standings: Standings) {
        let flow = self.rules();
        if news.accepted {
            flow.note_accepted(now);
        }
        if news.delivered {
            flow.note_delivery(now, tally(flow, standings));
        }
        if let Some(reason) = news.failed {
            flow.note_failure(reason);
        }
    }

    /// Ends the flow.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Rules(flow) => flow.end(),
            Self::Host(reporter) => drop(reporter.stopped.get_or_insert(RunEnd::Finished)),
        }
    }

    fn rules(&mut self) -> &mut Flow {
        match self {
            Self::Rules(flow) => flow,
            Self::Host(_) => unreachable!("the rules are where the client is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn standing(done: u64) -> Standings {
        [Progress::default(), Progress { done, ..Progress::default() }]
    }

    #[test]
    fn what_happens_is_told_at_once_and_then_not_before_its_time() {
        let (sender, told) = channel();
        let mut referee = Referee::Host(Reporter::new(Box::new(move |news| sender.send(news).unwrap())));
        let at = Time::from_millis;
        assert_eq!(referee.deadline(standing(0)), Time::MAX);
        referee.note_accepted(at(1));
        assert_eq!(referee.deadline(standing(0)), Time::ZERO);
        referee.check(at(1), standing(0));
        let first = told.try_recv().unwrap();
        assert!(first.accepted && !first.delivered && first.failed.is_none());
        referee.note_delivery(at(2), standing(1));
        referee.check(at(2), standing(1));
        assert!(told.try_recv().is_err(), "it was told 1 ms ago");
        assert_eq!(referee.deadline(standing(1)), at(201));
        referee.check(at(201), standing(7));
        let second = told.try_recv().unwrap();
        assert!(second.delivered && !second.accepted && second.standing.done == 7);
        referee.note_quit(at(202), AbortReason::Nonsense("no number"));
        referee.check(at(202), standing(7));
        assert_eq!(told.try_recv().unwrap().failed.as_deref(), Some("no number"));
        assert_eq!(referee.stopped(), None, "that is decided elsewhere");
        referee.end();
        assert_eq!(referee.stopped(), Some(&RunEnd::Finished));
    }
}
