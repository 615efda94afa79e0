//! The network of a run: client and server, and a router for each link, which alone delays and loses.

use std::net::Ipv4Addr;

use hol_base::Seed;
use nix::net::if_::if_nametoindex;

use super::namespace::{self, Namespace};
use super::route::{self, Interface};
use super::{Trouble, offload};
use crate::job::LineFacts;
use crate::netem::{Line, Link, Plan};

/// The namespaces.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) client: Namespace,
    pub(super) server: Namespace,
    routers: Vec<Namespace>,
}

/// Builds what `plan` says; `seed` is the run's.
pub(super) fn build(plan: &Plan, seed: Seed) -> Result<Topology, Trouble> {
    let (client, server) = (Namespace::new()?, Namespace::new()?);
    let mut topology = Topology { client, server, routers: Vec::new() };
    for (link, number) in plan.links.iter().zip(1..) {
        topology.add_router(link, number, seed)?;
    }
    Ok(topology)
}

/// The address of one end of a link: the same as in the model world.
pub(super) fn address(link: usize, host: u8) -> Ipv4Addr {
    let [.., high, low] = link.to_be_bytes();
    Ipv4Addr::new(10, high, low, host)
}

/// One end of the link `number`: `host` is 1 for the client's side and 2 for the server's.
fn interface(number: usize, host: u8, router: bool) -> Interface {
    let [.., high, low] = number.to_be_bytes();
    let side = if host == 1 { "client" } else { "server" };
    let name = if router { format!("to-{side}") } else { format!("{side}{number}") };
    // Locally administered.
    Interface { name, hardware: [2, 0, u8::from(router), high, low, host] }
}

impl Topology {
    fn add_router(&mut self, link: &Link, number: usize, seed: Seed) -> Result<(), Trouble> {
        let router = Namespace::new()?;
        let sides = [(&self.client, 1, 2, &link.down), (&self.server, 2, 1, &link.up)];
        for (host, own, far, line) in sides {
            let (near, outer) = (interface(number, own, true), interface(number, own, false));
            router.enter()?;
            route::cable(&router.routing, &near, host, &outer, link.mtu)?;
            let index = switch_on(&router, &near)?;
            route::host(&router.routing, index, address(number, own), outer.hardware)?;
            route::emulate(&router.routing, index, &seeded(line, seed))?;
            host.enter()?;
            let index = switch_on(host, &outer)?;
            route::address(&host.routing, index, address(number, own))?;
            route::host(&host.routing, index, address(number, far), near.hardware)?;
        }
        self.routers.push(router);
        Ok(())
    }

    /// What each line carried and lost, packets that are still under way among the lost.
    pub(super) fn lines(&self, plan: &Plan) -> Result<Vec<LineFacts>, Trouble> {
        let mut lines = Vec::new();
        for (router, link) in self.routers.iter().zip(&plan.links) {
            router.enter()?;
            let [client, server] = [1, 2].map(|host| namespace::packets(&interface(1, host, true).name));
            let ((from_client, to_client), (from_server, to_server)) =
                client.zip(server).ok_or("a router has lost its interfaces")?;
            for (line, sent, arrived) in
                [(&link.up, from_client, to_server), (&link.down, from_server, to_client)]
            {
                let name = line.name.clone();
                lines.push(LineFacts { name, sent, dropped: sent.saturating_sub(arrived) });
            }
        }
        Ok(lines)
    }
}

fn seeded(line: &Line, seed: Seed) -> Vec<(crate::netem::Stage, u64)> {
    line.stages.iter().enumerate().map(|(index, stage)| (*stage, line.seed(seed, index))).collect()
}

/// Switches an interface of this thread's namespace on, without offloads; returns its index.
fn switch_on(here: &Namespace, interface: &Interface) -> Result<u32, Trouble> {
    offload::turn_off(&interface.name)?;
    let index = if_nametoindex(interface.name.as_str())?;
    route::up(&here.routing, index)?;
    Ok(index)
}
