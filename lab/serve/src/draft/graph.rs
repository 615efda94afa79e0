//! The graph of an experiment, as shown in a drawing: nodes, links, traffic.

use hol_network::{LinkId, Medium, NetworkSpec, Segment, Settings, Topology};
use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, TableLike};
use utoipa::ToSchema;

use super::positions::{self, Positions};
use super::values::{table_of, text_of};

/// A drawing. Parts of the text that the drawing does not show remain unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Graph {
    /// Hosts and routers, called nodes.
    pub nodes: Vec<Node>,
    /// Links, each between two nodes.
    pub links: Vec<Link>,
    /// LANs: segments with any number of nodes.
    pub lans: Vec<Lan>,
    /// Flows: the first is measured, the others are background.
    pub traffic: Vec<Traffic>,
    /// Dotted keys of the axes; the graph has their first values.
    pub swept: Vec<String>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    /// Index of the node in the previous graph; none for a new node.
    #[serde(rename = "was")]
    pub previous_index: Option<usize>,
    /// Name of the node.
    pub name: String,
    /// Horizontal position in pixels; none if the experiment file gives no position.
    pub x: Option<i32>,
    /// Vertical position in pixels; none if the experiment file gives no position.
    pub y: Option<i32>,
}

/// A link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Link {
    /// Index of the link in the previous graph; none for a new link.
    #[serde(rename = "was")]
    pub previous_index: Option<usize>,
    /// Name of the link.
    pub name: String,
    /// Name of the first node.
    pub from: String,
    /// Name of the second node.
    pub to: String,
    /// Settings from `from` to `to`.
    #[serde(rename = "line")]
    pub settings: LinkSettings,
    /// Settings from `to` to `from`, if different.
    #[serde(rename = "back")]
    pub reverse_settings: Option<LinkSettings>,
}

/// A LAN.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lan {
    /// Index of the LAN in the previous graph; none for a new LAN.
    #[serde(rename = "was")]
    pub previous_index: Option<usize>,
    /// Name of the LAN.
    pub name: String,
    /// Names of the member nodes.
    pub nodes: Vec<String>,
    /// Settings of the LAN.
    #[serde(rename = "line")]
    pub settings: LinkSettings,
    /// Horizontal position in pixels; none if the experiment file gives no position.
    pub x: Option<i32>,
    /// Vertical position in pixels; none if the experiment file gives no position.
    pub y: Option<i32>,
}

/// The settings of a link, as text of an experiment file: a value with its unit, or a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Rate, such as `10Mbit`.
    pub rate: String,
    /// One-way delay, such as `10ms`.
    pub delay: String,
    /// Loss rate, such as `1%`, or a table of a loss model.
    pub loss: String,
    /// Size of the queue, such as `50p`.
    pub queue: String,
    /// Queueing discipline, such as `droptail`.
    pub discipline: String,
}

/// A flow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Traffic {
    /// Index of the flow in the previous graph; none for a new flow.
    #[serde(rename = "was")]
    pub previous_index: Option<usize>,
    /// Name of the node of the client.
    pub from: String,
    /// Name of the node of the server.
    pub to: String,
    /// Kind of workload, such as `bulk`.
    pub kind: String,
    /// The transport; for the measured flow, all compared transports, separated by blanks.
    pub transport: String,
    /// Value of the key `size` of the workload, if it has one.
    pub size: Option<String>,
    /// Value of the key `rate` of the workload, if it has one.
    pub rate: Option<String>,
    /// Value of the key `interval` of the workload, if it has one.
    pub interval: Option<String>,
    /// Time from the start of the run until the client connects, if given.
    pub start: Option<String>,
}

impl LinkSettings {
    /// Returns the settings with their keys in an experiment file.
    pub fn fields(&self) -> [(&'static str, &str); 5] {
        let Self { rate, delay, loss, queue, discipline } = self;
        [("rate", rate), ("delay", delay), ("loss", loss), ("queue", queue), ("discipline", discipline)]
    }

    /// Returns the default settings of a network's links.
    pub fn of_network(network: &NetworkSpec) -> Self {
        Self::of(&network.settings())
    }

    fn of(settings: &Settings) -> Self {
        let table = toml::Table::try_from(settings).expect("settings are a table");
        let field = |key: &str| match &table[key] {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let (rate, delay, loss) = (field("rate"), field("delay"), field("loss"));
        Self { rate, delay, loss, queue: field("queue"), discipline: field("discipline") }
    }
}

impl Traffic {
    /// Returns the fields of the workload with their keys, except `from` and `to`.
    pub fn fields(&self) -> [(&'static str, Option<&str>); 5] {
        let Self { kind, size, rate, interval, start, .. } = self;
        let [size, rate, interval, start] = [size, rate, interval, start].map(Option::as_deref);
        [("kind", Some(kind)), ("size", size), ("rate", rate), ("interval", interval), ("start", start)]
    }

    fn of(workload: Option<&dyn TableLike>, kind: &str, transport: String) -> Self {
        let get = |key: &str| text_of(workload?.get(key)?);
        Self {
            previous_index: None,
            from: get("from").unwrap_or_else(|| "client".to_owned()),
            to: get("to").unwrap_or_else(|| "server".to_owned()),
            kind: get("kind").unwrap_or_else(|| kind.to_owned()),
            transport,
            size: get("size"),
            rate: get("rate"),
            interval: get("interval"),
            start: get("start"),
        }
    }
}

impl Graph {
    /// Returns the graph of a network and of the traffic in `text`, an experiment file.
    pub fn of(network: &NetworkSpec, text: &str) -> Option<Self> {
        let document: DocumentMut = text.parse().ok()?;
        let mut graph = Self::of_network(&Topology::new(network).ok()?, text);
        graph.swept = axis_keys(&document);
        graph.traffic = traffic(&document);
        graph.set_indices();
        Some(graph)
    }

    /// Returns the graph of a network without its traffic, with the positions in `text`, which is an experiment file or an ns script.
    pub fn of_network(topology: &Topology, text: &str) -> Self {
        let nodes = topology.node_names().iter().map(|name| Node::with_name(name)).collect();
        let mut graph = Self { nodes, ..Self::default() };
        for segment in topology.segments() {
            graph.add(topology, segment);
        }
        graph.set_positions(&positions::read(text));
        graph.set_indices();
        graph
    }

    fn add(&mut self, topology: &Topology, segment: &Segment) {
        let settings = |id: LinkId| LinkSettings::of(&topology.links()[usize::from(id.0)].settings);
        let node = |place: usize| {
            let interface = topology.interfaces()[usize::from(segment.interfaces[place].0)];
            topology.node_names()[usize::from(interface.node.0)].clone()
        };
        let name = segment.label.clone();
        match segment.medium {
            Medium::Link { up, down } => {
                let (settings, reverse) = (settings(up), settings(down));
                let reverse_settings = (reverse != settings).then_some(reverse);
                self.links.push(Link {
                    previous_index: None,
                    name,
                    from: node(0),
                    to: node(1),
                    settings,
                    reverse_settings,
                });
            }
            Medium::Lan(id) => {
                let nodes = (0..segment.interfaces.len()).map(node).collect();
                self.lans.push(Lan { name, nodes, settings: settings(id), ..Lan::default() });
            }
        }
    }

    /// Sets the positions of nodes and LANs from the text. The position of a LAN has the name `lan NAME`, which is
    /// never the name of a node, because names of nodes contain no blank.
    fn set_positions(&mut self, places: &Positions) {
        let at = |name: &str| places.get(name).map_or((None, None), |(x, y)| (Some(*x), Some(*y)));
        self.nodes.iter_mut().for_each(|node| (node.x, node.y) = at(&node.name));
        self.lans.iter_mut().for_each(|lan| (lan.x, lan.y) = at(&lan_position_name(&lan.name)));
    }

    /// Returns the positions of the nodes and LANs that have one.
    pub fn positions(&self) -> Positions {
        let nodes = self.nodes.iter().map(|node| (node.name.clone(), node.x, node.y));
        let lans = self.lans.iter().map(|lan| (lan_position_name(&lan.name), lan.x, lan.y));
        nodes.chain(lans).filter_map(|(name, x, y)| Some((name, (x?, y?)))).collect()
    }

    fn set_indices(&mut self) {
        self.nodes.iter_mut().enumerate().for_each(|(at, node)| node.previous_index = Some(at));
        self.links.iter_mut().enumerate().for_each(|(at, link)| link.previous_index = Some(at));
        self.lans.iter_mut().enumerate().for_each(|(at, lan)| lan.previous_index = Some(at));
        self.traffic.iter_mut().enumerate().for_each(|(at, traffic)| traffic.previous_index = Some(at));
    }
}

impl Node {
    fn with_name(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

fn lan_position_name(name: &str) -> String {
    format!("lan {name}")
}

fn axis_keys(document: &DocumentMut) -> Vec<String> {
    let axes = document.get("sweep").and_then(table_of);
    axes.map(|axes| axes.iter().map(|(key, _)| key.to_owned()).collect()).unwrap_or_default()
}

/// Returns the flow of the workload, if there is a workload, and the background flows.
fn traffic(document: &DocumentMut) -> Vec<Traffic> {
    let transports: Vec<String> = (document.get("transports").and_then(|list| list.as_array()))
        .map(|list| list.iter().filter_map(transport_spec).collect())
        .unwrap_or_default();
    let workload = document.get("workload").and_then(table_of);
    if workload.is_none() && transports.is_empty() {
        return Vec::new();
    }
    let measured = Traffic::of(workload, "simco", transports.join(" "));
    let beside = super::values::tables(document.get("background")).into_iter().map(|own| {
        let transport = own.get("transport").and_then(text_of).unwrap_or_default();
        Traffic::of(own.get("workload").and_then(table_of), "bulk", transport)
    });
    std::iter::once(measured).chain(beside).collect()
}

/// Returns the specification of a transport from an entry of `transports`, which may be a table with a label.
fn transport_spec(value: &toml_edit::Value) -> Option<String> {
    let spec = value.as_inline_table().and_then(|table| table.get("spec")).unwrap_or(value);
    spec.as_str().map(str::to_owned)
}
