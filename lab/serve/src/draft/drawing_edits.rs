//! Applies a drawing to an experiment file: changes only the parts that differ, and leaves all other parts as written.

use std::collections::BTreeMap;

use hol_lab::Permission;
use hol_network::NetworkSpec;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::file::File;
use super::graph::{Graph, Lan, Link, LinkSettings, Traffic};
use super::positions;
use super::values::{self, set, table_of, tables};

/// Names of the nodes of an experiment that does not name any.
const DEFAULT_NODES: [&str; 2] = ["client", "server"];

/// Returns the file after the drawing has been applied.
pub fn apply_graph(text: &str, graph: &Graph, permission: &Permission) -> Result<String, String> {
    let network = File::read(text.to_owned(), permission).network().unwrap_or_default();
    let old = Graph::of(&network, text).unwrap_or_default();
    if *graph == old {
        return Ok(text.to_owned());
    }
    let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    rename_nodes(document.as_table_mut(), &renamed_nodes(&old, graph));
    if (&old.nodes.len(), &old.links, &old.lans) != (&graph.nodes.len(), &graph.links, &graph.lans)
        || !renamed_nodes(&old, graph).is_empty()
    {
        put_network(&mut document, &network, &old, graph)?;
    }
    if old.traffic != graph.traffic {
        put_traffic(&mut document, &old, graph);
    }
    Ok(positions::write(&document.to_string(), &graph.positions()))
}

/// Returns the renamed nodes: their old and new names.
fn renamed_nodes(old: &Graph, new: &Graph) -> BTreeMap<String, String> {
    let pairs = new
        .nodes
        .iter()
        .filter_map(|node| Some((old.nodes.get(node.previous_index?)?.name.clone(), node.name.clone())));
    pairs.filter(|(before, now)| before != now).collect()
}

/// Renames nodes wherever an experiment names them.
fn rename_nodes(table: &mut dyn TableLike, names: &BTreeMap<String, String>) {
    if names.is_empty() {
        return;
    }
    for (key, item) in table.iter_mut() {
        let names_a_node = ["from", "to", "at", "node"].contains(&key.get());
        if let (true, Some(now)) = (names_a_node, item.as_str().and_then(|name| names.get(name))) {
            *item = toml_edit::value(now.as_str());
        } else if let Some(list) = item.as_array_of_tables_mut() {
            list.iter_mut().for_each(|table| rename_nodes(table, names));
        } else if let Some(list) = item.as_array_mut() {
            let tables = list.iter_mut().filter_map(Value::as_inline_table_mut);
            tables.for_each(|table| rename_nodes(table, names));
        } else if let Some(inner) = item.as_table_like_mut() {
            rename_nodes(inner, names);
        }
    }
    let Some(hosts) = table.get_mut("hosts").and_then(Item::as_table_like_mut) else { return };
    for (before, now) in names {
        if let Some(host) = hosts.remove(before) {
            hosts.insert(now, host);
        }
    }
}

/// Returns the `[network]` table, creating it if necessary.
fn network_table(document: &mut DocumentMut) -> &mut dyn TableLike {
    let item = document.entry("network").or_insert_with(|| Item::Table(Table::new()));
    if item.as_table_like().is_none() {
        *item = Item::Table(Table::new());
    }
    item.as_table_like_mut().expect("`network` is a table")
}

fn put_network(
    document: &mut DocumentMut,
    spec: &NetworkSpec,
    old: &Graph,
    new: &Graph,
) -> Result<(), String> {
    let defaults = LinkSettings::of_network(spec);
    let table = network_table(document);
    if spec.nodes.is_empty() && connects_default_nodes(old, new) {
        put_paths(table, old, new);
        return Ok(());
    }
    if let Some(path) = table.get("path").and_then(Item::as_str) {
        return Err(format!(
            "the path {path:?} is a single link; to add nodes or links, replace its name by its settings"
        ));
    }
    for key in ["paths", "up", "down"] {
        table.remove(key);
    }
    table.insert(
        "nodes",
        Item::Value(new.nodes.iter().map(|node| node.name.as_str()).collect::<Array>().into()),
    );
    let links = new.links.iter().map(|link| {
        (
            link.previous_index,
            SegmentEdit::Link(link, link.previous_index.and_then(|index| old.links.get(index))),
        )
    });
    put_list(table, "links", links.collect(), &defaults);
    let lans = new.lans.iter().map(|lan| {
        (lan.previous_index, SegmentEdit::Lan(lan, lan.previous_index.and_then(|index| old.lans.get(index))))
    });
    put_list(table, "lans", lans.collect(), &defaults);
    Ok(())
}

/// Returns whether the drawing has only the nodes `client` and `server` and the same links as before. The table then
/// needs no lists of nodes and links.
fn connects_default_nodes(old: &Graph, new: &Graph) -> bool {
    let ends = |graph: &Graph| graph.nodes.iter().map(|node| node.name.clone()).eq(DEFAULT_NODES);
    let shape = |graph: &Graph| {
        let links = graph
            .links
            .iter()
            .map(|link| (link.previous_index, link.name.clone(), link.from.clone(), link.to.clone()));
        links.collect::<Vec<_>>()
    };
    ends(old) && ends(new) && new.lans.is_empty() && shape(old) == shape(new)
}

fn put_paths(network: &mut dyn TableLike, old: &Graph, new: &Graph) {
    let defaults = LinkSettings::of_network(&NetworkSpec::default());
    let changed = new.links.iter().zip(&old.links).enumerate().filter(|(_, (link, old))| link != old);
    for (at, (link, _)) in changed {
        let path = network.get_mut("paths").and_then(|paths| nth(paths, at));
        match path {
            Some(path) => put_settings(path, &link.settings, link.reverse_settings.as_ref(), None),
            None => put_settings(network, &link.settings, link.reverse_settings.as_ref(), Some(&defaults)),
        }
    }
}

fn nth(list: &mut Item, at: usize) -> Option<&mut dyn TableLike> {
    match list {
        Item::ArrayOfTables(tables) => tables.get_mut(at).map(|table| table as &mut dyn TableLike),
        Item::Value(Value::Array(values)) => {
            values.get_mut(at)?.as_inline_table_mut().map(|table| table as &mut dyn TableLike)
        }
        _ => None,
    }
}

/// The new and the previous form of a link or a LAN.
enum SegmentEdit<'g> {
    Link(&'g Link, Option<&'g Link>),
    Lan(&'g Lan, Option<&'g Lan>),
}

impl SegmentEdit<'_> {
    fn put(&self, table: &mut InlineTable, defaults: &LinkSettings) {
        match self {
            Self::Link(link, old) => {
                set(table, "from", Some(&link.from));
                set(table, "to", Some(&link.to));
                put_name(table, &link.name, &format!("{}-{}", link.from, link.to));
                if table.len() < 4
                    || old.is_none_or(|old| {
                        (&old.settings, &old.reverse_settings) != (&link.settings, &link.reverse_settings)
                    })
                {
                    put_settings(table, &link.settings, link.reverse_settings.as_ref(), Some(defaults));
                }
            }
            Self::Lan(lan, old) => {
                let nodes: Array = lan.nodes.iter().map(String::as_str).collect();
                if old.is_none_or(|old| old.nodes != lan.nodes) {
                    table.insert("nodes", nodes.into());
                    table.remove("addresses");
                }
                put_name(table, &lan.name, &lan.nodes.join("-"));
                if table.len() < 3 || old.is_none_or(|old| old.settings != lan.settings) {
                    put_settings(table, &lan.settings, None, Some(defaults));
                }
            }
        }
    }
}

/// Sets a name unless it is the default one.
fn put_name(table: &mut InlineTable, name: &str, default: &str) {
    if name != default || table.contains_key("name") {
        set(table, "name", Some(name));
    }
}

fn put_list(
    network: &mut dyn TableLike,
    key: &str,
    shown: Vec<(Option<usize>, SegmentEdit<'_>)>,
    defaults: &LinkSettings,
) {
    let before: Vec<InlineTable> = tables(network.get(key)).into_iter().map(to_inline_table).collect();
    if shown.is_empty() {
        network.remove(key);
        return;
    }
    let mut list = Array::new();
    for (previous_index, shown) in shown {
        let mut table = previous_index.and_then(|index| before.get(index).cloned()).unwrap_or_default();
        shown.put(&mut table, defaults);
        let mut value = Value::from(table);
        value.decor_mut().set_prefix("\n    ");
        list.push_formatted(value);
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
    network.insert(key, Item::Value(list.into()));
}

fn to_inline_table(table: &dyn TableLike) -> InlineTable {
    let mut own = InlineTable::new();
    for (key, item) in table.iter() {
        if let Ok(value) = item.clone().into_value() {
            own.insert(key, value.decorated(" ", ""));
        }
    }
    own
}

/// Sets the settings of a link that differ from `defaults`; the settings of the other direction are under `down`.
fn put_settings(
    table: &mut dyn TableLike,
    settings: &LinkSettings,
    back: Option<&LinkSettings>,
    defaults: Option<&LinkSettings>,
) {
    let default = |at: usize| defaults.map(|defaults| defaults.fields()[at].1);
    for (at, (key, text)) in settings.fields().into_iter().enumerate() {
        if table.contains_key(key) || default(at) != Some(text) {
            set(table, key, Some(text));
        }
        if let Some(up) = table.get_mut("up").and_then(Item::as_table_like_mut) {
            up.remove(key);
        }
    }
    let back = back.unwrap_or(settings);
    let mut down =
        table.remove("down").and_then(|down| table_of(&down).map(to_inline_table)).unwrap_or_default();
    for ((key, here), (_, there)) in settings.fields().into_iter().zip(back.fields()) {
        set(&mut down, key, Some(there).filter(|there| *there != here));
    }
    if !down.is_empty() {
        table.insert("down", Item::Value(down.into()));
    }
    if table.get("up").and_then(table_of).is_some_and(|up| up.is_empty()) {
        table.remove("up");
    }
}

fn put_traffic(document: &mut DocumentMut, old: &Graph, new: &Graph) {
    let measured = document.get("workload").and_then(table_of).map(with_heading).unwrap_or_default();
    let background = tables(document.get("background")).into_iter().map(with_heading);
    let before: Vec<Table> = std::iter::once(measured).chain(background).collect();
    document.remove("background");
    let Some((measured, background)) = new.traffic.split_first() else {
        document.remove("workload");
        document.remove("transports");
        return;
    };
    put_transports(document, old, &measured.transport);
    put_measured(document, &before, measured);
    if !background.is_empty() {
        let entries = background.iter().map(|traffic| background_entry(&before, traffic)).collect();
        document.insert("background", Item::ArrayOfTables(entries));
    }
}

fn put_measured(document: &mut DocumentMut, before: &[Table], traffic: &Traffic) {
    let mut workload = workload_of(before, traffic.previous_index);
    put_workload(&mut workload, traffic);
    let item = document.entry("workload").or_insert_with(|| Item::Table(Table::new()));
    match item.as_table_mut() {
        // Keeps the comments of the heading.
        Some(table) => {
            table.clear();
            table.extend(workload.iter().map(|(key, item)| (key.to_owned(), item.clone())));
        }
        None => *item = Item::Table(workload),
    }
}

/// Returns the `[[background]]` table of a flow of the drawing.
fn background_entry(before: &[Table], traffic: &Traffic) -> Table {
    let own = traffic.previous_index.filter(|index| *index > 0).and_then(|index| before.get(index).cloned());
    let mut entry = own.unwrap_or_default();
    let mut workload = workload_of(before, traffic.previous_index);
    put_workload(&mut workload, traffic);
    set(&mut entry, "transport", Some(&traffic.transport));
    entry.insert("workload", Item::Value(to_inline_table(&workload).into()));
    entry
}

/// Copies a table, in-line or not, to a table with a heading.
fn with_heading(table: &dyn TableLike) -> Table {
    table.iter().map(|(key, item)| (key.to_owned(), item.clone())).collect()
}

fn workload_of(before: &[Table], previous_index: Option<usize>) -> Table {
    match previous_index {
        Some(0) => before[0].clone(),
        Some(at) => before
            .get(at)
            .and_then(|entry| entry.get("workload"))
            .and_then(table_of)
            .map(with_heading)
            .unwrap_or_default(),
        None => Table::new(),
    }
}

fn put_workload(workload: &mut Table, traffic: &Traffic) {
    for (key, text) in traffic.fields() {
        set(workload, key, text);
    }
    for (key, name, default) in
        [("from", &traffic.from, DEFAULT_NODES[0]), ("to", &traffic.to, DEFAULT_NODES[1])]
    {
        if workload.contains_key(key) || name != default {
            set(workload, key, Some(name));
        }
    }
}

/// Sets the list of transports; those that the list already has keep their labels.
fn put_transports(document: &mut DocumentMut, old: &Graph, specs: &str) {
    if old.traffic.first().is_some_and(|measured| measured.transport == specs) {
        return;
    }
    let before = document.get("transports").and_then(Item::as_array).cloned().unwrap_or_default();
    let spec = |value: &Value| {
        let spec = value.as_inline_table().and_then(|table| table.get("spec")).unwrap_or(value);
        spec.as_str().map(str::to_owned)
    };
    let kept = |word: &str| before.iter().find(|value| spec(value).as_deref() == Some(word)).cloned();
    let list: Array =
        specs.split_whitespace().map(|word| kept(word).unwrap_or_else(|| word.into())).collect();
    match document.get_mut("transports") {
        Some(item) => *item = values::one_line_list(list),
        None => {
            document.insert("transports", values::one_line_list(list));
        }
    }
}
