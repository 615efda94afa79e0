//! Progress reports between the two ends of a flow that run on different hosts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fmt, io};

use hol_base::Time;
use hol_workloads::{Application, Input, Ledger, Output, Progress};
use serde::{Deserialize, Serialize};

use crate::WakeSignal;

/// What a server's host reports to the client's host during a flow, as needed to decide when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerReport {
    /// Progress of the server's application.
    pub standing: Progress,
    /// Whether the server has accepted a connection since the last report.
    pub accepted: bool,
    /// Whether something was delivered to the server since the last report.
    pub delivered: bool,
    /// Why the server cannot continue, in terms of the RFC.
    pub failed: Option<String>,
}

/// A function that sends reports to the other host.
pub type ReportCallback<'t> = Box<dyn FnMut(PeerReport) + Send + 't>;

/// The receiver of reports from the other host, for the local end.
#[derive(Debug)]
pub struct ReportReceiver {
    pub(crate) bell: WakeSignal,
    letters: Receiver<PeerReport>,
}

/// The sender of reports from another thread.
pub struct ReportSender {
    letters: Sender<PeerReport>,
    ring: Box<dyn Fn() + Send>,
}

impl ReportReceiver {
    /// Creates a connected receiver and sender.
    pub fn new() -> io::Result<(Self, ReportSender)> {
        let (bell, (sender, letters)) = (WakeSignal::new()?, channel());
        let letterbox = ReportSender { letters: sender, ring: bell.ringer() };
        Ok((Self { bell, letters }, letterbox))
    }

    /// Returns all reports received.
    pub(crate) fn take(&self) -> Vec<PeerReport> {
        self.bell.silence();
        self.letters.try_iter().collect()
    }
}

impl ReportSender {
    /// Passes on a report; a report for a finished flow is lost.
    pub fn put(&self, news: PeerReport) {
        if self.letters.send(news).is_ok() {
            (self.ring)();
        }
    }
}

impl fmt::Debug for ReportSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Letterbox")
    }
}

/// A stand-in for the application on the other host: it does nothing, and has the reported progress.
#[derive(Debug, Default)]
pub(crate) struct RemoteApplication {
    pub(crate) standing: Rc<Cell<Progress>>,
    ledger: Ledger,
}

impl Application for RemoteApplication {
    fn handle(&mut self, _: Time, input: Input) {
        unreachable!("nothing is delivered to who is not here: {input:?}");
    }

    fn poll(&mut self, _: Time) -> Output {
        Output::Wait(Time::MAX)
    }

    fn standing(&self) -> Progress {
        self.standing.get()
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn end(&mut self, _: Time) -> bool {
        true
    }
}
