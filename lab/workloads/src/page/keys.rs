//! The keys of a page.

use hol_base::{ByteCount, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::FileSize;

/// A page and how it is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// How requests and responses share the connections. Default `multiplexed`.
    pub way: Way,
    /// Octets of the document, which names the objects; `"0B"`: there is none, and all are known from the beginning.
    /// Default 30 kB.
    pub document: ByteCount,
    /// Files beside the document. Default 12.
    pub objects: u16,
    /// Octets of an object, or what they are drawn from: `{ median = "10kB", sigma = 1.5 }`. Default 20 kB.
    pub size: FileSize,
    /// The objects are named in so many waves: by the document, by an object of the first wave, and so on. Default 1.
    pub waves: u16,
    /// Octets of a request. Default 400.
    pub request: ByteCount,
    /// Octets of a response before its body. Default 300.
    pub head: ByteCount,
    /// How long the server thinks before each response; it thinks about several at a time. Default not at all.
    pub think: Duration,
    /// From the end of a page, when all its connections are closed, to the beginning of the next. Default 1 s.
    pub pause: Duration,
    /// It asks before the connection is open, if the transport lets it: SCTP carries the request with the COOKIE ECHO, and
    /// saves a round trip (RFC 9260 section 5.1). Default not.
    pub early: bool,
    /// A file has a pair of streams: it is asked for on one, and comes on the next. Default the same stream.
    pub pair: bool,
    /// A connection that fails is opened again, and what is not whole is asked for again from its beginning: what a browser does
    /// when its host changes networks. Default not: the run is given up.
    pub reopen: bool,
}

/// How requests and responses share the connections, and the streams of a connection: a track is one of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// A connection for each file, as many at a time as the transport has. HTTP/1.0, RFC 1945.
    Close,
    /// One request at a time on each track. RFC 9112 section 9.3.
    Keepalive,
    /// All requests at once; responses are whole, and those of a track come in its order. RFC 9112 section 9.3.2.
    Pipelined,
    /// All requests at once; responses take turns, frame by frame. HTTP/2, RFC 9113.
    #[default]
    Multiplexed,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            way: Way::default(),
            document: ByteCount(30_000),
            objects: 12,
            size: FileSize::Fixed(ByteCount(20_000)),
            waves: 1,
            request: ByteCount(400),
            head: ByteCount(300),
            think: Duration::ZERO,
            pause: Duration::from_secs(1),
            early: false,
            pair: false,
            reopen: false,
        }
    }
}

impl Way {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Keepalive => "keepalive",
            Self::Pipelined => "pipelined",
            Self::Multiplexed => "multiplexed",
        }
    }
}
