//! Finds the messages of one direction. RFC 9112 sections 2.2, 6 and 7.

use super::head::{BodyLength, Head, parse_number};

/// Reads one direction of a stream incrementally, and stores at most a head.
#[derive(Debug, Default)]
pub(super) struct Reader {
    state: State,
    /// Number of octets read.
    position: u64,
    /// The line being read.
    line: Vec<u8>,
    /// Octets of the head or trailer read so far, at most `MAX_HEAD`.
    lines: usize,
}

/// The expected element.
#[derive(Debug, Default)]
enum State {
    /// The next element is a start line.
    #[default]
    Start,
    /// The next element is a field line, or the empty line after the last field.
    Fields { begin: u64, head: Head },
    /// The body of the message; the number of its octets that have not been read yet.
    Body(u64),
    /// The next element is the size of a chunk.
    ChunkSize,
    /// The data of a chunk; the number of its octets that have not been read yet.
    Chunk(u64),
    /// The next element is the line end after a chunk.
    ChunkEnd,
    /// The next element is a field line after the last chunk, or the empty line at the end of the message.
    Trailer,
    /// The body of a message that ends with its connection.
    UntilClose,
    /// The last message has ended; the rest of the stream is skipped.
    Last,
    /// The stream is not HTTP.
    Opaque,
}

/// What the reader has found.
#[derive(Debug)]
pub(super) enum Event {
    /// A head has been read; [`Reader::set_body_length`] sets how the message continues.
    Head { begin: u64, head: Head },
    /// The message ends before this position.
    End(u64),
}

/// Maximum number of octets of a head or trailer; servers accept 8 to 64 kB.
const MAX_HEAD: usize = 1 << 16;

impl Reader {
    /// Consumes octets until there is an event.
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

    /// Sets how the message continues after its head.
    pub fn set_body_length(&mut self, framing: BodyLength) {
        self.state = match framing {
            BodyLength::Length(octets) => State::Body(octets),
            BodyLength::Chunked => State::ChunkSize,
            BodyLength::UntilClose => State::UntilClose,
            BodyLength::Tunnel => State::Last,
            BodyLength::Opaque => State::Opaque,
        };
    }

    /// Ends the direction; returns the end of a message that ends with it.
    pub fn close(&mut self) -> Option<u64> {
        matches!(self.state, State::UntilClose).then_some(self.position)
    }

    /// Skips up to `count` octets and updates the state; `None` if there are none left.
    fn skip(&mut self, octets: &mut &[u8], count: u64) -> Option<()> {
        let is_dry = octets.is_empty();
        *octets = &octets[count as usize..];
        self.position += count;
        (!is_dry).then_some(())
    }

    /// Returns the next line without its end, which is CR LF or LF alone (RFC 9112 section 2.2); `None` until the line
    /// is complete.
    fn take_line(&mut self, octets: &mut &[u8]) -> Option<Vec<u8>> {
        let end = octets.iter().position(|octet| *octet == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(octets.len());
        self.line.extend_from_slice(&octets[..taken]);
        self.lines += taken;
        self.skip(octets, taken as u64);
        if self.lines > MAX_HEAD {
            (self.state, self.line) = (State::Opaque, Vec::new());
        }
        end.filter(|_| self.lines <= MAX_HEAD)?;
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

    /// Parses the size of a chunk: hexadecimal, with extensions after a semicolon (RFC 9112 section 7.1). The last
    /// chunk has the size 0.
    fn chunk(&mut self, line: &[u8]) -> State {
        self.lines = 0;
        let size = line.split(|octet| *octet == b';').next().unwrap_or_default();
        match parse_number(size.trim_ascii(), 16) {
            None => State::Opaque,
            Some(0) => State::Trailer,
            Some(octets) => State::Chunk(octets),
        }
    }
}
