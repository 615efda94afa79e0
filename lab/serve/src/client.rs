//! The network of the client that sends a request.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;

use crate::refusal::Refusal;
use crate::server::SharedServer;

/// The network of a client, as a key of rate limits. It is the IPv4 address, or the /64 prefix of the IPv6
/// address, because one client may use all addresses of a /64. RFC 6177, section 2
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientNetwork(pub String);

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("{}/64", Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        })
    }
}

impl FromRequestParts<SharedServer> for ClientNetwork {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, server: &SharedServer) -> Result<Self, Refusal> {
        if server.config.is_behind_proxy
            && let Some(address) = forwarded(parts)
        {
            return Ok(address.into());
        }
        let connection = ConnectInfo::<SocketAddr>::from_request_parts(parts, server).await;
        connection.map(|ConnectInfo(address)| address.ip().into()).map_err(Refusal::internal)
    }
}

/// Returns the address that the proxy has added to `X-Forwarded-For`: the last address, because a client may send false
/// ones. RFC 7239, section 8.1
fn forwarded(parts: &Parts) -> Option<IpAddr> {
    let last = parts.headers.get_all("x-forwarded-for").iter().next_back()?;
    last.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_client() {
        let network = |address: &str| ClientNetwork::from(address.parse::<IpAddr>().unwrap()).0;
        assert_eq!(network("192.0.2.1"), "192.0.2.1");
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
    }
}
