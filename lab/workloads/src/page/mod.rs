//! `page`: a browser loads pages, each a document and its objects.

mod browser;
mod files;
mod frame;
mod loading;
mod server;
mod size;
mod tracks;

use hol_base::{ByteCount, Duration, Seed};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use size::FileSize;

use crate::{Application, Host, Lanes, LengthOf, Pace, Workload, WorkloadError};
use browser::Browser;
use frame::Frame;
use server::Server;
use tracks::Tracks;

/// Its keys.
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
    const fn name(self) -> &'static str {
        match self {
            Self::Close => "close",
            Self::Keepalive => "keepalive",
            Self::Pipelined => "pipelined",
            Self::Multiplexed => "multiplexed",
        }
    }
}

impl Page {
    /// The longest file, in octets.
    const LARGEST: u64 = 1 << 30;

    /// Records of a page: itself, its first octets, its files.
    fn records(&self) -> u64 {
        2 + u64::from(self.objects) + u64::from(self.document.0 > 0)
    }

    fn is_possible(octets: u64) -> bool {
        (Frame::LEAST..=Self::LARGEST).contains(&octets)
    }
}

impl Workload for Page {
    fn name(&self) -> &'static str {
        "page"
    }

    fn about(&self) -> &'static str {
        "a browser loads pages, a document and its objects, over new connections each: a connection a file (way close), \
         kept alive, pipelined, or multiplexed as by HTTP/2; over SCTP on as many streams as the transport has"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &[
            "way", "document", "objects", "size", "waves", "request", "head", "think", "pause", "early",
            "pair", "reopen",
        ]
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let Self { document, objects, size, waves, request, head, .. } = self;
        let page = |problem| Err(WorkloadError::Page(problem));
        if document.0 == 0 && *objects == 0 {
            return page("it has neither a `document` nor `objects`; give it one of them");
        }
        if document.0 > 0 && !Self::is_possible(document.0) {
            return page("`document` needs at least 16 octets and at most 1 GiB; \"0B\" stands for none");
        }
        if !size.is_possible(Self::is_possible) {
            return page(
                "`size` needs at least 16 octets and at most 1 GiB, and `sigma` has to be between 0 and 4",
            );
        }
        if *waves == 0 || *waves > (*objects).max(1) {
            return page(
                "`waves` has to be between 1 and the number of `objects`: each wave has one at least",
            );
        }
        if !(Frame::LEAST..=Frame::MOST).contains(&request.0) {
            return page("`request` needs at least 16 octets and at most 16384");
        }
        if !(Frame::LEAST..=Frame::MOST).contains(&head.0) {
            return page("`head` needs at least 16 octets and at most 16384");
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Page
    }

    /// Each page has new ones.
    fn connections(&self, messages: u64, parallel: u16) -> u64 {
        let of_a_page = match self.way {
            Way::Close => self.records() - 2,
            Way::Keepalive | Way::Pipelined | Way::Multiplexed => parallel.into(),
        };
        messages.saturating_mul(of_a_page)
    }

    fn is_early(&self) -> bool {
        self.early
    }

    fn length_of(&self) -> LengthOf {
        frame::length_of
    }

    fn client(&self, lanes: Lanes, messages: u64, seed: Seed) -> Box<dyn Application> {
        Box::new(Browser::new(self.clone(), Tracks::new(lanes, self.pair), messages, seed))
    }

    fn server(&self, lanes: Lanes, messages: u64, _: Host) -> Box<dyn Application> {
        let expected = messages.saturating_mul(self.records());
        Box::new(Server::new(self.clone(), Tracks::new(lanes, self.pair), expected))
    }

    fn describe(&self) -> String {
        let Self { way, document, objects, size, .. } = self;
        let way = way.name();
        if document.0 == 0 {
            format!("page {way}, {objects} x {size}")
        } else {
            format!("page {way}, {document} + {objects} x {size}")
        }
    }
}
