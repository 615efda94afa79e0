//! Converts a configuration to quinn-proto's.

use std::sync::Arc;
use std::time::Duration as StdDuration;
#[expect(clippy::disallowed_types, reason = "quinn-proto requires a source of time")]
use std::time::SystemTime;

use hol_base::{Duration, Rng};
use hol_wire::quic::CONNECTION_ID_OCTETS;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, TimeSource, TransportConfig, VarInt, crypto,
};

use crate::connection_ids::ConnectionIds;
use crate::in_flight::InFlightCounterFactory;
use crate::session::SessionFactory;
use crate::tickets::{ResetKey, TokenKey};
use crate::{Config, Congestion};

/// Returns quinn-proto's settings of an endpoint, with random numbers from `rng`.
pub(crate) fn endpoint(mut rng: Rng) -> EndpointConfig {
    let mut seed = [0; 32];
    seed.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.next_u64().to_le_bytes()));
    let mut settings = EndpointConfig::new(Arc::new(ResetKey));
    settings.rng_seed(Some(seed)).cid_generator(move || Box::new(ConnectionIds(rng.clone())));
    settings
}

/// Returns quinn-proto's settings of a client whose first Destination Connection ID is `origin`.
pub(crate) fn client(
    config: &Config,
    sessions: Arc<dyn crypto::ClientConfig>,
    origin: [u8; CONNECTION_ID_OCTETS],
) -> ClientConfig {
    let mut settings = ClientConfig::new(sessions);
    settings.transport_config(Arc::new(transport(config)));
    settings.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&origin)));
    settings
}

/// Returns quinn-proto's settings of a server.
pub(crate) fn server(config: &Config, sessions: Arc<dyn crypto::ServerConfig>) -> ServerConfig {
    let mut settings = ServerConfig::new(sessions, Arc::new(TokenKey));
    settings.transport_config(Arc::new(transport(config)));
    settings.time_source(Arc::new(NoTime));
    settings
}

/// Returns the factory of TLS sessions without keys.
pub(crate) fn sessions(config: &Config, origin: [u8; CONNECTION_ID_OCTETS]) -> Arc<SessionFactory> {
    Arc::new(SessionFactory { flight: config.handshake_flight.0 as usize, zero_rtt: config.zero_rtt, origin })
}

/// A clock that always returns the same time of day, because only tokens use it.
struct NoTime;

#[expect(clippy::disallowed_types, reason = "quinn-proto requires a source of the time of day")]
impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

fn transport(config: &Config) -> TransportConfig {
    let varint = |value| VarInt::from_u64(value).expect("a configuration is checked first");
    let mut settings = TransportConfig::default();
    settings
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(config.max_streams))
        .send_fairness(config.send_fairness)
        .initial_rtt(standard(config.initial_rtt))
        .packet_threshold(config.packet_threshold)
        .time_threshold(config.time_threshold)
        .persistent_congestion_threshold(config.persistent_congestion_threshold)
        .initial_mtu(config.mtu.0 as u16)
        .mtu_discovery_config(mtu_discovery(config))
        .stream_receive_window(varint(config.stream_receive_window.0))
        .receive_window(varint(config.receive_window.0))
        .send_window(config.send_window.0)
        .datagram_send_buffer_size(config.datagram_send_buffer.0 as usize)
        .max_idle_timeout(
            non_zero(config.idle_timeout)
                .map(|time| IdleTimeout::try_from(time).expect("the configuration limits the idle timeout")),
        )
        .keep_alive_interval(non_zero(config.keep_alive))
        .ack_frequency_config(ack_frequency(config))
        .congestion_controller_factory(Arc::new(InFlightCounterFactory(congestion(config))));
    settings
}

fn congestion(config: &Config) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = config.initial_window.0;
    match config.congestion {
        Congestion::Bbr => {
            let mut bbr = BbrConfig::default();
            bbr.initial_window(window);
            Arc::new(bbr)
        }
        Congestion::Cubic => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(window);
            Arc::new(cubic)
        }
        Congestion::NewReno => {
            let mut reno = NewRenoConfig::default();
            reno.initial_window(window);
            Arc::new(reno)
        }
    }
}

fn mtu_discovery(config: &Config) -> Option<MtuDiscoveryConfig> {
    let mut settings = MtuDiscoveryConfig::default();
    settings.upper_bound(config.mtu_discovery.0 as u16);
    (config.mtu_discovery.0 > 0).then_some(settings)
}

/// Returns the settings that an ACK_FREQUENCY frame sends to the peer; `None` if all of them are
/// the defaults.
fn ack_frequency(config: &Config) -> Option<AckFrequencyConfig> {
    let Config { ack_threshold, max_ack_delay, .. } = *config;
    let mut settings = AckFrequencyConfig::default();
    settings.ack_eliciting_threshold(VarInt::from_u32(ack_threshold));
    settings.max_ack_delay((max_ack_delay != Config::MAX_ACK_DELAY).then(|| standard(max_ack_delay)));
    ((ack_threshold, max_ack_delay) != (1, Config::MAX_ACK_DELAY)).then_some(settings)
}

/// Returns the duration for quinn-proto; `None` if it is zero.
fn non_zero(duration: Duration) -> Option<StdDuration> {
    (!duration.is_zero()).then(|| standard(duration))
}

fn standard(duration: Duration) -> StdDuration {
    StdDuration::from_nanos(duration.as_nanos())
}
