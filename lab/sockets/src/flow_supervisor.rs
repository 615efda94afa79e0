//! Decides when a flow ends. The client's host applies the rules of the flow; the server's host reports
//! events to it.

use hol_base::{Duration, Time};
use hol_scenario::{Flow, FlowProgress, RunEnd};
use hol_workloads::{AbortReason, Progress};

use crate::peer_report::{PeerReport, ReportCallback};

/// Decides when a flow ends: by its rules on the client's host, or by reporting its events to that host.
pub(crate) enum FlowSupervisor<'p> {
    /// The client is on this host: events go to the rules of the flow.
    Rules(Flow),
    /// The client is on the other host; events are reported to that host.
    Host(Reporter<'p>),
}

/// Reports the local server to the other host, at limited intervals, because reports share the path of the
/// measured flow.
pub(crate) struct Reporter<'p> {
    send_report: ReportCallback<'p>,
    /// The next report, if there is anything to report.
    report: Option<PeerReport>,
    /// The earliest time of the next report.
    next: Time,
    run_end: Option<RunEnd>,
}

impl<'p> Reporter<'p> {
    const REPORT_INTERVAL: Duration = Duration::from_millis(200);

    /// Creates a reporter that uses `send_report`.
    pub(crate) fn new(send_report: ReportCallback<'p>) -> Self {
        Self { send_report, report: None, next: Time::ZERO, run_end: None }
    }

    fn report(&mut self) -> &mut PeerReport {
        self.report.get_or_insert_default()
    }

    fn fail(&mut self, reason: &str) {
        self.report().failed.get_or_insert(reason.to_owned());
        self.next = Time::ZERO;
    }

    fn send_due_report(&mut self, now: Time, progress: Progress) {
        if let Some(report) = self.report.take_if(|_| now >= self.next) {
            self.next = now + Self::REPORT_INTERVAL;
            (self.send_report)(PeerReport { progress, ..report });
        }
    }
}

/// The progress of the client's and of the server's application.
pub(crate) type EndsProgress = [Progress; 2];

fn flow_progress(flow: &Flow, [client, server]: EndsProgress) -> FlowProgress {
    flow.limits().combine_progress(client, server)
}

impl FlowSupervisor<'_> {
    /// Returns when every connection was open.
    pub(crate) fn connected(&self) -> Option<Time> {
        match self {
            Self::Rules(flow) => flow.connected_at(),
            Self::Host(_) => None,
        }
    }

    /// Returns why the flow has ended, if it has. The server's host only knows that the client has ended the flow.
    pub(crate) fn run_end(&self) -> Option<&RunEnd> {
        match self {
            Self::Rules(flow) => flow.run_end(),
            Self::Host(reporter) => reporter.run_end.as_ref(),
        }
    }

    /// Returns when to call [`check`](Self::check).
    pub(crate) fn deadline(&self, progress: EndsProgress) -> Time {
        match self {
            Self::Rules(flow) => flow.deadline(flow_progress(flow, progress)),
            Self::Host(Reporter { report: Some(_), next, .. }) => *next,
            Self::Host(_) => Time::MAX,
        }
    }

    /// Ends the flow if it has stalled or exceeded its time limit; sends a due report.
    pub(crate) fn check(&mut self, now: Time, progress: EndsProgress) {
        match self {
            Self::Rules(flow) => flow.check(now, flow_progress(flow, progress)),
            Self::Host(reporter) => reporter.send_due_report(now, progress[1]),
        }
    }

    /// Handles a connection request of the client.
    pub(crate) fn note_opening(&mut self) {
        self.rules().note_opening();
    }

    /// Handles the opening of a connection of the client.
    pub(crate) fn note_opened(&mut self, now: Time) {
        self.rules().note_opened(now);
    }

    /// Handles the sending of a message of the client.
    pub(crate) fn note_sending(&mut self, now: Time, progress: EndsProgress) {
        let flow = self.rules();
        flow.note_sending(now, flow_progress(flow, progress));
    }

    /// Handles a connection that the server has accepted.
    pub(crate) fn note_accepted(&mut self, now: Time) {
        match self {
            Self::Rules(flow) => flow.note_accepted(now),
            Self::Host(reporter) => reporter.report().accepted = true,
        }
    }

    /// Handles the delivery of a message.
    pub(crate) fn note_delivery(&mut self, now: Time, progress: EndsProgress) {
        match self {
            Self::Rules(flow) => flow.note_delivery(now, flow_progress(flow, progress)),
            Self::Host(reporter) => reporter.report().delivered = true,
        }
    }

    /// Handles the abort by an application.
    pub(crate) fn end_with_abort(&mut self, now: Time, quit: AbortReason) {
        match (self, quit) {
            (Self::Rules(flow), _) => flow.end_with_abort(now, quit),
            (Self::Host(reporter), AbortReason::Connection(reason) | AbortReason::InvalidData(reason)) => {
                reporter.fail(reason);
            }
            (Self::Host(_), AbortReason::BehindSchedule { .. }) => unreachable!("a server has no schedule"),
        }
    }

    /// Handles the failure of a connection.
    pub(crate) fn end_with_failure(&mut self, reason: &'static str) {
        match self {
            Self::Rules(flow) => flow.end_with_failure(reason),
            Self::Host(reporter) => reporter.fail(reason),
        }
    }

    /// Handles a report of the other host, whose application has the progress in `progress`.
    pub(crate) fn note_peer_report(&mut self, now: Time, report: PeerReport, progress: EndsProgress) {
        let flow = self.rules();
        if report.accepted {
            flow.note_accepted(now);
        }
        if report.delivered {
            flow.note_delivery(now, flow_progress(flow, progress));
        }
        if let Some(reason) = report.failed {
            flow.end_with_failure(reason);
        }
    }

    /// Ends the flow normally.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Rules(flow) => flow.end(),
            Self::Host(reporter) => drop(reporter.run_end.get_or_insert(RunEnd::Finished)),
        }
    }

    fn rules(&mut self) -> &mut Flow {
        match self {
            Self::Rules(flow) => flow,
            Self::Host(_) => unreachable!("the rules are on the client's host"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn progress(messages_done: u64) -> EndsProgress {
        [Progress::default(), Progress { messages_done, ..Progress::default() }]
    }

    #[test]
    fn the_first_report_is_immediate_and_later_ones_wait_for_the_interval() {
        let (sender, reports) = channel();
        let mut supervisor =
            FlowSupervisor::Host(Reporter::new(Box::new(move |report| sender.send(report).unwrap())));
        let at = Time::from_millis;
        assert_eq!(supervisor.deadline(progress(0)), Time::MAX);
        supervisor.note_accepted(at(1));
        assert_eq!(supervisor.deadline(progress(0)), Time::ZERO);
        supervisor.check(at(1), progress(0));
        let first = reports.try_recv().unwrap();
        assert!(first.accepted && !first.delivered && first.failed.is_none());
        supervisor.note_delivery(at(2), progress(1));
        supervisor.check(at(2), progress(1));
        assert!(reports.try_recv().is_err(), "the last report was 1 ms ago");
        assert_eq!(supervisor.deadline(progress(1)), at(201));
        supervisor.check(at(201), progress(7));
        let second = reports.try_recv().unwrap();
        assert!(second.delivered && !second.accepted && second.progress.messages_done == 7);
        supervisor.end_with_abort(at(202), AbortReason::InvalidData("no number"));
        supervisor.check(at(202), progress(7));
        assert_eq!(reports.try_recv().unwrap().failed.as_deref(), Some("no number"));
        assert_eq!(supervisor.run_end(), None, "the client's host decides that");
        supervisor.end();
        assert_eq!(supervisor.run_end(), Some(&RunEnd::Finished));
    }
}
