//! Progress reports between the two ends of a flow that run on different hosts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fmt, io};

use hol_base::Time;
use hol_workloads::{Application, Input, Ledger, Output, Progress};
use serde::{Deserialize, Serialize};

use crate::WakeSignal;

/// A report that the server's host sends to the client's host during a flow. The client needs it to decide when the
/// flow ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerReport {
    /// Progress of the server's application.
    #[serde(rename = "standing")]
    pub progress: Progress,
    /// Whether the server has accepted a connection since the last report.
    pub accepted: bool,
    /// Whether something was delivered to the server since the last report.
    pub delivered: bool,
    /// Why the server's connection failed, in the terms of the RFC; `None` if it has not failed.
    pub failed: Option<String>,
}

/// A function that sends reports to the other host.
pub type ReportCallback<'t> = Box<dyn FnMut(PeerReport) + Send + 't>;

/// Receives reports from the other host for the local end of a flow.
#[derive(Debug)]
pub struct ReportReceiver {
    pub(crate) wake_signal: WakeSignal,
    reports: Receiver<PeerReport>,
}

/// Sends reports to a [`ReportReceiver`] from another thread.
pub struct ReportSender {
    reports: Sender<PeerReport>,
    wake: Box<dyn Fn() + Send>,
}

impl ReportReceiver {
    /// Creates a receiver and the sender that is connected to it.
    pub fn new() -> io::Result<(Self, ReportSender)> {
        let (wake_signal, (sender, reports)) = (WakeSignal::new()?, channel());
        let report_sender = ReportSender { reports: sender, wake: wake_signal.waker() };
        Ok((Self { wake_signal, reports }, report_sender))
    }

    /// Returns the reports received since the last call.
    pub(crate) fn take(&self) -> Vec<PeerReport> {
        self.wake_signal.clear();
        self.reports.try_iter().collect()
    }
}

impl ReportSender {
    /// Sends a report; after the end of the flow the report is discarded.
    pub fn send(&self, report: PeerReport) {
        if self.reports.send(report).is_ok() {
            (self.wake)();
        }
    }
}

impl fmt::Debug for ReportSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReportSender")
    }
}

/// A placeholder for the application on the other host, with the progress that that host has reported.
#[derive(Debug, Default)]
pub(crate) struct RemoteApplication {
    pub(crate) progress: Rc<Cell<Progress>>,
    ledger: Ledger,
}

impl Application for RemoteApplication {
    fn handle(&mut self, _: Time, input: Input) {
        unreachable!("an application on another host gets no input: {input:?}");
    }

    fn poll(&mut self, _: Time) -> Output {
        Output::Wait(Time::MAX)
    }

    fn progress(&self) -> Progress {
        self.progress.get()
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn end(&mut self, _: Time) -> bool {
        true
    }
}
