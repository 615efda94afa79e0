//! Networks that only name nodes, and the keys of other networks that do more.

use hol_network::{LanSpec, LinkSpec, NetworkSpec};
use hol_scenario::Scenario;

/// Returns a `[network]` table that only names nodes, without the properties of links.
pub(crate) fn names_only(spec: &NetworkSpec) -> NetworkSpec {
    let link = |LinkSpec { from, to, name, .. }: &LinkSpec| {
        let link = LinkSpec::between(from.clone(), to.clone());
        LinkSpec { name: name.clone(), ..link }
    };
    let lan =
        |LanSpec { nodes, name, .. }: &LanSpec| LanSpec { name: name.clone(), ..LanSpec::of(nodes.clone()) };
    NetworkSpec {
        nodes: spec.nodes.clone(),
        links: spec.links.iter().map(link).collect(),
        lans: spec.lans.iter().map(lan).collect(),
        ..NetworkSpec::default()
    }
}

/// Returns the scenario for a host that does not emulate the path.
pub(crate) fn without_link_settings(scenario: &Scenario) -> Scenario {
    Scenario { network: names_only(&scenario.network), ..scenario.clone() }
}

/// Returns the first key whose value in the network `asked` differs from that in the network `usual`.
pub(crate) fn first_difference(asked: &NetworkSpec, usual: &NetworkSpec) -> Option<String> {
    let [asked, usual] =
        [asked, usual].map(|spec| serde_json::to_value(spec).expect("a network can be serialised"));
    let mut keys = asked.as_object().into_iter().flatten();
    keys.find(|(key, value)| usual.get(key) != Some(value)).map(|(key, _)| key.clone())
}
