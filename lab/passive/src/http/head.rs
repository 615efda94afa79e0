//! The head of a message, and the length of its body. RFC 9112 sections 3 to 6.

use super::{Method, SWITCHING_PROTOCOLS};

/// The relevant parts of a start line and of header fields.
#[derive(Debug, Default)]
pub(super) struct Head {
    start: Vec<u8>,
    length: Length,
    /// Whether the last transfer coding is `chunked`; `None` if there is no coding.
    chunked: Option<bool>,
}

/// The value of the Content-Length fields together (RFC 9112 section 6.3, items 5 and 6).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Length {
    #[default]
    None,
    Octets(u64),
    Invalid,
}

/// How the end of a message is determined (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// The message ends after this many octets.
    Length(u64),
    /// The message is chunked.
    Chunked,
    /// The message ends with its connection.
    UntilClose,
    /// The message ends here, and the connection is a tunnel from there on, without HTTP.
    Tunnel,
    /// The end of the message is unknown, so no messages are read after it.
    Opaque,
}

impl Head {
    /// Creates a head with this start line.
    pub const fn new(start: Vec<u8>) -> Self {
        Self { start, length: Length::None, chunked: None }
    }

    /// Parses a field line (RFC 9112 section 5); returns `None` if it is invalid.
    pub fn add(&mut self, line: &[u8]) -> Option<()> {
        // Section 5.2: a folded line continues a value, which is irrelevant here.
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return Some(());
        }
        let colon = line.iter().position(|octet| *octet == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"Content-Length") {
            self.length = self.length.and(value);
        } else if name.eq_ignore_ascii_case(b"Transfer-Encoding") {
            let last = value.rsplit(|octet| *octet == b',').next().unwrap_or_default();
            self.chunked = Some(last.trim_ascii().eq_ignore_ascii_case(b"chunked"));
        }
        Some(())
    }

    /// Returns the method and the framing of a request (RFC 9112 section 3); `None` if it is not HTTP/1.
    pub fn request(&self) -> Option<(Method, BodyLength)> {
        let [method, target, version] = self.words()?;
        let is_request = !method.is_empty() && !target.is_empty() && is_version(version);
        let method = match method {
            b"HEAD" => Method::Head,
            b"CONNECT" => Method::Connect,
            _ => Method::Other,
        };
        is_request.then(|| (method, self.request_framing()))
    }

    /// Returns the status of a response (RFC 9112 section 4); `None` if it is not HTTP/1.
    pub fn status(&self) -> Option<u16> {
        let (version, rest) = self.start.split_at_checked(8)?;
        let code = rest.strip_prefix(b" ")?.get(..3)?;
        let ends = matches!(rest.get(4), None | Some(b' '));
        let status = str::from_utf8(code).ok()?.parse().ok()?;
        (is_version(version) && ends && (100..1000).contains(&status)).then_some(status)
    }

    /// Returns the framing of a request, which has no body unless it gives a length (RFC 9112 section 6.3).
    fn request_framing(&self) -> BodyLength {
        match (self.chunked, self.length) {
            (Some(true), _) => BodyLength::Chunked,
            (Some(false), _) | (None, Length::Invalid) => BodyLength::Opaque,
            (None, Length::Octets(octets)) => BodyLength::Length(octets),
            (None, Length::None) => BodyLength::Length(0),
        }
    }

    /// Returns the framing of the response to a request (RFC 9112 section 6.3); without a length the response ends with
    /// its connection.
    pub fn response(&self, method: Method, status: u16) -> BodyLength {
        match (method, status, self.chunked, self.length) {
            (_, SWITCHING_PROTOCOLS, ..) | (Method::Connect, 200..300, ..) => BodyLength::Tunnel,
            (Method::Head, ..) | (_, 100..200 | 204 | 304, ..) => BodyLength::Length(0),
            (_, _, Some(true), _) => BodyLength::Chunked,
            (_, _, None, Length::Invalid) => BodyLength::Opaque,
            (_, _, None, Length::Octets(octets)) => BodyLength::Length(octets),
            (_, _, Some(false), _) | (_, _, None, Length::None) => BodyLength::UntilClose,
        }
    }

    fn words(&self) -> Option<[&[u8]; 3]> {
        let mut words = self.start.split(|octet| *octet == b' ');
        let three = [words.next()?, words.next()?, words.next()?];
        words.next().is_none().then_some(three)
    }
}

impl Length {
    /// Combines the length with another value. Equal values count as one (RFC 9112 section 6.3, item 5).
    fn and(self, value: &[u8]) -> Self {
        value.split(|octet| *octet == b',').fold(self, |length, part| {
            match (length, parse_number(part.trim_ascii(), 10)) {
                (Self::None, Some(octets)) => Self::Octets(octets),
                (Self::Octets(before), Some(octets)) if before == octets => length,
                _ => Self::Invalid,
            }
        })
    }
}

/// Parses a number without a sign.
pub(super) fn parse_number(digits: &[u8], radix: u32) -> Option<u64> {
    let text = str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, radix).ok()
}

/// Returns whether a word is a version of HTTP/1 (RFC 9112 section 2.3); every minor version is treated like 1.1.
fn is_version(word: &[u8]) -> bool {
    matches!(word, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] if minor.is_ascii_digit())
}
