//! Derives from a transport the streams and connections that carry the messages of a workload. The result is
//! the same for every world.

use hol_quic::MessageMapping;
use hol_stack::{Protocol, Tls, TransportSpec};
use hol_workloads::{Handshake, StreamLayout};

/// Returns the streams and connections of a transport.
pub fn stream_layout(transport: &TransportSpec) -> StreamLayout {
    StreamLayout {
        streams: transport.streams(),
        connections: transport.connections(),
        may_lose_messages: transport.may_lose_messages(),
        is_stream: match transport.protocol() {
            Protocol::Tcp { .. } | Protocol::Mptcp { .. } | Protocol::Unix { .. } => true,
            Protocol::Quic { mapping, .. } => *mapping == MessageMapping::Streams,
            Protocol::Sctp { .. } | Protocol::Udp { .. } => false,
        },
        handshake: transport.tls().map(handshake),
    }
}

/// Returns the sizes of a handshake with X25519, a server name and ALPN. The certificates are as long as QUIC's
/// (`handshake_flight` of its stack): a leaf and an intermediate with P-256 keys.
const fn handshake(tls: Tls) -> Handshake {
    /// Octets of a TLS 1.3 record in addition to its content.
    const RECORD_OVERHEAD: u16 = 22;
    /// Octets of the record of the `ChangeCipherSpec`. RFC 8446 appendix D.4.
    const CHANGE_CIPHER_SPEC_OCTETS: u16 = 6;
    /// Octets of the record of a `ClientHello` without resumption.
    const CLIENT_HELLO_OCTETS: u16 = 5 + 256;
    /// Octets of the extensions for resumption: `pre_shared_key` with a ticket of 200 octets and a binder of SHA-256,
    /// and `psk_key_exchange_modes`.
    const TICKET_OCTETS: u16 = 4 + 2 + 2 + 200 + 4 + 2 + 1 + 32 + 6;
    /// Octets of the record of a `ServerHello` without resumption, and of the `ChangeCipherSpec` after it.
    const SERVER_HELLO_OCTETS: u16 = 5 + 90 + CHANGE_CIPHER_SPEC_OCTETS;
    /// Octets of the rest of a flight with two certificates: `EncryptedExtensions` to `Finished`.
    const CERTIFICATE_OCTETS: u16 = 2500;
    /// Octets of a `Finished` with SHA-256.
    const FINISHED_OCTETS: u16 = 4 + 32;
    /// Octets of an `EncryptedExtensions` with ALPN.
    const ENCRYPTED_EXTENSIONS_OCTETS: u16 = 4 + 2 + 11;
    const CLIENT_FINISHED: u16 = CHANGE_CIPHER_SPEC_OCTETS + FINISHED_OCTETS + RECORD_OVERHEAD;
    match tls {
        Tls::Full => Handshake {
            hello: CLIENT_HELLO_OCTETS,
            answer: SERVER_HELLO_OCTETS + CERTIFICATE_OCTETS + RECORD_OVERHEAD,
            finished: CLIENT_FINISHED,
            is_early: false,
        },
        Tls::Resumed => Handshake {
            hello: CLIENT_HELLO_OCTETS + TICKET_OCTETS,
            answer: SERVER_HELLO_OCTETS + 6 + ENCRYPTED_EXTENSIONS_OCTETS + FINISHED_OCTETS + RECORD_OVERHEAD,
            finished: CLIENT_FINISHED,
            is_early: false,
        },
        Tls::Early => Handshake {
            hello: CLIENT_HELLO_OCTETS + TICKET_OCTETS + 4 + CHANGE_CIPHER_SPEC_OCTETS,
            answer: SERVER_HELLO_OCTETS
                + 6
                + ENCRYPTED_EXTENSIONS_OCTETS
                + 4
                + FINISHED_OCTETS
                + RECORD_OVERHEAD,
            // EndOfEarlyData is in its own record.
            finished: 4 + RECORD_OVERHEAD + FINISHED_OCTETS + RECORD_OVERHEAD,
            is_early: true,
        },
    }
}
