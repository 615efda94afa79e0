//! The state of the page that is being loaded.

use std::collections::{BTreeMap, VecDeque};

use super::ConnectionReuse;
use super::files::File;
use super::tracks::Tracks;
use crate::contract::{ConnectionId, Outgoing};
use crate::ledger::EntryId;

/// A page that is being loaded.
#[derive(Debug)]
pub(super) struct PageLoad {
    /// Record of the page.
    pub(super) page: EntryId,
    /// Record of the page's first octets. The records of the page's files follow it.
    pub(super) first_octets: EntryId,
    has_response: bool,
    files: Vec<File>,
    /// Length of a response's head, which precedes the file, in octets.
    head_octets: u32,
    /// Octets of each response (head and file) that have not arrived yet, by file.
    missing_octets: Vec<u32>,
    /// The files that the browser has discovered, in the order of their records.
    known_files: Vec<KnownFile>,
    /// Discovered files that wait for a track (see [`Tracks`]) to be requested on.
    waiting_files: VecDeque<EntryId>,
    /// Number of complete files.
    complete_files: usize,
    /// Whether each track (see [`Tracks`]) has a request that has not been answered completely.
    tracks_with_request: Vec<bool>,
    /// Connections by their index in the stream layout; `None` if not requested.
    connections: Vec<Option<ConnectionId>>,
    /// The state of each connection that has been requested.
    connection_states: BTreeMap<ConnectionId, Connection>,
}

/// A file that the browser has discovered, with the track on which it was requested.
#[derive(Debug)]
struct KnownFile {
    entry: EntryId,
    file: usize,
    track: u16,
    connection: Option<ConnectionId>,
    /// Whether the file was requested before on a connection that failed.
    was_requested: bool,
}

/// A connection of the page.
#[derive(Debug)]
struct Connection {
    is_open: bool,
    /// Requests to be sent when the connection is open.
    waiting: Vec<Outgoing>,
}

/// The position of a received part of a response in its page and its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Whether this is the first part of a response to the page.
    pub(super) is_first_of_page: bool,
    /// Whether this is the last part of its file.
    pub(super) is_last_of_file: bool,
}

impl PageLoad {
    /// Creates the state of a page with these files. Each response has `head` octets before its file.
    pub(super) fn new(
        [page, first_octets]: [EntryId; 2],
        files: Vec<File>,
        head: u32,
        tracks: Tracks,
    ) -> Self {
        Self {
            page,
            first_octets,
            has_response: false,
            missing_octets: files.iter().map(|file| file.size + head).collect(),
            files,
            head_octets: head,
            known_files: Vec::new(),
            waiting_files: VecDeque::new(),
            complete_files: 0,
            tracks_with_request: vec![false; tracks.count().into()],
            connections: vec![None; tracks.connections().into()],
            connection_states: BTreeMap::new(),
        }
    }

    /// Returns the size of a file in octets.
    pub(super) fn size_of(&self, file: u16) -> u32 {
        self.files[usize::from(file)].size
    }

    /// Adds a discovered file with its record.
    pub(super) fn add_file(&mut self, file: u16, entry: EntryId) {
        self.known_files.push(KnownFile {
            entry,
            file: file.into(),
            track: 0,
            connection: None,
            was_requested: false,
        });
        self.waiting_files.push_back(entry);
    }

    /// Returns the next file to request, and its track; `None` if no file waits or no track is free.
    pub(super) fn next_request(&mut self, way: ConnectionReuse, tracks: Tracks) -> Option<(EntryId, u16)> {
        let requested = self.known_files.len() - self.waiting_files.len();
        let is_free = |busy: &bool| !busy;
        let track = match way {
            ConnectionReuse::Pipelined | ConnectionReuse::Multiplexed => {
                requested % usize::from(tracks.count())
            }
            ConnectionReuse::Keepalive => self.tracks_with_request.iter().position(is_free)?,
            // With a connection per file, each connection uses only its first track.
            ConnectionReuse::Close => {
                self.tracks_with_request.iter().take(tracks.connections().into()).position(is_free)?
            }
        };
        Some((self.waiting_files.pop_front()?, track as u16))
    }

    /// Records that a file is requested on a track. Returns the octets of the file, and whether this is its
    /// first request.
    pub(super) fn note_request(
        &mut self,
        entry: EntryId,
        track: u16,
        connection: ConnectionId,
    ) -> (u32, bool) {
        self.tracks_with_request[usize::from(track)] = true;
        let index = self.index(entry.number()).expect("the file is known");
        let known = &mut self.known_files[index];
        (known.track, known.connection) = (track, Some(connection));
        (self.files[known.file].size, !known.was_requested)
    }

    /// Returns the connection with this index in the stream layout; `None` if it has not been requested.
    pub(super) fn connection(&self, index: u16) -> Option<ConnectionId> {
        self.connections[usize::from(index)]
    }

    /// Records that a connection was requested.
    pub(super) fn add_connection(&mut self, index: u16, id: ConnectionId, is_open: bool) {
        self.connections[usize::from(index)] = Some(id);
        self.connection_states.insert(id, Connection { is_open, waiting: Vec::new() });
    }

    /// Returns the request if its connection is open; otherwise stores it until the connection is open.
    pub(super) fn queue_unless_open(&mut self, outgoing: Outgoing) -> Option<Outgoing> {
        let connection =
            self.connection_states.get_mut(&outgoing.connection).expect("the connection was requested");
        if connection.is_open {
            return Some(outgoing);
        }
        connection.waiting.push(outgoing);
        None
    }

    /// Records that a connection is open; returns the requests that waited for it.
    pub(super) fn note_opened(&mut self, id: ConnectionId) -> Vec<Outgoing> {
        self.connection_states.get_mut(&id).map_or_else(Vec::new, |connection| {
            connection.is_open = true;
            std::mem::take(&mut connection.waiting)
        })
    }

    /// Counts `octets` received octets of the response for the file with this record.
    pub(super) fn receive(&mut self, number: u32, octets: u32) -> Result<Part, &'static str> {
        let index = self.index(number).ok_or("the server sent a response without a request")?;
        let missing = &mut self.missing_octets[self.known_files[index].file];
        *missing =
            missing.checked_sub(octets).ok_or("the server sent a response that is longer than announced")?;
        let is_last_of_file = *missing == 0;
        let is_first_of_page = index == 0 && !std::mem::replace(&mut self.has_response, true);
        Ok(Part { is_first_of_page, is_last_of_file })
    }

    /// Finishes the file with this record; returns the files that it references, and the connection to close, if any.
    pub(super) fn finish(&mut self, number: u32) -> (Vec<u16>, Option<ConnectionId>) {
        let index = self.index(number).expect("the file is known");
        let KnownFile { file, track, connection, .. } = self.known_files[index];
        self.tracks_with_request[usize::from(track)] = false;
        self.complete_files += 1;
        (std::mem::take(&mut self.files[file].references), connection)
    }

    /// Removes a connection that is no longer needed.
    pub(super) fn remove_connection(&mut self, id: ConnectionId) {
        self.connection_states.remove(&id);
    }

    /// Handles a failed connection, whose incomplete files must be requested again from the beginning.
    pub(super) fn fail(&mut self, id: ConnectionId) {
        self.connection_states.remove(&id);
        self.connections.iter_mut().filter(|own| **own == Some(id)).for_each(|own| *own = None);
        for KnownFile { entry, file, track, connection, was_requested } in self.known_files.iter_mut().rev() {
            if *connection == Some(id) && self.missing_octets[*file] > 0 {
                (*connection, *was_requested) = (None, true);
                self.missing_octets[*file] = self.files[*file].size + self.head_octets;
                self.tracks_with_request[usize::from(*track)] = false;
                self.waiting_files.push_front(*entry);
            }
        }
    }

    /// Returns whether all files of the page are complete.
    pub(super) fn is_done(&self) -> bool {
        self.complete_files == self.files.len()
    }

    /// Returns whether the page still uses a connection.
    pub(super) fn is_in_use(&self, id: ConnectionId) -> bool {
        self.connection_states.contains_key(&id)
    }

    /// Returns the connections that the page still uses.
    pub(super) fn into_connections(self) -> impl Iterator<Item = ConnectionId> {
        self.connection_states.into_keys()
    }

    /// Returns the index of the file with this record among the discovered files.
    fn index(&self, number: u32) -> Option<usize> {
        let index = number.checked_sub(self.first_octets.number() + 1)? as usize;
        (index < self.known_files.len()).then_some(index)
    }
}
