//! The end of a flow that is on another host: what is heard of it, and how it is told of the one here.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fmt, io};

use hol_base::Time;
use hol_workloads::{Application, Input, Ledger, Output, Standing};
use serde::{Deserialize, Serialize};

use crate::Bell;

/// What the host of a server tells that of its client while a flow goes on: all that the rules of its end need to know.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct News {
    /// How far its application has come.
    pub standing: Standing,
    /// It has accepted a connection since the last time …
    pub accepted: bool,
    /// … or something was delivered to it.
    pub delivered: bool,
    /// It cannot go on: why, in RFC words.
    pub failed: Option<String>,
}

/// Tells the other host.
pub type Tell<'t> = Box<dyn FnMut(News) + Send + 't>;

/// What has come from the other host, for the end here.
#[derive(Debug)]
pub struct Mail {
    pub(crate) bell: Bell,
    letters: Receiver<News>,
}

/// Where it is put, by another thread.
pub struct Letterbox {
    letters: Sender<News>,
    ring: Box<dyn Fn() + Send>,
}

impl Mail {
    /// An empty one, and where letters are put.
    pub fn new() -> io::Result<(Self, Letterbox)> {
        let (bell, (sender, letters)) = (Bell::new()?, channel());
        let letterbox = Letterbox { letters: sender, ring: bell.ringer() };
        Ok((Self { bell, letters }, letterbox))
    }

    /// All that has come.
    pub(crate) fn take(&self) -> Vec<News> {
        self.bell.silence();
        self.letters.try_iter().collect()
    }
}

impl Letterbox {
    /// Puts a letter there; one for a flow that is over is lost.
    pub fn put(&self, news: News) {
        if self.letters.send(news).is_ok() {
            (self.ring)();
        }
    }
}

impl fmt::Debug for Letterbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Letterbox")
    }
}

/// Stands for an application on the other host: it does nothing here, and has come as far as was heard.
#[derive(Debug, Default)]
pub(crate) struct Absent {
    pub(crate) standing: Rc<Cell<Standing>>,
    ledger: Ledger,
}

impl Application for Absent {
    fn handle(&mut self, _: Time, input: Input) {
        unreachable!("nothing is delivered to who is not here: {input:?}");
    }

    fn poll(&mut self, _: Time) -> Output {
        Output::Wait(Time::MAX)
    }

    fn standing(&self) -> Standing {
        self.standing.get()
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    fn end(&mut self, _: Time) -> bool {
        true
    }
}
