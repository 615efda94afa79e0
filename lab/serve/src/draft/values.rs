//! Converts values of an experiment file to the text of a form's fields, and back.

use toml_edit::{Array, Item, TableLike, Value};

/// Returns the text of a value; a string is returned without quotes.
pub fn text_of(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        other => Some(other.clone().decorated("", "").to_string()),
    }
}

/// Returns the values of an axis from their texts.
pub fn axis_values<'t>(key: &str, texts: impl Iterator<Item = &'t str>) -> Array {
    texts.map(|text| value_of(key, text.trim())).collect()
}

/// Returns the value of a text: a number, a boolean, a list or a table if the text is one of these in TOML, otherwise a
/// string.
fn parse_value(text: &str) -> Value {
    let text = text.trim();
    match text.parse::<Value>() {
        Ok(value) if !value.is_str() && !value.is_datetime() => value,
        _ => Value::from(text),
    }
}

/// Returns the item as a table, in-line or not.
pub fn table_of(item: &Item) -> Option<&dyn TableLike> {
    item.as_table_like()
}

/// Returns the tables of a list, in-line or not.
pub fn tables(item: Option<&Item>) -> Vec<&dyn TableLike> {
    match item {
        Some(Item::ArrayOfTables(list)) => list.iter().map(|table| table as &dyn TableLike).collect(),
        Some(Item::Value(Value::Array(list))) => list
            .iter()
            .filter_map(|value| value.as_inline_table().map(|table| table as &dyn TableLike))
            .collect(),
        _ => Vec::new(),
    }
}

/// Keys whose values are always strings: the name of a node may be `1`.
const TEXT_KEYS: [&str; 6] = ["name", "from", "to", "kind", "transport", "title"];

/// Returns the value of a field like [`parse_value`], but names are strings, and rates may have the units of ns.
fn value_of(key: &str, text: &str) -> Value {
    let last = key.rsplit('.').next().unwrap_or(key);
    match last {
        _ if TEXT_KEYS.contains(&last) => Value::from(text),
        "rate" => parse_value(&rate(text)),
        _ => parse_value(text),
    }
}

/// Returns a rate with the unit of an experiment file: `0.4Mb` of ns is `0.4Mbit`. Does not change other texts.
fn rate(text: &str) -> String {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "b" => "bit",
        "kb" | "Kb" => "kbit",
        "mb" | "Mb" => "Mbit",
        "gb" | "Gb" => "Gbit",
        _ => return text.to_owned(),
    };
    if number.parse::<f64>().is_ok() { format!("{number}{unit}") } else { text.to_owned() }
}

/// Sets or removes a key; a value that is already equal remains as written.
pub fn set(table: &mut dyn TableLike, key: &str, text: Option<&str>) {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
        table.remove(key);
        return;
    };
    let mut value = value_of(key, text);
    match table.get_mut(key) {
        Some(item) if text_of(item).as_deref() == Some(text) => {}
        Some(Item::Value(old)) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        _ => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// Formats a list on one line.
pub fn one_line_list(mut values: Array) -> Item {
    for (at, value) in values.iter_mut().enumerate() {
        value.decor_mut().set_prefix(if at == 0 { "" } else { " " });
        value.decor_mut().set_suffix("");
    }
    values.set_trailing("");
    values.set_trailing_comma(false);
    Item::Value(values.into())
}
