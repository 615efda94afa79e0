//! Where the messages of one direction begin and end. RFC 9112 sections 2.2, 6 and 7.

use super::head::{Framing, Head, number};

/// Reads one direction of a stream, piece by piece, and keeps no more of it than a head.
#[derive(Debug, Default)]
pub(super) struct Reader {
    state: State,
    /// How many octets were read.
    position: u64,
    /// The line that is being read.
    line: Vec<u8>,
    /// Octets of lines since the last event.
    lines: usize,
}

/// What comes next.
#[derive(Debug, Default)]
enum State {
    /// A start line.
    #[default]
    Start,
    /// A field, or the empty line behind the last one.
    Fields { begin: u64, head: Head },
    /// So many octets of the body.
    Body(u64),
    /// The size of a chunk.
    ChunkSize,
    /// So many octets of a chunk.
    Chunk(u64),
    /// The line's end behind a chunk.
    ChunkEnd,
    /// A field behind the last chunk, or an empty line.
    Trailer,
    /// The rest of the stream.
    UntilClose,
    /// The end of the last message.
    Last,
    /// No HTTP.
    Opaque,
}

/// What was found.
#[derive(Debug)]
pub(super) enum Event {
    /// A head; [`Reader::follow`] says how the message goes on.
    Head { begin: u64, head: Head },
    /// The message ends before this place.
    End(u64),
}

/// A head or trailer of more octets is none: servers take 8 to 64 kB.
const MOST: usize = 1 << 16;

impl Reader {
    /// Takes octets off the front until there is something to tell.
    pub fn next(&mut self, octets: &mut &[u8]) -> Option<Event> {
        loop {
            match &mut self.state {
                State::Opaque => return None,
                State::Last => {
                    self.state = State::Opaque;
                    return Some(Event::End(self.position));
                }
                // An empty body ends without another octet.
                State::Body(0) => {
                    self.state = State::Start;
                    return Some(Event::End(self.position));
                }
                State::Chunk(0) => self.state = State::ChunkEnd,
                State::Body(left) | State::Chunk(left) => {
                    let taken = (octets.len() as u64).min(*left);
                    *left -= taken;
                    self.skip(octets, taken)?;
                }
                State::UntilClose => {
                    let all = octets.len() as u64;
                    self.skip(octets, all)?;
                }
                State::Start | State::Fields { .. } | State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let begin = self.position - self.line.len() as u64;
                    let line = self.take_line(octets)?;
                    if let Some(event) = self.read_line(begin, line) {
                        return Some(event);
                    }
                }
            }
        }
    }

    /// How the message goes on behind its head.
    pub fn follow(&mut self, framing: Framing) {
        self.state = match framing {
            Framing::Length(octets) => State::Body(octets),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => State::UntilClose,
            Framing::Tunnel => State::Last,
            Framing::Opaque => State::Opaque,
        };
    }

    /// The direction is over: where the message ends that ends with it.
    pub fn close(&mut self) -> Option<u64> {
        matches!(self.state, State::UntilClose).then_some(self.position)
    }

    /// Passes over octets; `None` if there are none left.
    fn skip(&mut self, octets: &mut &[u8], count: u64) -> Option<()> {
        let is_dry = octets.is_empty();
        *octets = &octets[count as usize..];
        self.position += count;
        (!is_dry).then_some(())
    }

    /// The next line without its end, CR LF or LF alone (section 2.2); `None` until it is whole.
    fn take_line(&mut self, octets: &mut &[u8]) -> Option<Vec<u8>> {
        let end = octets.iter().position(|octet| *octet == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(octets.len());
        self.line.extend_from_slice(&octets[..taken]);
        self.lines += taken;
        self.skip(octets, taken as u64);
        if self.lines > MOST {
            (self.state, self.line) = (State::Opaque, Vec::new());
        }
        end.filter(|_| self.lines <= MOST)?;
        let mut line = std::mem::take(&mut self.line);
        line.pop();
        line.pop_if(|octet| *octet == b'\r');
        Some(line)
    }

    fn read_line(&mut self, begin: u64, line: Vec<u8>) -> Option<Event> {
        let state = std::mem::take(&mut self.state);
        self.state = match (state, line.is_empty()) {
            // Section 2.2: empty lines before a request line are ignored.
            (State::Start, true) => State::Start,
            (State::Start, false) => State::Fields { begin, head: Head::new(line) },
            (State::Fields { begin, head }, true) => {
                self.lines = 0;
                return Some(Event::Head { begin, head });
            }
            (State::Fields { begin, mut head }, false) => match head.add(&line) {
                Some(()) => State::Fields { begin, head },
                None => State::Opaque,
            },
            (State::ChunkSize, _) => self.chunk(&line),
            (State::ChunkEnd, true) => State::ChunkSize,
            (State::Trailer, true) => {
                self.lines = 0;
                State::Body(0)
            }
            (State::Trailer, false) => State::Trailer,
            _ => State::Opaque,
        };
        None
    }

    /// Section 7.1: a size in hexadecimal, extensions behind a semicolon; size 0 is the last.
    fn chunk(&mut self, line: &[u8]) -> State {
        self.lines = 0;
        let size = line.split(|octet| *octet == b';').next().unwrap_or_default();
        match number(size.trim_ascii(), 16) {
            None => State::Opaque,
            Some(0) => State::Trailer,
            Some(octets) => State::Chunk(octets),
        }
    }
}
