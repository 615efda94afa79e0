//! Sends packets over three nodes in a row. The link between the last two is lossy, and a tap sees each packet at
//! each interface.

use hol_network::base::{Seed, Time};
use hol_network::wire::{Packet, udp::Datagram};
use hol_network::{
    LinkSpec, LossSpec, Network, NetworkError, NetworkSpec, PacketInTransit, Tap, TapEvent, TapPoint,
    Topology,
};

/// Prints what happens to each packet.
struct Printer;

impl Tap for Printer {
    fn packet(&mut self, now: Time, at: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent) {
        println!("{:7.3} ms  {:10}  packet {} {event:?}", now.as_secs_f64() * 1e3, at.name, transit.number);
    }
}

fn main() -> Result<(), NetworkError> {
    let link = |from: &str, to: &str| LinkSpec::between(from.to_owned(), to.to_owned());
    let loss = "30%".parse().expect("a share");
    let lossy = LinkSpec { loss: Some(LossSpec::Independent(loss)), ..link("router", "server") };
    let spec = NetworkSpec {
        nodes: ["client", "router", "server"].map(str::to_owned).to_vec(),
        links: vec![link("client", "router"), lossy],
        ..NetworkSpec::default()
    };
    let topology = Topology::new(&spec)?;
    let [client, server] =
        ["client", "server"].map(|name| topology.node(name).expect("the network has this node"));
    let [from, to] = [client, server].map(|node| topology.addresses(node)[0]);
    let mut printer = Printer;
    let mut network = Network::new(&topology, Seed(1), Some(&mut printer));
    for number in 0..5 {
        let (payload, stamp) = (vec![number; 100].into(), Default::default());
        let datagram = Datagram { source_port: 1, destination_port: 2, payload, stamp };
        network.send(Time::ZERO, client, Packet::new(from, to, datagram));
    }
    while network.next_action() < Time::MAX {
        let _ = network.poll(network.next_action());
    }
    println!("{} lost", network.drops().loss);
    Ok(())
}
