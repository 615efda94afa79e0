//! Progress reports between the two ends of a flow that run on different hosts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fmt, io};

use hol_base::Time;
use hol_workloads::{Application, Input, Ledger, Output, Progress};
use serde::{Deserialize, Serialize};

use crate::Bell;

/// What a server's host reports to the client's host during a flow, as needed to decide when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PeerReport {
    /// The progress of its application.
    pub standing: Progress,
    /// It accepted a connection since the last report.
    pub accepted: bool,
    /// Something was delivered to it since the last report.
    pub delivered: bool,
    /// Why it cannot continue, in words of the RFC.
    pub failed: Option<String>,
}

/// Reports to the other host.
pub type Tell<'t> = Box<dyn FnMut(PeerReport) + Send + 't>;

/// News from the other host for the local end.
#[derive(Debug)]
pub struct ReportReceiver {
    pub(crate) bell: Bell,
    letters: Receiver<PeerReport>,
}

/// Where another thread puts news.
pub struct ReportSender {
    letters: Sender<PeerReport>,
    ring: Box<dyn Fn() + Send>,
}

impl ReportReceiver {
    /// Creates an empty mailbox and its letterbox.
    pub fn new() -> io::Result<(Self, ReportSender)> {
        let (bell, (sender, letters)) = (Bell::new()?, channel());
        let letterbox = ReportSender { letters: sender, ring: bell.ringer() };
        Ok((Self { bell, letters }, letterbox))
    }

    /// Takes all news.
    pub(crate) fn take(&self) -> Vec<PeerReport> {
        self.bell.silence();
        self.letters.try_iter().collect()
    }
}

impl ReportSender {
    /// Adds news; those for a finished flow are lost.
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

/// Stands for an application on the other host: it does nothing, and has the reported progress.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    pub(crate) standing: Rc<Cell<Progress>>,
    ledger: Ledger,
}

impl Application for Absent {
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
