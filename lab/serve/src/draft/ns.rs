//! Converts experiment files to ns scripts and back. A setting without an equivalent in ns becomes a `#hol` line. If
//! that is impossible, too, the conversion fails, so that no setting is lost.

use std::path::Path;

use hol_lab::{Experiment, InputError, LINE_PREFIX, Permission, Point, Source};
use hol_network::{Medium, NetworkSpec, Segment, Settings, Topology};
use hol_testbed::{Script, write_with_addresses};
use toml::{Table, Value};
use toml_edit::{DocumentMut, Item};

use super::file::{File, NAME_NS};
use super::positions;

/// Prefix of a comment about a setting without an equivalent in ns. Such comments are removed, because `#hol` lines
/// contain these settings.
const MISSING_SETTING: &str = "# ns has no ";

/// The experiment file of an empty script: defaults of ns and Emulab.
const EMPTY_EXPERIMENT: &str = "[network]\nqueue = \"50p\"\noverhead = \"0B\"\n";

/// Maximum number of points of an experiment that is translated.
const MAX_POINTS: usize = 1000;

/// Returns the experiment file of a script.
pub fn to_experiment_file(text: &str, permission: &Permission) -> Result<String, InputError> {
    if text.trim().is_empty() {
        return Ok(EMPTY_EXPERIMENT.to_owned());
    }
    let script = read(text, permission)?;
    let source = Source::of_script(NAME_NS, text, permission);
    let (mut rest, network) = match &source {
        Ok(source) => (hol_lines(text).unwrap_or_else(|| source.text().to_owned()), network_table(source)?),
        // A drawing may begin as a network without traffic.
        Err(_) if script.flows.is_empty() && script.programs.is_empty() => (String::new(), None),
        Err(error) => return Err(error.clone()),
    };
    let mut network =
        network.unwrap_or_else(|| Table::try_from(&script.network).expect("a network is a table"));
    remove_defaults(&mut network, &script);
    if !rest.is_empty() && !rest.ends_with('\n') {
        rest.push('\n');
    }
    let mut document: DocumentMut = rest.parse().map_err(|e: toml_edit::TomlError| InputError {
        place: NAME_NS.to_owned(),
        problem: e.message().to_owned(),
    })?;
    document.remove("topology");
    let written: DocumentMut = toml::to_string(&network)
        .expect("a table can be written")
        .parse()
        .expect("the written table is TOML");
    let comments = document.get("network").and_then(Item::as_table).map(|table| table.decor().clone());
    let mut network = one_table_per_line(written);
    if let (Some(table), Some(comments)) = (network.as_table_mut(), comments) {
        *table.decor_mut() = comments;
    }
    document.insert("network", network);
    Ok(positions::write(&document.to_string(), &positions::read(text)))
}

fn read(text: &str, permission: &Permission) -> Result<Script, InputError> {
    Source::new(NAME_NS, "").with_permission(permission.clone()).read_script(NAME_NS, text, Path::new(""))
}

/// Returns the ignored commands of a script: position, command, reason.
pub fn ignored_commands(text: &str, permission: &Permission) -> Vec<String> {
    read(text, permission)
        .map(|script| script.ignored.iter().map(ToString::to_string).collect())
        .unwrap_or_default()
}

/// Returns whether a script starts traffic or programs itself, or cannot be read.
pub fn has_traffic(text: &str, permission: &Permission) -> bool {
    read(text, permission).map_or(true, |script| !script.flows.is_empty() || !script.programs.is_empty())
}

/// Returns the `#hol` lines of a script without their prefix.
pub fn hol_lines(text: &str) -> Option<String> {
    let line = |line: &str| match line {
        "#hol" => Some("\n".to_owned()),
        _ => line.strip_prefix(LINE_PREFIX).map(|said| format!("{said}\n")),
    };
    let lines: String = text.lines().filter_map(line).collect();
    (!lines.is_empty()).then_some(lines)
}

/// Returns the script's network with its `#hol` settings.
fn network_table(source: &Source) -> Result<Option<Table>, InputError> {
    Ok(match source.merged()?.remove("network") {
        Some(Value::Table(network)) => Some(network),
        _ => None,
    })
}

/// Removes default settings, and addresses that would be assigned when the script is read.
fn remove_defaults(network: &mut Table, script: &Script) {
    let defaults = Table::try_from(NetworkSpec::default()).expect("a network is a table");
    network.retain(|key, value| defaults.get(key) != Some(value));
    let topology = Topology::new(&script.network).expect("the script was read, so its network is valid");
    let given = Script::read(NAME_NS, &write_with_addresses(&topology, &|_| false));
    if given.is_ok_and(|given| addresses(&given.network) == addresses(&script.network)) {
        for list in ["links", "lans"] {
            let elements = network.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            elements.filter_map(Value::as_table_mut).for_each(|element| drop(element.remove("addresses")));
        }
    }
}

fn addresses(network: &NetworkSpec) -> Vec<hol_wire::Address> {
    let links = network.links.iter().flat_map(|link| link.addresses.clone());
    links.chain(network.lans.iter().flat_map(|lan| lan.addresses.clone())).collect()
}

/// Writes lists of tables with one line per table.
fn one_table_per_line(mut network: DocumentMut) -> Item {
    for key in ["links", "lans"] {
        if let Some(Item::ArrayOfTables(tables)) = network.remove(key) {
            let mut list = tables.into_array();
            list.iter_mut().for_each(|value| value.decor_mut().set_prefix("\n    "));
            list.set_trailing("\n");
            list.set_trailing_comma(true);
            network.insert(key, Item::Value(list.into()));
        }
    }
    Item::Table(network.into_table())
}

/// Returns the script of an experiment file, or why ns cannot express it.
pub fn from_experiment_file(file: &File) -> Result<String, String> {
    let (text, network) = (&file.text, file.network()?);
    // The points of the script are compared with those of the file.
    if file.experiment.as_ref().is_ok_and(|experiment| experiment.points.len() > MAX_POINTS) {
        return Err(format!("the experiment has more than {MAX_POINTS} points"));
    }
    let topology = Topology::new(&network).map_err(|e| e.to_string())?;
    let said = addresses(&network);
    let script = write_with_addresses(&topology, &|address| said.contains(&address));
    let script: String =
        script.split_inclusive('\n').filter(|line| !line.starts_with(MISSING_SETTING)).collect();
    let again = Script::read(NAME_NS, &script).map_err(|e| e.to_string())?;
    let inexpressible = inexpressible_settings(&topology, &again.network)?;
    let whole = format!("{script}{}", rest_as_hol_lines(text, &inexpressible)?);
    let whole = positions::write(&whole, &positions::read(text));
    check_equivalent(file, &whole)?;
    Ok(whole)
}

/// Returns the remaining part of the experiment as `#hol` lines.
fn rest_as_hol_lines(text: &str, inexpressible: &Table) -> Result<String, String> {
    let mut document: DocumentMut =
        positions::remove(text).parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    let own = document.remove("network");
    let events = own.as_ref().and_then(|network| network.get("events")).cloned();
    let mut rest = document.to_string();
    let mut network = toml_edit::Table::new();
    if let Some(comments) =
        own.as_ref().and_then(Item::as_table).and_then(|own| own.decor().prefix()?.as_str())
    {
        network.decor_mut().set_prefix(comments);
    }
    for (key, value) in inexpressible {
        let value: toml_edit::Value =
            value.to_string().parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
        network.insert(key, Item::Value(value));
    }
    if let Some(events) = events {
        network.insert("events", events);
    }
    if !network.is_empty() {
        let mut own = DocumentMut::new();
        own.insert("network", Item::Table(network));
        rest = format!("{}\n\n{}", rest.trim_end(), own.to_string().trim_start());
    }
    let line =
        |line: &str| if line.is_empty() { "#hol\n".to_owned() } else { format!("{LINE_PREFIX}{line}\n") };
    Ok(format!("\n{}", rest.trim().lines().map(line).collect::<String>()))
}

/// Returns link settings that the script cannot express: the settings of all links, and those of single links or LANs
/// by name.
fn inexpressible_settings(topology: &Topology, script: &NetworkSpec) -> Result<Table, String> {
    let again = Topology::new(script).map_err(|e| e.to_string())?;
    let table = |settings: &Settings| Table::try_from(settings).expect("settings are a table");
    let inexpressible: Vec<Table> = (topology.links().iter().zip(again.links()))
        .map(|(line, again)| {
            let said = table(&again.settings);
            let mut own = table(&line.settings);
            own.retain(|key, value| said.get(key) != Some(value));
            own
        })
        .collect();
    let mut network = Table::new();
    for (key, value) in inexpressible.first().into_iter().flatten() {
        if inexpressible.iter().all(|line| line.get(key) == Some(value)) {
            network.insert(key.clone(), value.clone());
        }
    }
    for segment in topology.segments() {
        let (list, own) = inexpressible_settings_of(segment, &inexpressible, &network);
        if !own.is_empty() {
            let by_name = network.entry(list).or_insert_with(|| Value::Table(Table::new()));
            by_name
                .as_table_mut()
                .expect("the entry is a table")
                .insert(segment.label.clone(), Value::Table(own));
        }
    }
    Ok(network)
}

fn inexpressible_settings_of(
    segment: &Segment,
    inexpressible: &[Table],
    common: &Table,
) -> (&'static str, Table) {
    let own = |line: hol_network::LinkId| {
        let mut own = inexpressible[usize::from(line.0)].clone();
        own.retain(|key, _| !common.contains_key(key));
        own
    };
    match segment.medium {
        Medium::Lan(line) => ("lans", own(line)),
        Medium::Link { up, down } if own(up) == own(down) => ("links", own(up)),
        Medium::Link { up, down } => {
            let both = [("up", own(up)), ("down", own(down))].into_iter().filter(|(_, own)| !own.is_empty());
            ("links", both.map(|(way, own)| (way.to_owned(), Value::Table(own))).collect())
        }
    }
}

/// Checks that file and script are equivalent; otherwise returns a description of the settings that the script cannot
/// express.
fn check_equivalent(file: &File, script: &str) -> Result<(), String> {
    let Ok(experiment) = &file.experiment else {
        // If the text is incomplete, only the networks can be compared.
        let again = File::read(
            to_experiment_file(script, &file.permission).map_err(|e| e.to_string())?,
            &file.permission,
        );
        return check_same_network(&file.network()?, &again.network()?);
    };
    let source = Source::of_script(NAME_NS, script, &file.permission).map_err(|e| e.to_string())?;
    let script = Experiment::parse_for_any_machine("draft", &source).map_err(|e| e.to_string())?;
    if experiment.points.len() != script.points.len() {
        return Err("ns cannot express the axes; use an experiment file".to_owned());
    }
    for (one, other) in experiment.points.iter().zip(&script.points) {
        if except_network(one) != except_network(other) {
            return Err(format!("ns cannot express all settings of point {one}; use an experiment file"));
        }
        let swept: Vec<&str> =
            one.axes.iter().map(|(key, _)| key.as_str()).filter(|key| key.starts_with("network")).collect();
        check_same_network(&one.network, &other.network).map_err(|problem| match swept.is_empty() {
            true => problem,
            false => format!(
                "ns cannot express {} as an axis; sweep the setting of a link by its name, as in network.links.NAME.delay",
                swept.join(", ")
            ),
        })?;
    }
    Ok(())
}

/// Returns everything in a point except its network.
fn except_network(point: &Point) -> serde_json::Value {
    let mut except_network = serde_json::to_value(point).expect("a point can be written");
    let fields = except_network.as_object_mut().expect("a point is a JSON object");
    fields.retain(|key, _| !["id", "network", "provenance"].contains(&key.as_str()));
    except_network
}

fn check_same_network(file: &NetworkSpec, script: &NetworkSpec) -> Result<(), String> {
    let [one, other] = [file, script].map(Topology::new);
    let (one, other) = (one.map_err(|e| e.to_string())?, other.map_err(|e| e.to_string())?);
    let shape = |topology: &Topology| {
        let members = |segment: &Segment| {
            segment
                .interfaces
                .iter()
                .map(|id| topology.interfaces()[usize::from(id.0)].node)
                .collect::<Vec<_>>()
        };
        let segments = topology.segments().iter().map(|segment| (segment.label.clone(), members(segment)));
        (topology.node_names().to_vec(), segments.collect::<Vec<_>>())
    };
    if shape(&one) != shape(&other) {
        return Err("ns cannot express the names of nodes, links or LANs; use letters, digits and hyphens, and each name once"
            .to_owned());
    }
    for (line, again) in one.links().iter().zip(other.links()) {
        if line.settings != again.settings {
            return Err(format!("ns cannot express the settings of {}; use an experiment file", line.name));
        }
    }
    let changes = |topology: &Topology| {
        format!("{:?}{:?}{:?}", topology.link_changes(), topology.address_changes(), topology.route_changes())
    };
    let said = addresses(file);
    let own = |topology: &Topology| {
        topology
            .interfaces()
            .iter()
            .map(|interface| interface.address)
            .filter(|address| said.contains(address))
            .count()
    };
    match changes(&one) == changes(&other) && own(&one) == own(&other) {
        true => Ok(()),
        false => Err("ns cannot express the changes during the run; use an experiment file".to_owned()),
    }
}
