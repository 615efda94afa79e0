//! The JSON Schema of experiment files, derived from the types that read them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use hol_workloads::WorkloadKind;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::experiment_file::ExperimentFile;

/// Returns the JSON Schema (draft 7, which TOML editors support) of an experiment file. Every key has a description with its unit and
/// default.
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().into_generator().into_root_schema_for::<ExperimentFile>().to_value();
    forbid_null(&mut schema);
    if let Some(workload) = schema.pointer_mut("/definitions/WorkloadSpec") {
        restrict_kinds(workload);
    }
    schema
}

/// Removes `null` from the schema, because TOML has none: keys are omitted instead.
fn forbid_null(schema: &mut Value) {
    const NULL: &str = "null";
    match schema {
        Value::Array(list) => list.iter_mut().for_each(forbid_null),
        Value::Object(object) => {
            object.values_mut().for_each(forbid_null);
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|one| one != NULL);
            }
            if let Some([one]) = object.get("type").and_then(Value::as_array).map(Vec::as_slice) {
                let one = one.clone();
                object.insert("type".into(), one);
            }
            let Some(Value::Array(choices)) = object.get_mut("anyOf") else { return };
            choices.retain(|choice| choice["type"] != NULL);
            if choices.len() == 1 {
                let only = object.remove("anyOf").expect("the key was just found");
                object.insert("allOf".into(), only);
            }
        }
        _ => {}
    }
}

/// Restricts the keys of each kind of workload to the kind's own keys and those that all kinds share; keeps the
/// descriptions of kinds. If a sweep sets the kind, the keys of any kind are accepted.
fn restrict_kinds(workload: &mut Value) {
    let shared = workload["properties"].take();
    let shared = shared.as_object().cloned().unwrap_or_default();
    let all = WorkloadKind::all();
    let mut any = Map::new();
    for kind in workload["oneOf"].as_array_mut().into_iter().flatten() {
        let name =
            kind.pointer("/properties/kind/const").and_then(Value::as_str).unwrap_or_default().to_owned();
        let about = all.iter().map(WorkloadKind::workload).find(|known| known.name() == name);
        kind["description"] = about.map(|known| json!(known.about())).unwrap_or_default();
        if let Some(keys) = kind["properties"].as_object_mut() {
            keys.extend(shared.clone());
            any.extend(keys.keys().filter(|key| *key != "kind").map(|key| (key.clone(), true.into())));
        }
        kind["title"] = format!("{name} workload").into();
        kind["additionalProperties"] = false.into();
    }
    if let Some(kinds) = workload["oneOf"].as_array_mut() {
        let title = "workload whose kind is swept";
        kinds.push(
            json!({ "title": title, "type": "object", "properties": any, "additionalProperties": false }),
        );
    }
    if let Some(object) = workload.as_object_mut() {
        object.remove("properties");
    }
}

/// The keys of one table, for the reference of experiment files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Name of the table as written in a file: `[network]`.
    pub table: String,
    /// Description of the table.
    pub about: String,
    /// Keys of the table, by name.
    pub keys: Vec<Key>,
    /// Names of the keys that the table shares with `[network]`, from which their default values are taken.
    pub inherited: Vec<String>,
}

/// A key of a table in an experiment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Name of the key.
    pub name: String,
    /// Description of the value's type, such as a time, a table, or one of several words.
    pub value: String,
    /// Description of the key, with the default.
    pub about: String,
    /// Whether the key is required.
    pub is_required: bool,
}

/// The type that each table of an experiment file is read into, with the name of the table.
const TABLE_NAMES: [(&str, &str); 26] = [
    ("NetworkSpec", "[network]"),
    ("Overrides", "[network.up], [network.down]: one direction"),
    ("LossSpec", "network.loss"),
    ("RedSpec", "network.discipline = { red = … }"),
    ("CodelSpec", "network.discipline = { codel = … }"),
    ("FairSpec", "network.discipline = { fq_codel = … }"),
    ("PieSpec", "network.discipline = { pie = … }"),
    ("DualPi2Spec", "network.discipline = { dualpi2 = … }"),
    ("TokenBucket", "network.police"),
    ("PathSpec", "[[network.paths]]"),
    ("LinkSpec", "[[network.links]]"),
    ("LanSpec", "[[network.lans]]"),
    ("EventSpec", "[[network.events]]"),
    ("HandoverSpec", "[network.handover]"),
    ("HostSpec", "[hosts.NAME]"),
    ("Background", "[[background]]"),
    ("Onward", "[[onward]]"),
    ("Program", "[[program]]"),
    ("Metric", "[program.metrics.NAME]"),
    ("Ready", "[program.ready]: one of"),
    ("Content", "[program.files]: each one of"),
    ("Figure", "[[figure]]"),
    ("Transport", "transports = [{ … }]"),
    ("RequestMix", "[workload.mix]: of simco"),
    ("LogNormal", "[workload.size] of page, [workload.request] and [workload.reply] of rpc"),
    ("SizesFile", "[workload.size], [workload.request], [workload.reply]: sizes in a file"),
];

/// Returns the reference of experiment files, table by table. It is generated from the same types as the schema.
pub fn reference() -> Vec<Section> {
    let schema = schema();
    let definitions = &schema["definitions"];
    let experiment = section(&schema, "An experiment file".into(), definitions);
    let tables =
        TABLE_NAMES.iter().map(|(name, table)| section(&definitions[name], (*table).into(), definitions));
    let kinds = definitions["WorkloadSpec"]["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let kinds = kinds.iter().filter_map(|kind| {
        let name = kind["properties"]["kind"]["const"].as_str()?;
        Some(section(kind, format!("[workload] kind = \"{name}\""), definitions))
    });
    let mut all: Vec<Section> = [experiment].into_iter().chain(tables).chain(kinds).collect();
    let network = all[1].keys.clone();
    for section in all.iter_mut().skip(2).filter(|section| section.table.contains("[network.")) {
        let (inherited, own) = section.keys.drain(..).partition(|key| network.contains(key));
        section.keys = own;
        section.inherited = Vec::into_iter(inherited).map(|key: Key| key.name).collect();
    }
    all
}

/// The keys of experiment files whose values can be tables.
#[derive(Debug, Default)]
pub(crate) struct TableKeys {
    /// Keys whose value may be a table, and is never a list.
    pub(crate) tables: BTreeSet<String>,
    /// Keys whose value is a table of named tables, such as `hosts`.
    pub(crate) named_tables: BTreeSet<String>,
}

/// Returns the keys of experiment files whose values can be tables.
pub(crate) fn table_keys() -> &'static TableKeys {
    static KEYS: LazyLock<TableKeys> = LazyLock::new(|| {
        let schema = schema();
        let mut keys = TableKeys::default();
        keys.add(&schema, &schema["definitions"]);
        keys
    });
    &KEYS
}

impl TableKeys {
    fn add(&mut self, schema: &Value, definitions: &Value) {
        for (name, value) in schema["properties"].as_object().into_iter().flatten() {
            let is = |kind: &str| alternatives(value, definitions).any(|form| form["type"] == kind);
            let named =
                |form: &Value| resolved(&form["additionalProperties"], definitions)["type"] == "object";
            if is("object") && !is("array") {
                self.tables.insert(name.clone());
            }
            if alternatives(value, definitions).any(named) {
                self.named_tables.insert(name.clone());
            }
        }
        match schema {
            Value::Object(object) => object.values().for_each(|inner| self.add(inner, definitions)),
            Value::Array(list) => list.iter().for_each(|inner| self.add(inner, definitions)),
            _ => (),
        }
    }
}

/// Returns the schemas that a value may match: the schema itself, and each schema in its `anyOf` or `oneOf`, with
/// references resolved.
fn alternatives<'s>(schema: &'s Value, definitions: &'s Value) -> Box<dyn Iterator<Item = &'s Value> + 's> {
    let schema = resolved(schema, definitions);
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|choices| schema[choices].as_array()).flatten();
    Box::new(std::iter::once(schema).chain(choices.flat_map(|choice| alternatives(choice, definitions))))
}

/// Returns the section of a table. If the table has several variants, the section contains the keys of all
/// variants.
fn section(schema: &Value, table: String, definitions: &Value) -> Section {
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|choices| schema[choices].as_array()).flatten();
    let forms = [schema].into_iter().chain(choices.map(|form| resolved(form, definitions)));
    let tables: Vec<&Value> = forms.filter(|form| form.get("properties").is_some()).collect();
    let mut own: Vec<Key> = Vec::new();
    for key in tables.iter().flat_map(|table| keys(table, definitions)) {
        if !own.contains(&key) {
            own.push(key);
        }
    }
    if tables.len() > 1 {
        own.iter_mut().for_each(|key| key.is_required = false);
    }
    Section { table, about: first_paragraph(schema), keys: own, inherited: Vec::new() }
}

fn keys(table: &Value, definitions: &Value) -> Vec<Key> {
    let required = table["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let properties = table["properties"].as_object().into_iter().flatten();
    // The key that selects the variant is described above the others.
    let keys = properties.filter(|(_, key)| key.get("const").is_none());
    keys.map(|(name, key)| Key {
        name: name.clone(),
        value: describe_value(key, definitions),
        about: Some(first_paragraph(key))
            .filter(|about| !about.is_empty())
            .unwrap_or_else(|| first_paragraph(table)),
        is_required: required.iter().any(|one| one == name),
    })
    .collect()
}

/// Returns the first paragraph of a schema's description, as one line.
fn first_paragraph(schema: &Value) -> String {
    let whole = schema["description"].as_str().unwrap_or_default();
    whole.split("\n\n").next().unwrap_or_default().replace('\n', " ")
}

/// Follows references, and returns the schema to which they lead.
fn resolved<'s>(schema: &'s Value, definitions: &'s Value) -> &'s Value {
    let only = &schema["allOf"][0];
    let reference = schema.get("$ref").or_else(|| only.get("$ref")).and_then(Value::as_str);
    let name = reference.and_then(|path| path.strip_prefix("#/definitions/"));
    name.map_or(schema, |name| resolved(&definitions[name], definitions))
}

/// Returns a description of a value's type.
fn describe_value(schema: &Value, definitions: &Value) -> String {
    let target = resolved(schema, definitions);
    let words = words(target);
    if !words.is_empty() {
        return words.join(", ");
    }
    for choices in ["anyOf", "oneOf"] {
        if let Some(choices) = target[choices].as_array() {
            let mut kinds: Vec<String> =
                choices.iter().map(|choice| describe_value(choice, definitions)).collect();
            kinds.dedup();
            return kinds.join(", or ");
        }
    }
    let is_unit = target["type"] == "string" && !std::ptr::eq(target, schema);
    match target["type"].as_str() {
        Some("string") if is_unit || target.get("pattern").is_some() => first_paragraph(target),
        Some("string") => "text".into(),
        Some("integer") => describe_number(target),
        Some("number") => "a number".into(),
        Some("boolean") => "true or false".into(),
        Some("array") => describe_list(&describe_value(&target["items"], definitions)),
        Some("object") if target.get("properties").is_none() => "a table with arbitrary keys".into(),
        _ => "a table".into(),
    }
}

/// Returns a description of a list whose items have this type.
fn describe_list(item: &str) -> String {
    match item.strip_prefix("a ").and_then(|item| item.split_once(' ').or(Some((item, "")))) {
        Some(("table", rest)) => format!("a list of tables {rest}").trim_end().to_owned(),
        Some(("whole", rest)) => format!("a list of whole {}", rest.replacen("number", "numbers", 1)),
        _ if item == "text" => "a list of texts".to_owned(),
        _ => format!("a list, each {item}"),
    }
}

/// Returns the allowed strings of a value: JSON Schema's `enum` or `const`.
fn words(schema: &Value) -> Vec<String> {
    let quoted = |word: &Value| word.as_str().map(|word| format!("\"{word}\""));
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().filter_map(quoted).collect();
    }
    if let Some(word) = schema.get("const") {
        return quoted(word).into_iter().collect();
    }
    let choices = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all: Option<Vec<String>> = choices.iter().map(|one| quoted(one.get("const")?)).collect();
    all.unwrap_or_default()
}

fn describe_number(schema: &Value) -> String {
    match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(min), Some(max)) => format!("a whole number from {min} to {max}"),
        (Some(min), None) if min > 0 => format!("a whole number from {min} on"),
        _ => "a whole number".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_every_table_has_a_description() {
        let reference = reference();
        assert_eq!(reference.len(), 1 + TABLE_NAMES.len() + WorkloadKind::all().len());
        for section in &reference {
            let has_keys = !section.keys.is_empty() || !section.inherited.is_empty();
            assert!(!section.about.is_empty() && has_keys, "{section:?}");
            for key in &section.keys {
                assert!(!key.about.is_empty() && !key.value.is_empty(), "{}: {key:?}", section.table);
            }
        }
        let network = &reference[1];
        let rate = network.keys.iter().find(|key| key.name == "rate").unwrap();
        assert!(rate.value.contains("\"100Mbit\"") && rate.about.contains("Default 100 Mbit/s"), "{rate:?}");
    }

    #[test]
    fn the_schema_of_a_workload_lists_exactly_the_keys_it_reads() {
        let schema = schema();
        let kinds = schema["definitions"]["WorkloadSpec"]["oneOf"].as_array().unwrap();
        assert_eq!(kinds.len(), WorkloadKind::all().len() + 1);
        for kind in &kinds[..WorkloadKind::all().len()] {
            let name = kind["properties"]["kind"]["const"].as_str().unwrap();
            let known =
                WorkloadKind::all().into_iter().find(|known| known.workload().name() == name).unwrap();
            let keys = kind["properties"].as_object().unwrap();
            assert!(known.keys().into_iter().all(|key| keys.contains_key(key)), "{name}");
            assert_eq!(keys.len(), known.keys().len() + 1, "{name}");
        }
    }
}
