//! TLS 1.3 by rustls, as in RFC 9001: a server with its own certificate, and clients that trust no other certificate.
//!
//! The certificate is padded so that the server's flight has the configured length, whatever the random length of its
//! transport parameters. The certificate is always valid, because the clock of an emulated machine may show any time.
//! There is one cipher suite, whose limits also apply to the simulator's packets. Without 0-RTT there are no session
//! tickets; with it, clients have tickets of earlier connections (`resumption`). Apart from the cryptography, the
//! handshake is the same as in the simulator.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use hol_base::ByteCount;
use quinn_proto::ConnectionId;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::crypto::{ClientConfig, Keys, ServerConfig, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use rcgen::{Certificate, CertificateParams, CustomExtension, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::ServerSessionMemoryCache;
use rustls::{CipherSuite, RootCertStore, version};

use crate::Config;
use crate::resumption::{TICKET_COUNT, Tickets};

/// The server's name in its certificate.
pub(crate) const SERVER_NAME: &str = "headofline";

/// The TLS configuration of the client and the server of a flow.
#[derive(Clone)]
pub struct Tls {
    client: Arc<QuicClientConfig>,
    server: Arc<PaddedServer>,
    /// The clients' tickets, and the TLS configuration of the earlier connections that issue them; `None` without
    /// 0-RTT.
    earlier: Option<(Arc<Tickets>, Arc<Self>)>,
}

/// A server whose certificates are padded, so that its first flight has the same length whatever the length of its
/// transport parameters. All certificates have one key and one name, so a client that trusts one trusts the
/// others.
struct PaddedServer {
    key: Arc<KeyPair>,
    flight: ByteCount,
    /// The sessions for which the server has issued tickets; `None` if it does not accept 0-RTT.
    sessions: Option<Arc<ServerSessionMemoryCache>>,
    /// Number of tickets that the server issues on each connection.
    ticket_count: usize,
    /// The server's TLS configurations, by the length of its transport parameters in octets.
    configurations: Mutex<BTreeMap<usize, Arc<QuicServerConfig>>>,
}

/// A log of the TLS secrets of connections, one per line. draft-ietf-tls-keylogfile.
#[derive(Debug, Clone, Default)]
pub struct KeyLog(Arc<Mutex<String>>);

impl Tls {
    /// Minimum length of a server's first flight in octets: transport parameters, an unpadded certificate, the
    /// signature and Finished.
    pub const MIN_FLIGHT: ByteCount = ByteCount(600);

    /// Creates the TLS configuration of a server with a new certificate, and of clients that trust it. Both write
    /// their secrets to `log`. Key and signatures use the randomness of the operating system.
    ///
    /// # Panics
    /// If the operating system has no randomness.
    pub fn new(config: &Config, log: KeyLog) -> Self {
        Self::of(KeyPair::generate_for(&PKCS_ED25519).expect("the system has randomness"), config, log)
    }

    /// Creates the TLS configuration from a `secret` that both hosts know. The key of the server's certificate is
    /// derived from the secret, so clients know which certificate to trust.
    pub fn from_shared_secret(secret: &[u8; 32], config: &Config, log: KeyLog) -> Self {
        /// The prefix of an Ed25519 private key in PKCS #8. RFC 8410 section 7.
        const PRIVATE_KEY_PREFIX: [u8; 16] =
            [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
        let key = [&PRIVATE_KEY_PREFIX[..], secret].concat();
        let key = KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(key), &PKCS_ED25519);
        Self::of(key.expect("32 octets are a valid Ed25519 key"), config, log)
    }

    fn of(key: KeyPair, config: &Config, log: KeyLog) -> Self {
        let mut trusted = RootCertStore::empty();
        trusted.add(signed(&key, 0).der().clone()).expect("a signed certificate can be a trust anchor");
        let mut client = rustls::ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&version::TLS13])
            .expect("ring has TLS 1.3")
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let key = Arc::new(key);
        let server = |sessions, ticket_count| PaddedServer {
            key: Arc::clone(&key),
            flight: config.handshake_flight,
            sessions,
            ticket_count,
            configurations: Mutex::default(),
        };
        if !config.zero_rtt {
            client.key_log = Arc::new(log);
            return Self { client: quic_client(client), server: Arc::new(server(None, 0)), earlier: None };
        }
        let (tickets, sessions) = (Arc::new(Tickets::default()), ServerSessionMemoryCache::new(MAX_SESSIONS));
        client.resumption = Resumption::store(tickets.clone());
        client.enable_early_data = true;
        let issuer = server(Some(Arc::clone(&sessions)), TICKET_COUNT);
        let issuer = Self { client: quic_client(client.clone()), server: Arc::new(issuer), earlier: None };
        tickets.prepare(&issuer, config);
        client.key_log = Arc::new(log);
        Self {
            client: quic_client(client),
            server: Arc::new(server(Some(sessions), 0)),
            earlier: Some((tickets, Arc::new(issuer))),
        }
    }

    /// Returns the TLS configuration of a client. It has a ticket if `config` permits 0-RTT.
    pub(crate) fn client(&self, config: &Config) -> Arc<dyn ClientConfig> {
        if let Some((tickets, issuer)) = &self.earlier {
            tickets.ensure_one_more(issuer, config);
        }
        self.client.clone()
    }

    /// Returns the TLS configuration of the server.
    pub(crate) fn server(&self) -> Arc<dyn ServerConfig> {
        self.server.clone()
    }
}

impl PaddedServer {
    /// Returns the server's TLS configuration for transport parameters of `octets` octets.
    fn of_parameters(&self, octets: usize) -> Arc<QuicServerConfig> {
        let mut made = self.configurations.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(made.entry(octets).or_insert_with(|| Arc::new(self.configuration(octets))))
    }

    fn configuration(&self, parameters: usize) -> QuicServerConfig {
        let certificate = certificate(&self.key, self.flight, parameters);
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let mut server = rustls::ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_protocol_versions(&[&version::TLS13])
            .expect("ring has TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .expect("the key belongs to the certificate");
        server.send_tls13_tickets = self.ticket_count;
        if let Some(sessions) = &self.sessions {
            server.session_storage = sessions.clone();
            // RFC 9001 section 4.6.1: QUIC has no limit of its own in a ticket.
            server.max_early_data_size = u32::MAX;
        }
        QuicServerConfig::try_from(server).expect("the provider has the cipher suite of Initial packets")
    }
}

impl ServerConfig for PaddedServer {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.of_parameters(0).initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.of_parameters(0).retry_tag(version, id, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut octets = Vec::new();
        parameters.write(&mut octets);
        self.of_parameters(octets.len()).start_session(version, parameters)
    }
}

/// Maximum number of sessions that a server remembers. It exceeds the number of clients that have a ticket at any
/// time.
const MAX_SESSIONS: usize = 1 << 14;

fn quic_client(client: rustls::ClientConfig) -> Arc<QuicClientConfig> {
    Arc::new(
        QuicClientConfig::try_from(client).expect("the provider has the cipher suite of Initial packets"),
    )
}

fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider
}

/// Returns a certificate of `key` with which the server's first flight has the length `flight`, if its transport
/// parameters have `parameters` octets.
fn certificate(key: &KeyPair, flight: ByteCount, parameters: usize) -> Certificate {
    /// Length in octets of the parts of the flight other than the certificate and the transport parameters:
    /// EncryptedExtensions with the empty answer to the client's `server_name`, the framing of the certificate,
    /// CertificateVerify with Ed25519, and Finished. RFC 8446 sections 4.3.1 and 4.4, RFC 6066 section 3.
    const OVERHEAD: usize = 14 + 13 + 72 + 36;
    let bare = signed(key, 0);
    let length = (flight.0 as usize).saturating_sub(OVERHEAD + parameters);
    let mut padding = length.saturating_sub(bare.der().len());
    if padding == 0 {
        return bare;
    }
    let surplus = signed(key, padding).der().len().saturating_sub(length);
    padding = padding.saturating_sub(surplus).max(1);
    signed(key, padding)
}

/// Returns a self-signed certificate that has `padding` octets in a non-critical extension. RFC 5280 section 4.2.
fn signed(key: &KeyPair, padding: usize) -> Certificate {
    /// The OID of the padding extension, in the arc that RFC 5612 reserves for examples in documentation.
    const PADDING_OID: [u64; 8] = [1, 3, 6, 1, 4, 1, 32_473, 1];
    let mut parameters =
        CertificateParams::new([SERVER_NAME.to_owned()]).expect("the constant is a valid name");
    parameters.serial_number = Some(SerialNumber::from(1));
    if padding > 0 {
        let padding = CustomExtension::from_oid_content(&PADDING_OID, vec![0; padding]);
        parameters.custom_extensions.push(padding);
    }
    parameters.self_signed(key).expect("a new key can sign its certificate")
}

impl KeyLog {
    /// Returns the lines of the key log so far.
    pub fn lines(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hexadecimal =
            |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>();
        writeln!(lines, "{label} {} {}", hexadecimal(client_random), hexadecimal(secret))
            .expect("writing to a string does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_fills_the_configured_flight() {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let length = |flight, parameters| certificate(&key, ByteCount(flight), parameters).der().len();
        assert!(length(600, 96) < 400, "{}", length(600, 96));
        for flight in [900, 2500, 4000, 12_000] {
            for parameters in 80..120 {
                let all = length(flight, parameters) + 135 + parameters;
                assert!(all.abs_diff(flight as usize) <= 2, "{all} for {flight} with {parameters}");
            }
        }
    }
}
