//! The side that loads pages.

use std::collections::{BTreeMap, VecDeque};

use hol_base::{Rng, Seed, Time};
use hol_measure::RecordKind;

use super::files::{self, File};
use super::frame::{self, Frame, Frames};
use super::tracks::Tracks;
use super::{Page, Way};
use crate::ENDLESS;
use crate::contract::{Application, ConnectionId, Delivery, Input, Outgoing, Output, Quit, Standing};
use crate::held::Held;
use crate::ledger::{Arrived, Due, EntryId, Ledger};

/// Loads one page after the other, each over connections of its own. A connection is opened when something is to be asked for
/// on it.
#[derive(Debug)]
pub(crate) struct Browser {
    page: Page,
    tracks: Tracks,
    frames: Frames,
    sizes: Rng,
    /// Pages that have not begun.
    left: u64,
    endless: bool,
    /// When the next begins; `None`: at once, for it is the first.
    next: Option<Time>,
    loading: Option<Loading>,
    /// Connections that were asked for.
    connections: u32,
    to_do: VecDeque<Deed>,
    held: Held,
    done: u64,
    quit: Option<Quit>,
    ledger: Ledger,
}

/// The page that is loaded.
#[derive(Debug)]
struct Loading {
    whole: EntryId,
    first_octets: EntryId,
    heard: bool,
    files: Vec<File>,
    /// Octets that are still to come of each.
    missing: Vec<u32>,
    /// By the number of a record from the first file's on: which file it is about.
    asked: Vec<Asked>,
    done: u16,
    /// Files that wait for a track.
    waiting: VecDeque<EntryId>,
    /// By track: whether a request on it is not answered.
    busy: Vec<bool>,
    /// By their places among those of the page, and the other way round.
    connections: Vec<Option<ConnectionId>>,
    open: BTreeMap<ConnectionId, Connection>,
}

#[derive(Debug)]
struct Asked {
    file: u16,
    track: u16,
    connection: Option<ConnectionId>,
}

/// A connection of a page.
#[derive(Debug, Default)]
struct Connection {
    is_open: bool,
    /// What is to be sent when it is.
    waiting: Vec<Outgoing>,
}

#[derive(Debug)]
enum Deed {
    Open(ConnectionId),
    Send(Outgoing),
    Close(ConnectionId),
}

impl Browser {
    pub(crate) fn new(page: Page, tracks: Tracks, messages: u64, seed: Seed) -> Self {
        Self {
            page,
            tracks,
            frames: Frames::default(),
            sizes: seed.derive("workload/page").rng(),
            left: messages,
            endless: messages == ENDLESS,
            next: None,
            loading: None,
            connections: 0,
            to_do: VecDeque::new(),
            held: Held::default(),
            done: 0,
            quit: None,
            ledger: Ledger::default(),
        }
    }

    /// A page comes due, with what is known of it.
    fn begin(&mut self, now: Time) {
        let files = files::draw(&self.page, &mut self.sizes);
        let (whole, first_octets) = self.note_page(now, files.iter().map(|file| file.size).sum());
        let missing = files.iter().map(|file| file.size + self.page.head.0 as u32).collect();
        self.loading = Some(Loading {
            whole,
            first_octets,
            heard: false,
            files,
            missing,
            asked: Vec::new(),
            done: 0,
            waiting: VecDeque::new(),
            busy: vec![false; self.at_a_time().into()],
            connections: vec![None; self.tracks.connections().into()],
            open: BTreeMap::new(),
        });
        files::known(&self.page).for_each(|file| self.learn(now, file));
        self.ask();
    }

    /// The records of a page and of its first octets, which both begin with the request for its first file.
    fn note_page(&mut self, now: Time, size: u32) -> (EntryId, EntryId) {
        let scheduled = self.next.unwrap_or(now);
        self.left -= u64::from(!self.endless);
        let number = self.ledger.due() as u32;
        let due = Due { scheduled, lane: 0, size, kind: RecordKind::Page, parent: None };
        let head = Due { kind: RecordKind::Head, parent: Some(number), ..due };
        [due, head].map(|due| self.ledger.note_whole_due(now, due, number + 2)).into()
    }

    /// A file is known, so it is to be asked for.
    fn learn(&mut self, now: Time, file: u16) {
        let Some(loading) = &mut self.loading else { return };
        let (size, parent) = (loading.files[usize::from(file)].size, Some(loading.whole.number()));
        let due = Due { scheduled: now, lane: 0, size, kind: RecordKind::Object, parent };
        loading.asked.push(Asked { file, track: 0, connection: None });
        loading.waiting.push_back(self.ledger.note_due(now, due));
    }

    /// Asks for what waits, as far as the way allows.
    fn ask(&mut self) {
        while let Some((entry, track)) = self.next_request() {
            let connection = self.connection(track);
            self.ledger.note_lane(entry, track);
            let Some(loading) = &mut self.loading else { return };
            let asked = loading.asked_mut(entry.number()).expect("it is to be asked for");
            (asked.track, asked.connection) = (track, Some(connection));
            let file = usize::from(asked.file);
            let size = loading.files[file].size;
            loading.busy[usize::from(track)] = true;
            let payload = self.frames.request(self.page.request.0, entry.number(), size);
            let stream = self.tracks.request_stream(track);
            let outgoing = Outgoing { connection, stream, payload, terms: None, entry: Some(entry) };
            let to = loading.open.get_mut(&connection).expect("it was asked for");
            if to.is_open { self.to_do.push_back(Deed::Send(outgoing)) } else { to.waiting.push(outgoing) }
        }
    }

    /// The tracks that it uses: of a connection for each file the first.
    fn at_a_time(&self) -> u16 {
        if self.page.way == Way::Close { self.tracks.connections() } else { self.tracks.count() }
    }

    /// The file that is asked for next, and on which track.
    fn next_request(&mut self) -> Option<(EntryId, u16)> {
        let loading = self.loading.as_mut()?;
        let next = (loading.asked.len() - loading.waiting.len()) as u64;
        let track = match self.page.way {
            Way::Pipelined | Way::Multiplexed => (next % u64::from(self.tracks.count())) as u16,
            Way::Keepalive | Way::Close => loading.busy.iter().position(|busy| !busy)? as u16,
        };
        Some((loading.waiting.pop_front()?, track))
    }

    /// The connection that a request on a track takes.
    fn connection(&mut self, track: u16) -> ConnectionId {
        let next = ConnectionId(self.connections);
        let loading = self.loading.as_mut().expect("a page is loaded");
        let place = usize::from(self.tracks.connection(track));
        let known = loading.connections[place].filter(|_| self.page.way != Way::Close);
        known.unwrap_or_else(|| {
            self.connections += 1;
            self.to_do.push_back(Deed::Open(next));
            loading.open.insert(next, Connection { is_open: self.page.early, waiting: Vec::new() });
            loading.connections[place] = Some(next);
            next
        })
    }

    /// Part of a response came.
    fn take(&mut self, now: Time, delivery: &Delivery) -> Result<(), &'static str> {
        const UNASKED: &str = "a response to no request";
        let came = Frame::read(&delivery.payload)?;
        let loading = self.loading.as_mut().ok_or(UNASKED)?;
        let arrived = Arrived { passage: delivery.passage, delivered: now };
        let file = loading.asked_mut(came.number).ok_or(UNASKED)?.file;
        let missing = &mut loading.missing[usize::from(file)];
        let octets = frame::octets(self.page.way, came, delivery.payload.len());
        *missing = missing.checked_sub(octets).ok_or("a response longer than it was to be")?;
        let is_whole = *missing == 0;
        if !loading.heard && came.number == loading.whole.number() + 2 {
            loading.heard = true;
            self.ledger.note_first_octets(loading.first_octets, arrived);
            self.done += 1;
        }
        if is_whole { self.finish(now, came.number, arrived) } else { Ok(()) }
    }

    /// A file is here.
    fn finish(&mut self, now: Time, number: u32, arrived: Arrived) -> Result<(), &'static str> {
        if !self.ledger.note_reply(number, arrived, false) {
            return Err("a response that came twice");
        }
        self.done += 1;
        let Some(loading) = &mut self.loading else { return Ok(()) };
        let Asked { file, track, connection } = *loading.asked_mut(number).expect("it was asked for");
        let names = std::mem::take(&mut loading.files[usize::from(file)].names);
        loading.busy[usize::from(track)] = false;
        loading.done += 1;
        if self.page.way == Way::Close
            && let Some(connection) = connection
        {
            loading.open.remove(&connection);
            self.to_do.push_back(Deed::Close(connection));
        }
        if usize::from(loading.done) == loading.files.len() {
            self.end_page(now, number, arrived);
            return Ok(());
        }
        names.into_iter().for_each(|file| self.learn(now, file));
        self.ask();
        Ok(())
    }

    /// The last file, whose record has this number, is here.
    fn end_page(&mut self, now: Time, last: u32, arrived: Arrived) {
        let Some(Loading { whole, open, .. }) = self.loading.take() else { return };
        self.ledger.note_whole(whole, last, arrived);
        self.done += 1;
        self.to_do.extend(open.into_keys().map(Deed::Close));
        self.next = Some(if self.left > 0 { now + self.page.pause } else { Time::MAX });
    }

    fn opened(&mut self, id: ConnectionId) {
        let connection = self.loading.as_mut().and_then(|loading| loading.open.get_mut(&id));
        let Some(connection) = connection else { return };
        connection.is_open = true;
        self.to_do.extend(connection.waiting.drain(..).map(Deed::Send));
        // What was asked too early for this transport.
        self.held.retry();
    }

    fn is_in_use(&self, id: ConnectionId) -> bool {
        self.loading.as_ref().is_some_and(|loading| loading.open.contains_key(&id))
    }

    /// The next deed, but for what is to be sent on a connection that is full.
    fn next_deed(&mut self) -> Option<Deed> {
        let is_free = |deed: &Deed| match deed {
            Deed::Send(outgoing) => !self.held.waits_for(outgoing.connection),
            Deed::Open(_) | Deed::Close(_) => true,
        };
        let at = self.to_do.iter().position(is_free)?;
        self.to_do.remove(at)
    }
}

impl Loading {
    fn asked_mut(&mut self, number: u32) -> Option<&mut Asked> {
        self.asked.get_mut(number.checked_sub(self.whole.number() + 2)? as usize)
    }
}

impl Application for Browser {
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Opened(id) => self.opened(id),
            Input::Message(delivery) => {
                self.quit = self.take(now, &delivery).err().map(Quit::Nonsense).or(self.quit);
            }
            Input::Full(outgoing) => self.held.refused(outgoing),
            Input::Writable(_) => self.held.retry(),
            Input::PeerClosed(id) if self.is_in_use(id) => {
                self.quit = Some(Quit::Connection("closed by the peer"));
            }
            Input::Failed(id, reason) if self.is_in_use(id) => self.quit = Some(Quit::Connection(reason)),
            // Those of pages that are done.
            Input::PeerClosed(_) | Input::Failed(..) | Input::Accepted(_) | Input::Closed(_) => {}
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if let Some(quit) = self.quit {
            return Output::Stop(quit);
        }
        if self.loading.is_none() && self.left > 0 && self.next.is_none_or(|next| next <= now) {
            self.begin(now);
        }
        let outgoing = match self.held.next().map_or_else(|| self.next_deed(), |held| Some(Deed::Send(held)))
        {
            Some(Deed::Open(id)) => return Output::Open(id),
            Some(Deed::Close(id)) => return Output::Close(id),
            Some(Deed::Send(outgoing)) => outgoing,
            None if self.loading.is_some() => return Output::Wait(Time::MAX),
            None => return Output::Wait(self.next.unwrap_or(Time::MAX)),
        };
        if let Some(entry) = outgoing.entry {
            self.ledger.note_written(entry, now);
        }
        Output::Send(outgoing)
    }

    fn standing(&self) -> Standing {
        Standing {
            due: self.ledger.due(),
            done: self.done,
            last_due: self.ledger.last_due(),
            // Of a page that is loaded more may become known.
            all_due: self.left == 0 && self.loading.is_none(),
            awaits_answer: self.loading.is_some(),
        }
    }

    fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Notes the pages that never began.
    fn end(&mut self, now: Time) -> bool {
        const PART: u64 = 4096;
        if self.endless {
            return true;
        }
        self.loading = None;
        for _ in 0..PART.min(self.left) {
            let size = files::draw(&self.page, &mut self.sizes).iter().map(|file| file.size).sum();
            self.note_page(now, size);
        }
        self.left == 0
    }
}
