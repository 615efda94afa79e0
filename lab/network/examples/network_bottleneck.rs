//! A network without endpoints: datagrams enter a link faster than it sends them, and leave it late or not at all.

use hol_network::base::{Duration, Seed, Time};
use hol_network::wire::{Packet, udp::Datagram};
use hol_network::{Network, NetworkError, NetworkSpec, Topology};

fn main() -> Result<(), NetworkError> {
    // 20 datagrams of 1000 octets in 20 ms are 8 Mbit/s.
    let spec = NetworkSpec {
        rate: "4Mbit".parse().expect("a rate"),
        delay: Duration::from_millis(25),
        queue: "5p".parse().expect("a queue"),
        ..NetworkSpec::default()
    };
    let topology = Topology::new(&spec)?;
    let [client, server] = ["client", "server"]
        .map(|name| topology.node(name).expect("a network of paths has a client and a server"));
    let [from, to] = [client, server].map(|node| topology.addresses(node)[0]);
    let mut network = Network::new(&topology, Seed(1), None);
    let mut sent = 0;
    loop {
        let next_send = if sent < 20 { Time::from_millis(sent) } else { Time::MAX };
        let now = next_send.min(network.next_action());
        if now == Time::MAX {
            break;
        }
        if now == next_send {
            let stamp = Default::default();
            let payload = vec![sent as u8; 1000].into();
            let datagram = Datagram { source_port: 1, destination_port: 2, payload, stamp };
            network.send(now, client, Packet::new(from, to, datagram));
            sent += 1;
        }
        while let Some(arrival) = network.poll(now) {
            println!("{:7.3} ms  {}", now.as_secs_f64() * 1e3, arrival.packet);
        }
    }
    println!("the queue dropped {} of {sent}", network.drops().queue);
    Ok(())
}
