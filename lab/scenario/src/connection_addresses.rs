//! The addresses of a connection, the same in every world.

use hol_wire::Address;

/// Returns the `chosen` addresses of the client, and all addresses of the server. The server's first address is on the
/// same path as the client's.
pub fn connection_addresses(
    client: &[Address],
    server: &[Address],
    chosen: impl Fn(Address) -> bool,
) -> [Vec<Address>; 2] {
    let first = client.iter().position(|address| chosen(*address)).unwrap_or(0);
    let own = client.iter().copied().filter(|address| chosen(*address)).collect();
    let mut peer = server.to_vec();
    peer.rotate_left(first % server.len());
    [own, peer]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_address_on_the_clients_path_comes_first() {
        let [client, server] = [1, 2].map(|host| [1, 2].map(|path| hol_wire::ipv4(10, 0, path, host)));
        assert_eq!(connection_addresses(&client, &server, |_| true), [client.to_vec(), server.to_vec()]);
        let moved = connection_addresses(&client, &server, |address| address == client[1]);
        assert_eq!(moved, [vec![client[1]], vec![server[1], server[0]]]);
        assert_eq!(
            connection_addresses(&client, &server[..1], |address| address == client[1])[1],
            [server[0]]
        );
    }
}
