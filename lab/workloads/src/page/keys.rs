//! Settings of the workload `page`.

use hol_base::{ByteCount, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Sizes;

/// Settings of the workload `page`: the keys of `[workload] kind = "page"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// How requests share connections; `"close"`: a connection for each file; `"multiplexed"`: as in HTTP/2. Default
    /// `"multiplexed"`.
    pub way: ConnectionReuse,
    /// Octets of the document, which names the objects; with `"0B"` there is none, and all objects are known from the
    /// start. Default 30 kB.
    pub document: ByteCount,
    /// Number of objects: the files besides the document. Default 12.
    pub objects: u16,
    /// Octets per object, in any form that the key `request` of the workload rpc accepts. Default 20 kB.
    pub size: Sizes,
    /// Depth of references: with 2 the document references half of the objects, which reference the rest. Default 1.
    pub waves: u16,
    /// Octets per request. Default 400.
    pub request: ByteCount,
    /// Octets of a response before its body. Default 300.
    pub head: ByteCount,
    /// Server time before each response; responses are prepared in parallel. Default none.
    pub think: Duration,
    /// Pause between pages, with all connections closed. Default 1 s.
    pub pause: Duration,
    /// Send requests before the connection is open; SCTP: with the COOKIE ECHO (RFC 9260 section 5.1). Default no.
    pub early: bool,
    /// Use one stream for a file's request and the next for its response. Default no.
    pub pair: bool,
    /// Reopen a failed connection and request incomplete files again. Default no: the run ends.
    pub reopen: bool,
}

/// How requests and responses share the connections and their streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionReuse {
    /// A new connection for each file; the transport's option `connections` limits how many are in use at a time.
    /// HTTP/1.0, RFC 1945.
    Close,
    /// One request at a time on each connection, or on each stream if the transport has streams. RFC 9112 section 9.3.
    Keepalive,
    /// All requests at once; the responses on a connection or stream are sent whole and in order. RFC 9112 section
    /// 9.3.2.
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
