//! How far the page is that is being loaded.

use std::collections::{BTreeMap, VecDeque};

use super::Way;
use super::files::File;
use super::tracks::Tracks;
use crate::contract::{ConnectionId, Outgoing};
use crate::ledger::EntryId;

/// A page that is being loaded.
#[derive(Debug)]
pub(super) struct Loading {
    /// Its own record, and that of its first octets; those of its files have the numbers from there on.
    pub(super) whole: EntryId,
    pub(super) first_octets: EntryId,
    heard: bool,
    files: Vec<File>,
    /// Octets of a response before its file.
    head: u32,
    /// Octets that are still to come of each.
    missing: Vec<u32>,
    /// In the order of their records: the files that are known.
    known: Vec<Known>,
    /// Those of them that wait for a track.
    waiting: VecDeque<EntryId>,
    /// Files that are here.
    here: usize,
    /// By track: whether a request on it is not answered.
    busy: Vec<bool>,
    /// By their places among those of the page, and the other way round.
    connections: Vec<Option<ConnectionId>>,
    open: BTreeMap<ConnectionId, Connection>,
}

/// A file that is known, and where it was asked for.
#[derive(Debug)]
struct Known {
    entry: EntryId,
    file: usize,
    track: u16,
    connection: Option<ConnectionId>,
    /// On another connection, before.
    was_asked_for: bool,
}

/// A connection of a page.
#[derive(Debug)]
struct Connection {
    is_open: bool,
    /// What is to be sent when it is.
    waiting: Vec<Outgoing>,
}

/// What part of a response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// The first of the page.
    pub(super) is_first: bool,
    /// The last of its file.
    pub(super) is_last: bool,
}

impl Loading {
    /// A page of these files, each after `head` octets, over some tracks.
    pub(super) fn new(
        [whole, first_octets]: [EntryId; 2],
        files: Vec<File>,
        head: u32,
        tracks: Tracks,
    ) -> Self {
        Self {
            whole,
            first_octets,
            heard: false,
            missing: files.iter().map(|file| file.size + head).collect(),
            files,
            head,
            known: Vec::new(),
            waiting: VecDeque::new(),
            here: 0,
            busy: vec![false; tracks.count().into()],
            connections: vec![None; tracks.connections().into()],
            open: BTreeMap::new(),
        }
    }

    /// Its octets.
    pub(super) fn size_of(&self, file: u16) -> u32 {
        self.files[usize::from(file)].size
    }

    /// A file becomes known, and this is its record.
    pub(super) fn learn(&mut self, file: u16, entry: EntryId) {
        self.known.push(Known { entry, file: file.into(), track: 0, connection: None, was_asked_for: false });
        self.waiting.push_back(entry);
    }

    /// The file that is asked for next, and on which track.
    pub(super) fn next_request(&mut self, way: Way, tracks: Tracks) -> Option<(EntryId, u16)> {
        let asked = self.known.len() - self.waiting.len();
        let is_free = |busy: &bool| !busy;
        let track = match way {
            Way::Pipelined | Way::Multiplexed => asked % usize::from(tracks.count()),
            Way::Keepalive => self.busy.iter().position(is_free)?,
            // Of a connection for each file the first track.
            Way::Close => self.busy.iter().take(tracks.connections().into()).position(is_free)?,
        };
        Some((self.waiting.pop_front()?, track as u16))
    }

    /// A file is asked for on a track; its octets, and whether that is for the first time.
    pub(super) fn ask(&mut self, entry: EntryId, track: u16, connection: ConnectionId) -> (u32, bool) {
        self.busy[usize::from(track)] = true;
        let place = self.place(entry.number()).expect("it is known");
        let known = &mut self.known[place];
        (known.track, known.connection) = (track, Some(connection));
        (self.files[known.file].size, !known.was_asked_for)
    }

    /// The connection in a place, if it was asked for.
    pub(super) fn connection(&self, place: u16) -> Option<ConnectionId> {
        self.connections[usize::from(place)]
    }

    /// A connection was asked for.
    pub(super) fn connect(&mut self, place: u16, id: ConnectionId, is_open: bool) {
        self.connections[usize::from(place)] = Some(id);
        self.open.insert(id, Connection { is_open, waiting: Vec::new() });
    }

    /// Gives a request back if its connection is open, or keeps it until then.
    pub(super) fn send(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        let connection = self.open.get_mut(&outgoing.connection).expect("it was asked for");
        if connection.is_open {
            return Some(outgoing);
        }
        connection.waiting.push(outgoing);
        None
    }

    /// A connection is open; what waited for that.
    pub(super) fn opened(&mut self, id: ConnectionId) -> Vec<Outgoing> {
        self.open.get_mut(&id).map_or_else(Vec::new, |connection| {
            connection.is_open = true;
            std::mem::take(&mut connection.waiting)
        })
    }

    /// So many octets of the response came whose file has this record.
    pub(super) fn receive(&mut self, number: u32, octets: u32) -> Result<Part, &'static str> {
        let place = self.place(number).ok_or("a response to no request")?;
        let missing = &mut self.missing[self.known[place].file];
        *missing = missing.checked_sub(octets).ok_or("a response longer than it was to be")?;
        let is_last = *missing == 0;
        let is_first = place == 0 && !std::mem::replace(&mut self.heard, true);
        Ok(Part { is_first, is_last })
    }

    /// The file with this record is here; the files that it names, and the connection that it came on.
    pub(super) fn finish(&mut self, number: u32) -> (Vec<u16>, Option<ConnectionId>) {
        let place = self.place(number).expect("it is known");
        let Known { file, track, connection, .. } = self.known[place];
        self.busy[usize::from(track)] = false;
        self.here += 1;
        (std::mem::take(&mut self.files[file].names), connection)
    }

    /// A connection is wanted no more.
    pub(super) fn leave(&mut self, id: ConnectionId) {
        self.open.remove(&id);
    }

    /// A connection failed: what was asked for on it and is not whole is to be asked for again, from its beginning.
    pub(super) fn fail(&mut self, id: ConnectionId) {
        self.open.remove(&id);
        self.connections.iter_mut().filter(|own| **own == Some(id)).for_each(|own| *own = None);
        for Known { entry, file, track, connection, was_asked_for } in self.known.iter_mut().rev() {
            if *connection == Some(id) && self.missing[*file] > 0 {
                (*connection, *was_asked_for) = (None, true);
                self.missing[*file] = self.files[*file].size + self.head;
                self.busy[usize::from(*track)] = false;
                self.waiting.push_front(*entry);
            }
        }
    }

    /// All its files are here.
    pub(super) fn is_done(&self) -> bool {
        self.here == self.files.len()
    }

    pub(super) fn is_in_use(&self, id: ConnectionId) -> bool {
        self.open.contains_key(&id)
    }

    /// The connections that are still in use.
    pub(super) fn into_connections(self) -> impl Iterator<Item = ConnectionId> {
        self.open.into_keys()
    }

    /// Where the file with this record stands among those that are known.
    fn place(&self, number: u32) -> Option<usize> {
        let place = number.checked_sub(self.first_octets.number() + 1)? as usize;
        (place < self.known.len()).then_some(place)
    }
}
