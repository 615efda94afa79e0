//! `page`: a browser loads pages, each a document and its objects.

mod browser;
mod files;
mod frame;
mod keys;
mod loading;
mod server;
mod tracks;

use hol_base::Seed;
use hol_measure::RecordKind;

pub use keys::{ConnectionReuse, Page};

use crate::{Application, FramingFn, Host, Pace, Sizes, StreamLayout, Workload, WorkloadError};
use browser::Browser;
use frame::Frame;
use server::Server;
use tracks::Tracks;

impl Page {
    /// Maximum number of octets of a file.
    const MAX_FILE_OCTETS: u64 = 1 << 30;

    /// Returns the number of records per page: one of the page, one of its first octets, and one per file.
    fn records(&self) -> u64 {
        2 + u64::from(self.objects) + u64::from(self.document.0 > 0)
    }

    fn is_possible(octets: u64) -> bool {
        (Frame::MIN..=Self::MAX_FILE_OCTETS).contains(&octets)
    }
}

impl Workload for Page {
    fn name(&self) -> &'static str {
        "page"
    }

    fn about(&self) -> &'static str {
        "a browser loads pages (a document and its objects), each over new connections; SCTP uses all their streams"
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
            return page("`document` and `objects` are both 0; set one of them");
        }
        if document.0 > 0 && !Self::is_possible(document.0) {
            return page("`document` must be 16 octets to 1 GiB, or \"0B\" for no document");
        }
        if !size.is_possible(Self::is_possible) {
            return page(
                "`size` must be 16 octets to 1 GiB, `sigma` between 0 and 4, `max` at least `median`, and at least one weight above 0",
            );
        }
        if *waves == 0 || *waves > (*objects).max(1) {
            return page(
                "`waves` must be between 1 and the number of `objects`, because each wave has at least one",
            );
        }
        if !(Frame::MIN..=Frame::MAX).contains(&request.0) {
            return page("`request` must be 16 to 16384 octets");
        }
        if !(Frame::MIN..=Frame::MAX).contains(&head.0) {
            return page("`head` must be 16 to 16384 octets");
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }

    fn sizes_mut(&mut self) -> Vec<(&'static str, &mut Sizes)> {
        vec![("size", &mut self.size)]
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Page
    }

    /// Returns the maximum number of connections; each page opens new connections.
    fn connections(&self, messages: u64, parallel: u16) -> u64 {
        let of_a_page = match self.way {
            ConnectionReuse::Close => self.records() - 2,
            ConnectionReuse::Keepalive | ConnectionReuse::Pipelined | ConnectionReuse::Multiplexed => {
                parallel.into()
            }
        };
        messages.saturating_mul(of_a_page)
    }

    fn is_early(&self) -> bool {
        self.early
    }

    fn framing_fn(&self) -> FramingFn {
        frame::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, seed: Seed) -> Box<dyn Application> {
        Box::new(Browser::new(self.clone(), Tracks::new(lanes, self.pair), messages, seed))
    }

    fn server(&self, lanes: StreamLayout, messages: u64, _: Host) -> Box<dyn Application> {
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
