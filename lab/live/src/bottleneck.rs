//! The path that a router shapes in a network of several hosts: one link between two sides, which all flows
//! cross.

use std::collections::BTreeSet;

use hol_network::{LinkSpec, NetworkSpec};
use hol_scenario::Scenario;
use hol_traffic::Unsupported;

use crate::plain_network::{first_difference, names_only};

/// The path that all flows of a scenario cross, as a live world emulates it.
#[derive(Debug, Default)]
pub(crate) struct Bottleneck {
    /// Properties of the path. Its direction `up` leads from the side of the measured client to the other side.
    pub(crate) network: NetworkSpec,
    /// The nodes on the measured client's side.
    client_side: BTreeSet<String>,
}

impl Bottleneck {
    /// Returns the path of a scenario: the whole network if it names no nodes, otherwise the only link with settings.
    pub(crate) fn of(scenario: &Scenario) -> Result<Self, Unsupported> {
        let spec = &scenario.network;
        if spec.nodes.is_empty() {
            return Ok(Self {
                network: spec.clone(),
                client_side: [scenario.workload.client_node().to_owned()].into(),
            });
        }
        let link = only_shaped(spec)?;
        let from_side = nodes_on_side(spec, link);
        let LinkSpec { from: one, to: other, .. } = &spec.links[link];
        for [from, to] in flow_ends(scenario) {
            if from_side.contains(from) == from_side.contains(to) {
                return refuse(
                    "links",
                    &format!(
                        "a flow from {from:?} to {to:?} does not cross the link from {one:?} to {other:?}, which the router emulates"
                    ),
                );
            }
        }
        let mut network = network_of(&spec.links[link]);
        let is_along = from_side.contains(scenario.workload.client_node());
        if !is_along {
            std::mem::swap(&mut network.up, &mut network.down);
        }
        let is_near = |node: &&String| from_side.contains(node.as_str()) == is_along;
        Ok(Self { network, client_side: spec.nodes.iter().filter(is_near).cloned().collect() })
    }

    /// Returns whether a node is on the measured client's side.
    pub(crate) fn is_on_client_side(&self, node: &str) -> bool {
        self.client_side.contains(node)
    }
}

/// Returns the index of the only link with settings.
fn only_shaped(spec: &NetworkSpec) -> Result<usize, Unsupported> {
    let usual = names_only(spec);
    // A `[network]` key that a link does not have applies to all links.
    let beside = NetworkSpec { links: usual.links.clone(), ..spec.clone() };
    if let Some(key) = first_difference(&beside, &usual) {
        return refuse(
            &key,
            "only the link that the router emulates may have settings; remove this key from [network]",
        );
    }
    let mut shaped = (0..spec.links.len()).filter(|place| spec.links[*place] != usual.links[*place]);
    match (shaped.next(), shaped.next()) {
        (Some(place), None) => Ok(place),
        _ => refuse(
            "links",
            "a router emulates exactly one link; give settings such as delay, rate and loss to one link only",
        ),
    }
}

/// Returns the names of the two nodes of each flow.
fn flow_ends(scenario: &Scenario) -> Vec<[&str; 2]> {
    scenario.flow_specs().map(|flow| flow.end_nodes()).collect()
}

/// Returns the nodes on the `from` side of a link: those that the other links connect to its `from` node.
fn nodes_on_side(spec: &NetworkSpec, link: usize) -> BTreeSet<&str> {
    let others = spec.links.iter().enumerate().filter(|(place, _)| *place != link);
    let links = others.map(|(_, LinkSpec { from, to, .. })| vec![from.as_str(), to.as_str()]);
    let lans = spec.lans.iter().map(|lan| lan.nodes.iter().map(String::as_str).collect());
    let segments: Vec<Vec<&str>> = links.chain(lans).collect();
    let mut side = BTreeSet::from([spec.links[link].from.as_str()]);
    loop {
        let before = side.len();
        for segment in &segments {
            if segment.iter().any(|node| side.contains(node)) {
                side.extend(segment);
            }
        }
        if side.len() == before {
            return side;
        }
    }
}

/// Returns a network that consists only of this link. The keys of a link are also keys of a network.
fn network_of(link: &LinkSpec) -> NetworkSpec {
    let mut keys = serde_json::to_value(link).expect("a link can be serialised");
    let table = keys.as_object_mut().expect("a link is a table");
    table.retain(|key, _| !["from", "to", "name", "addresses"].contains(&key.as_str()));
    serde_json::from_slice(keys.to_string().as_bytes()).expect("a network has the keys of a link")
}

fn refuse<T>(key: &str, why: &str) -> Result<T, Unsupported> {
    let why = format!("{why}, or use --world model or kernel");
    Err(Unsupported { what: format!("network.{key}"), why })
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_scenario::Background;

    use super::*;

    fn scenario(links: &str, more: &str) -> Scenario {
        let network = format!(
            "{more}\nnodes = ['client', 'a', 'left', 'right', 'server', 'b']\nlans = [{{ nodes = ['client', 'a', 'left'] }}]\n\
             links = [{{ from = 'right', to = 'server' }}, {{ from = 'right', to = 'b' }}, {links}]"
        );
        let network = toml::from_str(&network).unwrap_or_else(|problem| panic!("{network}: {problem}"));
        Scenario::with_single_flow(
            network,
            "tcp".parse().unwrap(),
            toml::from_str("kind = 'echo'").unwrap(),
            1,
        )
    }

    const LINK: &str =
        "{ from = 'left', to = 'right', delay = '20ms', up = { loss = '1%' }, down = { delay = '5ms' } }";

    #[test]
    fn the_only_link_with_settings_is_the_path() {
        let whole = Bottleneck::of(&scenario(LINK, "")).unwrap();
        assert_eq!(whole.client_side.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "client", "left"]);
        let path = whole.network;
        let expected = "delay = '20ms'\nup = { loss = '1%' }\ndown = { delay = '5ms' }";
        assert_eq!(path, toml::from_str(expected).unwrap());
        let turned = LINK.replace("left", "x").replace("right", "left").replace('x', "right");
        let path = Bottleneck::of(&scenario(&turned, "")).unwrap();
        assert!(path.is_on_client_side("a") && !path.is_on_client_side("b"));
        assert_eq!(path.network.up.unwrap().delay, Some(Duration::from_millis(5)));
        let short: NetworkSpec = toml::from_str("loss = '3%'").unwrap();
        let alone = Scenario { network: short.clone(), ..scenario(LINK, "") };
        assert_eq!(Bottleneck::of(&alone).unwrap().network, short);
    }

    #[test]
    fn a_path_other_than_one_link_crossed_by_all_flows_is_refused() {
        let refusal = |scenario: &Scenario| Bottleneck::of(scenario).unwrap_err().to_string();
        for (links, more, words) in [
            ("{ from = 'left', to = 'right' }", "", "`network.links`"),
            (LINK, "delay = '1ms'", "`network.delay`"),
            (LINK, "events = [{ at = '1s', down = true, link = 'left-right' }]", "`network.events`"),
            (LINK, "ip = 'v6'", "`network.ip`"),
            (&format!("{LINK}, {{ from = 'a', to = 'right' }}"), "", "does not cross the link"),
        ] {
            let problem = refusal(&scenario(links, more));
            assert!(problem.contains(words), "{links} {more}: {problem}");
        }
        let mut two = scenario(LINK, "");
        two.network.links[0].delay = Some(Duration::ZERO);
        assert!(refusal(&two).contains("`network.links`"));
        let mut lan = scenario(LINK, "");
        lan.network.lans[0].delay = Some(Duration::ZERO);
        assert!(refusal(&lan).contains("`network.lans`"));
        let mut aside = scenario(LINK, "");
        aside.background = vec![Background {
            transport: "tcp".parse().unwrap(),
            workload: toml::from_str("kind = 'oneway'\nfrom = 'b'\nto = 'server'").unwrap(),
            messages: None,
            count: 1,
            spread: Duration::ZERO,
        }];
        let problem = refusal(&aside);
        assert!(
            problem.contains("from \"b\" to \"server\" does not cross the link from \"left\" to \"right\""),
            "{problem}"
        );
    }
}
