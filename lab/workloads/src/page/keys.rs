//! Settings of the workload `page`.

use hol_base::{ByteCount, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Sizes;

/// Settings of the workload `page`: the keys of `[workload] kind = "page"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Page {
    /// How requests share connections: `"close"` uses one per file, `"multiplexed"` works as in HTTP/2. Default
    /// `"multiplexed"`.
    pub way: ConnectionReuse,
    /// Octets of the document, which references the objects; with `"0B"` there is none, and all objects are known from
    /// the start. Default 30 kB.
    pub document: ByteCount,
    /// Number of objects: the files besides the document. Default 12.
    pub objects: u16,
    /// Octets per object, in any form that the key `request` of the workload rpc accepts. Default 20 kB.
    pub size: Sizes,
    /// Depth of references: with 2 the document references half of the objects, which reference the rest. Default 1.
    pub waves: u16,
    /// Octets per request. Default 400.
    pub request: ByteCount,
    /// Octets of a response's head, before the file. Default 300.
    pub head: ByteCount,
    /// Server think time before each response; responses are prepared in parallel. Default none.
    pub think: Duration,
    /// Pause between pages, with all connections closed. Default 1 s.
    pub pause: Duration,
    /// Send requests before the connection is open, in SCTP with the COOKIE ECHO (RFC 9260 section 5.1). Default no.
    pub early: bool,
    /// Use one stream for a file's request and the next for its response. Default no.
    pub pair: bool,
    /// Reopen a failed connection and request incomplete files again. Default no: the run ends.
    pub reopen: bool,
}

/// How requests and responses share connections and streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionReuse {
    /// Each file uses a new connection; the transport's option `connections` limits how many are in use at the same
    /// time. HTTP/1.0, RFC 1945.
    Close,
    /// Each connection, or each stream if the transport has streams, carries one request at a time. RFC 9112 section
    /// 9.3.
    Keepalive,
    /// All requests are sent at once. Each response is sent whole, in the order of the requests on its connection or
    /// stream. RFC 9112 section 9.3.2.
    Pipelined,
    /// All requests are sent at once, and responses are interleaved frame by frame. HTTP/2, RFC 9113.
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
    /// Returns the name of the mode in experiments.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Keepalive => "keepalive",
            Self::Pipelined => "pipelined",
            Self::Multiplexed => "multiplexed",
        }
    }
}
