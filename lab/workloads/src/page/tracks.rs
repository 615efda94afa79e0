//! Tracks: the connections or streams that carry a browser's parallel requests.

use crate::StreamLayout;

/// The tracks of a page. A track carries requests and their responses; it is a connection, a stream, or a pair of
/// streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tracks {
    connections: u16,
    /// Number of tracks per connection.
    tracks: u16,
    /// Whether each track is a pair of streams.
    uses_stream_pairs: bool,
}

impl Tracks {
    /// Divides the streams of a layout into tracks.
    pub(crate) fn new(lanes: StreamLayout, uses_stream_pairs: bool) -> Self {
        let streams = lanes.streams / lanes.connections;
        // With only one stream there are no pairs.
        let uses_stream_pairs = uses_stream_pairs && streams > 1;
        Self {
            connections: lanes.connections,
            tracks: if uses_stream_pairs { streams / 2 } else { streams },
            uses_stream_pairs,
        }
    }

    /// Returns the number of tracks.
    pub(crate) fn count(self) -> u16 {
        self.connections * self.tracks
    }

    /// Returns the number of connections.
    pub(crate) fn connections(self) -> u16 {
        self.connections
    }

    /// Returns the index of a track's connection among the page's connections.
    pub(crate) fn connection(self, track: u16) -> u16 {
        track % self.connections
    }

    /// Returns the stream on which the requests of a track are sent.
    pub(crate) fn request_stream(self, track: u16) -> u16 {
        let place = track / self.connections;
        if self.uses_stream_pairs { 2 * place } else { place }
    }

    /// Returns the stream of the response to a request on the stream `request`.
    pub(crate) fn response_stream(self, request: u16) -> u16 {
        if self.uses_stream_pairs { request + 1 } else { request }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks(streams: u16, connections: u16, uses_stream_pairs: bool) -> Tracks {
        Tracks::new(
            StreamLayout {
                streams,
                connections,
                may_lose_messages: false,
                is_stream: false,
                handshake: None,
            },
            uses_stream_pairs,
        )
    }

    #[test]
    fn tracks_alternate_between_associations() {
        let four = tracks(4, 2, false);
        let all: Vec<_> = (0..four.count()).map(|t| (four.connection(t), four.request_stream(t))).collect();
        assert_eq!(all, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }

    /// The HTTP server of Pfuetzenreuter 2004 answers requests on stream 2i with responses on stream 2i + 1.
    #[test]
    fn two_streams_form_a_track() {
        let five = tracks(5, 1, true);
        let all: Vec<_> = (0..five.count())
            .map(|track| five.request_stream(track))
            .map(|request| (request, five.response_stream(request)))
            .collect();
        assert_eq!(all, [(0, 1), (2, 3)]);
        let tcp = tracks(3, 3, true);
        assert_eq!((tcp.count(), tcp.request_stream(2), tcp.response_stream(0)), (3, 0, 0));
    }
}
