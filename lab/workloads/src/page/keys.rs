//! Settings of the workload `page`.

use hol_base::{ByteCount, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Sizes;

/// Settings of the workload `page`: the keys of `[workload] kind = "page"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// How requests and responses share the connections. Default `"multiplexed"`.
    pub way: ConnectionReuse,
    /// Octets of the document, which names the objects. `"0B"`: no document; all objects are known from the
    /// beginning. Default 30 kB.
    pub document: ByteCount,
    /// Number of files in addition to the document. Default 12.
    pub objects: u16,
    /// Octets per object: a size, sizes with weights as in `{ "1kB" = 9, "200kB" = 1 }`, or a log-normal
    /// distribution as in `{ median = "10kB", sigma = 1.5 }`, or a file with a size on each line as in
    /// `{ file = "sizes.txt" }`. Default 20 kB.
    pub size: Sizes,
    /// Depth of the references: with 1 the document references all objects; with 2 it references half of them,
    /// which reference the rest, and so on. Default 1.
    pub waves: u16,
    /// Octets per request. Default 400.
    pub request: ByteCount,
    /// Octets of a response before its body. Default 300.
    pub head: ByteCount,
    /// Time that the server needs before each response, for all requests in parallel. Default none.
    pub think: Duration,
    /// Time from the end of a page, with all connections closed, to the start of the next. Default 1 s.
    pub pause: Duration,
    /// Send requests before the connection is open, if the transport allows that: SCTP sends the request
    /// with the COOKIE ECHO, which saves a round trip (RFC 9260 section 5.1). Default no.
    pub early: bool,
    /// Use a pair of streams per file: the request on one, the response on the next. Default no: the response uses the stream of its
    /// request.
    pub pair: bool,
    /// Reopen a failed connection and request incomplete files again from the beginning, like a browser whose host changes networks.
    /// Default no: a failed connection ends the run.
    pub reopen: bool,
}

/// How requests and responses share the connections and their streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionReuse {
    /// One connection per file, as many at a time as the transport has. HTTP/1.0, RFC 1945.
    Close,
    /// One request at a time on each connection, or on each stream if the transport has streams. RFC 9112 section 9.3.
    Keepalive,
    /// All requests at once; the responses of a connection or stream are whole and in order. RFC 9112 section 9.3.2.
    Pipelined,
    /// All requests at once; responses are interleaved frame by frame. HTTP/2, RFC 9113.
    #[default]
    Multiplexed,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            way: ConnectionReuse::default(),
            document: ByteCount(30_000),
            objects: 12,
            size: Sizes::Fixed(ByteCount(20_000)),
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

impl ConnectionReuse {
    /// Returns the name of the mode.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Keepalive => "keepalive",
            Self::Pipelined => "pipelined",
            Self::Multiplexed => "multiplexed",
        }
    }
}
