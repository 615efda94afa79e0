//! An experiment as a form. Each field is an option of `hol compare` and a key of the experiment file. A
//! field with several values is an axis.

use std::collections::BTreeMap;

use hol_lab::FLAGS;
use serde::{Deserialize, Serialize};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};
use utoipa::ToSchema;

use super::values::{one_line_list, set, table_of, text_of};

/// A form. Parts of the text that the form does not contain remain unchanged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// The transports to compare.
    pub transports: Vec<String>,
    /// Values by key, such as `network.loss`; several values, separated by commas, are an axis.
    pub fields: BTreeMap<String, String>,
    /// Command line that runs the same experiment.
    pub line: String,
}

impl Question {
    /// Returns the form of an experiment file.
    pub fn of(text: &str) -> Option<Self> {
        let document: DocumentMut = text.parse().ok()?;
        let transports: Vec<String> = (document.get("transports").and_then(Item::as_array))
            .map(|list| list.iter().filter_map(transport_spec).collect())
            .unwrap_or_default();
        let fields = FLAGS.into_iter().filter_map(|(_, key)| Some((key.to_owned(), field(&document, key)?)));
        let mut question = Self { transports, fields: fields.collect(), line: String::new() };
        question.line = question.command(&document);
        Some(question)
    }

    /// Returns the experiment file after the form has been applied.
    pub fn apply(&self, text: &str) -> Result<String, String> {
        let mut document: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
        let old = Self::of(text).unwrap_or_default();
        if self.transports != old.transports {
            let before = document.get("transports").and_then(Item::as_array).cloned().unwrap_or_default();
            let existing = |word: &String| {
                before.iter().find(|value| transport_spec(value).as_ref() == Some(word)).cloned()
            };
            let words =
                self.transports.iter().map(|word| existing(word).unwrap_or_else(|| word.as_str().into()));
            document.insert("transports", one_line_list(words.collect::<Array>()));
        }
        for (_, key) in FLAGS {
            let (now, before) = (self.fields.get(key), old.fields.get(key));
            if now != before {
                put_field(&mut document, key, now.map_or("", String::as_str));
            }
        }
        Ok(document.to_string())
    }

    /// Returns the command `hol compare …` if its options suffice, otherwise the command that runs the file.
    fn command(&self, document: &DocumentMut) -> String {
        let known =
            |key: &str| key == "transports" || key == "title" || FLAGS.iter().any(|(_, flag)| *flag == key);
        let mut keys = Vec::new();
        collect_values("", document.as_table(), &mut keys);
        let has_lists = keys.iter().any(|(key, value)| !known(key) && value.is_none());
        // An option takes neither a table nor a range of repetitions.
        let has_tables = keys.iter().any(|(key, _)| FLAGS.iter().any(|(_, flag)| is_within(key, flag)));
        let has_range = self.fields.get("repetitions").is_some_and(|text| text.contains(".."));
        let is_plain = !self.transports.is_empty()
            && (document.get("transports").and_then(Item::as_array))
                .is_none_or(|list| list.iter().all(is_plain_transport));
        if has_lists || has_tables || has_range || !is_plain || document.contains_key("sweep") {
            return "hol run FILE.toml".to_owned();
        }
        let mut words = vec!["hol compare".to_owned()];
        words.extend(self.transports.iter().map(|word| quoted(word)));
        for (flag, key) in FLAGS {
            let text = self.fields.get(key).map(String::as_str).or_else(|| default_of_file(key));
            words.extend(text.map(|text| format!("{flag} {}", quoted(text))));
        }
        let others = keys.iter().filter(|(key, _)| !known(key));
        words.extend(others.map(|(key, value)| {
            format!("--set {}", quoted(&format!("{key}={}", value.as_deref().unwrap_or_default())))
        }));
        words.join(" ")
    }
}

/// Returns the default of a key in experiment files, if `hol compare` has another default.
fn default_of_file(key: &str) -> Option<&'static str> {
    match key {
        "workload.kind" => Some("simco"),
        "messages" => Some("10000"),
        _ => None,
    }
}

/// Returns whether `key` is an entry of the table `table`.
fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
}

/// Returns whether `hol compare` can express an entry of `transports`: it has only a specification and a label.
fn is_plain_transport(value: &Value) -> bool {
    value.as_inline_table().is_none_or(|table| table.iter().all(|(key, _)| ["spec", "label"].contains(&key)))
}

fn transport_spec(value: &Value) -> Option<String> {
    let spec = value.as_inline_table().and_then(|table| table.get("spec")).unwrap_or(value);
    spec.as_str().map(str::to_owned)
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:=/%+-".contains(c));
    if is_plain && !word.is_empty() { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Collects all values with their dotted keys; the value is none for a list, which a command line cannot set.
fn collect_values(before: &str, table: &dyn TableLike, found: &mut Vec<(String, Option<String>)>) {
    for (key, item) in table.iter() {
        let key = if before.is_empty() { key.to_owned() } else { format!("{before}.{key}") };
        match item.as_table_like() {
            Some(inner) => collect_values(&key, inner, found),
            None => {
                found.push((key, text_of(item).filter(|_| !item.is_array() && !item.is_array_of_tables())));
            }
        }
    }
}

/// Returns the value of a key in a file, or the values of its axis.
fn field(document: &DocumentMut, key: &str) -> Option<String> {
    let axis =
        document.get("sweep").and_then(table_of).and_then(|axes| axes.get(key)).and_then(Item::as_array);
    if let Some(axis) = axis {
        let values: Vec<String> =
            axis.iter().filter_map(|value| text_of(&Item::Value(value.clone()))).collect();
        return Some(values.join(", "));
    }
    let mut table: &dyn TableLike = document.as_table();
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        table = table_of(table.get(part)?)?;
    }
    text_of(table.get(last)?)
}

fn put_field(document: &mut DocumentMut, key: &str, text: &str) {
    let values: Vec<&str> = if text.contains(['{', '[']) {
        vec![text]
    } else {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    };
    let axis = (values.len() > 1).then(|| super::values::axis_values(key, values.iter().copied()));
    put_axis(document, key, axis);
    let one = values.first().copied().filter(|_| values.len() == 1);
    let (path, last) = key.rsplit_once('.').map_or((None, key), |(path, last)| (Some(path), last));
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        if one.is_none() && table.get(part).is_none() {
            return;
        }
        let inner = table.entry(part).or_insert_with(|| Item::Table(Table::new()));
        match inner.as_table_like_mut() {
            Some(inner) => table = inner,
            None => return,
        }
    }
    set(table, last, one);
}

fn put_axis(document: &mut DocumentMut, key: &str, axis: Option<Array>) {
    match axis {
        Some(axis) => {
            let axes = document.entry("sweep").or_insert_with(|| Item::Table(Table::new()));
            axes.as_table_like_mut().map(|axes| axes.insert(key, one_line_list(axis)));
        }
        None => {
            let Some(axes) = document.get_mut("sweep").and_then(Item::as_table_like_mut) else { return };
            axes.remove(key);
            if axes.is_empty() {
                document.remove("sweep");
            }
        }
    }
}
