//! A TLS session that negotiates only transport parameters: messages of the right form, size and order,
//! without keys. RFC 9001 section 4, RFC 8446 section 4.
//!
//! With 0-RTT both ends remember an earlier connection: the client knows the server's transport parameters, which are
//! its own because both ends have one configuration, and the server sends no certificate.

use std::any::Any;
use std::io::Cursor;
use std::sync::Arc;

use bytes::BufMut;
use hol_wire::quic::{CONNECTION_ID_OCTETS, Secrets, Side};
use quinn_proto::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, TransportError, TransportErrorCode};

use crate::keys::{early_keys, keys, packet_keys};

/// Values of HandshakeType, RFC 8446 section 4.
mod message {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const ENCRYPTED_EXTENSIONS: u8 = 8;
    pub const FINISHED: u8 = 20;
}

/// Values of ExtensionType, RFC 8446 section 4.2, RFC 9001 section 8.2, RFC 8701.
mod extension {
    pub const SUPPORTED_GROUPS: u16 = 10;
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    pub const PRE_SHARED_KEY: u16 = 41;
    pub const EARLY_DATA: u16 = 42;
    pub const SUPPORTED_VERSIONS: u16 = 43;
    pub const PSK_KEY_EXCHANGE_MODES: u16 = 45;
    pub const KEY_SHARE: u16 = 51;
    pub const QUIC_TRANSPORT_PARAMETERS: u16 = 57;
    pub const GREASE: u16 = 0x0a0a;
}

/// Creates TLS sessions that do the handshake without keys.
pub(crate) struct SessionFactory {
    /// Length in octets of the handshake messages that the server sends after its ServerHello.
    pub(crate) flight: usize,
    /// Whether both endpoints know an earlier connection, whose ticket permits 0-RTT.
    pub(crate) zero_rtt: bool,
    /// Destination Connection ID of the first Initial packet, from which the client's random value is derived.
    pub(crate) origin: [u8; CONNECTION_ID_OCTETS],
}

/// The handshake of one endpoint.
struct Session {
    side: Side,
    sessions: Arc<SessionFactory>,
    parameters: Vec<u8>,
    /// The peer's transport parameters in the earlier connection; `None` without 0-RTT, and at the server.
    remembered: Option<TransportParameters>,
    peer: Option<TransportParameters>,
    /// Whether the peer has sent the extension `early_data`. A client offers 0-RTT with it, a server accepts
    /// 0-RTT.
    peer_has_early_data: bool,
    /// Octets of handshake messages that are still incomplete.
    inbox: Vec<u8>,
    /// Number of handshake steps that this endpoint has completed.
    steps_done: u8,
    /// The type of the peer's last handshake message.
    last_message: u8,
    /// Whether the peer's transport parameters have been reported to quinn-proto.
    announced: bool,
    /// Number of key updates so far.
    generation: u64,
}

impl SessionFactory {
    fn start(self: Arc<Self>, side: Side, parameters: &TransportParameters) -> Box<dyn crypto::Session> {
        let mut ours = Vec::new();
        parameters.write(&mut ours);
        let remembered = (self.zero_rtt && side == Side::Client).then_some(*parameters);
        Box::new(Session {
            side,
            sessions: self,
            parameters: ours,
            remembered,
            peer: None,
            peer_has_early_data: false,
            inbox: Vec::new(),
            steps_done: 0,
            last_message: 0,
            announced: false,
            generation: 0,
        })
    }
}

impl crypto::ClientConfig for SessionFactory {
    fn start_session(
        self: Arc<Self>,
        _: u32,
        _: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        Ok(self.start(Side::Client, parameters))
    }
}

impl crypto::ServerConfig for SessionFactory {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn crypto::Session> {
        self.start(Side::Server, parameters)
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, _: &ConnectionId, _: quinn_proto::Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let is_early = match self.side {
            Side::Client => self.remembered.is_some(),
            Side::Server => self.resumes(),
        };
        is_early.then(early_keys)
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.remembered.map(|_| self.peer_has_early_data)
    }

    fn is_handshaking(&self) -> bool {
        match self.side {
            Side::Client => self.steps_done < 3,
            Side::Server => self.last_message < message::FINISHED,
        }
    }

    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        self.inbox.extend_from_slice(octets);
        while let Some((kind, body)) = self.next_message() {
            self.handle_message(kind, &body)?;
        }
        Ok(self.peer.is_some() && !std::mem::replace(&mut self.announced, true))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer.or(self.remembered))
    }

    /// Writes the next handshake messages. Returns the keys of the next packet number space once they are
    /// available.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let has_heard = |kind| self.last_message >= kind;
        let step = match (self.side, self.steps_done) {
            (Side::Client, 0) => true,
            (Side::Client, 1) => has_heard(message::SERVER_HELLO),
            (Side::Client, 2) => has_heard(message::FINISHED),
            (Side::Server, 0 | 1) => has_heard(message::CLIENT_HELLO),
            _ => false,
        };
        if !step {
            return None;
        }
        self.steps_done += 1;
        match (self.side, self.steps_done) {
            (Side::Client, 1) => {
                self.client_hello(out);
                return None;
            }
            (Side::Client, 2) => {}
            (Side::Client, _) => put_finished(out),
            (Side::Server, 1) => put_server_hello(out, self.resumes()),
            (Side::Server, _) => self.write_server_flight(out),
        }
        Some(keys())
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.generation += 1;
        Some(packet_keys(self.generation))
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl Session {
    fn next_message(&mut self) -> Option<(u8, Vec<u8>)> {
        const HEADER_LENGTH: usize = 4;
        let [kind, a, b, c] = *self.inbox.first_chunk::<HEADER_LENGTH>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if self.inbox.len() < HEADER_LENGTH + length {
            return None;
        }
        let message: Vec<u8> = self.inbox.drain(..HEADER_LENGTH + length).collect();
        Some((kind, message[HEADER_LENGTH..].to_vec()))
    }

    /// Returns whether this server resumes an earlier connection of the client.
    fn resumes(&self) -> bool {
        self.sessions.zero_rtt && self.peer_has_early_data
    }

    /// Handles a handshake message of the peer. Its first extension contains the transport parameters.
    fn handle_message(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        self.last_message = kind;
        let extensions = match kind {
            message::CLIENT_HELLO => body.get(CLIENT_HELLO_EXTENSIONS_OFFSET..),
            message::ENCRYPTED_EXTENSIONS => body.get(2..),
            _ => return Ok(()),
        };
        let mut extensions = extensions.unwrap_or_default();
        let parameters = next_extension(&mut extensions).map(|(_, content)| content);
        self.peer_has_early_data = std::iter::from_fn(|| next_extension(&mut extensions))
            .any(|(kind, _)| kind == extension::EARLY_DATA);
        let side = match self.side {
            Side::Client => quinn_proto::Side::Client,
            Side::Server => quinn_proto::Side::Server,
        };
        let read = TransportParameters::read(side, &mut Cursor::new(parameters.unwrap_or_default()));
        self.peer = Some(read.map_err(|problem| TransportError {
            code: TransportErrorCode::TRANSPORT_PARAMETER_ERROR,
            frame: None,
            reason: problem.to_string(),
        })?);
        Ok(())
    }

    fn client_hello(&self, out: &mut Vec<u8>) {
        put_message(out, message::CLIENT_HELLO, |body| {
            let secrets = Secrets { origin: self.sessions.origin, sender: Side::Client };
            body.put_u16(TLS_1_2);
            body.put_slice(&secrets.client_random());
            body.put_slice(&[0, 0, 2, 0x13, 0x01, 1, 0]);
            put_vector(body, |extensions| {
                put_extension(extensions, extension::QUIC_TRANSPORT_PARAMETERS, &self.parameters);
                put_extension(extensions, extension::SUPPORTED_VERSIONS, &[2, 3, 4]);
                put_extension(extensions, extension::SUPPORTED_GROUPS, &[0, 2, 0, X25519]);
                put_extension(extensions, extension::SIGNATURE_ALGORITHMS, &[0, 2, 8, 4]);
                put_extension(extensions, extension::KEY_SHARE, &[&[0, 36][..], &key_share()].concat());
                if self.remembered.is_some() {
                    put_extension(extensions, extension::PSK_KEY_EXCHANGE_MODES, &[1, 1]);
                    put_extension(extensions, extension::EARLY_DATA, &[]);
                    put_extension(extensions, extension::PRE_SHARED_KEY, &ticket());
                }
            });
        });
    }

    /// Writes the server's extensions and Finished. They are padded to the length of certificates and their
    /// signature, unless the session is resumed, which needs neither.
    fn write_server_flight(&self, out: &mut Vec<u8>) {
        const EXTENSIONS_OVERHEAD: usize = 4 + 2 + 4 + 4;
        let filling =
            self.sessions.flight.saturating_sub(EXTENSIONS_OVERHEAD + self.parameters.len() + FINISHED);
        put_message(out, message::ENCRYPTED_EXTENSIONS, |body| {
            put_vector(body, |extensions| {
                put_extension(extensions, extension::QUIC_TRANSPORT_PARAMETERS, &self.parameters);
                match self.resumes() {
                    true => put_extension(extensions, extension::EARLY_DATA, &[]),
                    false => put_extension(extensions, extension::GREASE, &vec![0; filling]),
                }
            });
        });
        put_finished(out);
    }
}

const TLS_1_2: u16 = 0x0303;
const X25519: u8 = 29;
/// Number of octets of a ClientHello before its extensions: version, random, session ID, one cipher suite,
/// compression, and the length of the extensions.
const CLIENT_HELLO_EXTENSIONS_OFFSET: usize = 2 + 32 + 1 + 4 + 2 + 2;
/// Length in octets of a Finished message with SHA-256.
const FINISHED: usize = 4 + 32;

fn put_server_hello(out: &mut Vec<u8>, resumes: bool) {
    put_message(out, message::SERVER_HELLO, |body| {
        body.put_u16(TLS_1_2);
        body.put_slice(&[1; 32]);
        body.put_slice(&[0, 0x13, 0x01, 0]);
        put_vector(body, |extensions| {
            put_extension(extensions, extension::SUPPORTED_VERSIONS, &[3, 4]);
            put_extension(extensions, extension::KEY_SHARE, &key_share());
            if resumes {
                put_extension(extensions, extension::PRE_SHARED_KEY, &[0, 0]);
            }
        });
    });
}

fn put_finished(out: &mut Vec<u8>) {
    put_message(out, message::FINISHED, |body| body.put_slice(&[0; 32]));
}

/// Returns a key share: a group, and constant octets in place of a key. RFC 8446 section 4.2.8.
fn key_share() -> [u8; 36] {
    let mut share = [9; 36];
    share[..4].copy_from_slice(&[0, X25519, 0, 32]);
    share
}

/// Returns the content of the client's pre_shared_key extension: one ticket of 32 octets (the length that rustls
/// uses), its age and its binder. RFC 8446 section 4.2.11.
fn ticket() -> Vec<u8> {
    const TICKET: usize = 32;
    let identity = [&[0, TICKET as u8][..], &[8; TICKET], &[0; 4]].concat();
    let binder = [&[32][..], &[0; 32]].concat();
    [&[0, identity.len() as u8][..], &identity, &[0, binder.len() as u8], &binder].concat()
}

/// Removes the first extension from `extensions`; returns its type and its content.
fn next_extension<'e>(extensions: &mut &'e [u8]) -> Option<(u16, &'e [u8])> {
    let [kind @ .., a, b] = *extensions.split_off(..4)?.first_chunk::<4>()?;
    let content = extensions.split_off(..usize::from(u16::from_be_bytes([a, b])))?;
    Some((u16::from_be_bytes(kind), content))
}

fn put_message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.put_u8(kind);
    let start = out.len();
    out.put_uint(0, 3);
    body(out);
    let length = (out.len() - start - 3) as u32;
    out[start..start + 3].copy_from_slice(&length.to_be_bytes()[1..]);
}

fn put_vector(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u16(0);
    content(out);
    let length = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

fn put_extension(out: &mut Vec<u8>, kind: u16, content: &[u8]) {
    out.put_u16(kind);
    out.put_u16(content.len() as u16);
    out.put_slice(content);
}
