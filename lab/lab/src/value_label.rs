//! The text of a TOML value in names of points and transports.

use toml::Spanned;
use toml::de::DeValue;

/// Returns the value as text, such as `{max=15p,min=5p}`, `[3,7]` or `true`. The keys of a table are in alphabetical
/// order, and strings are quoted only if they would be ambiguous.
pub(crate) fn label(value: &DeValue<'_>) -> String {
    const PLAIN_CHARACTERS: &str = "._%/:+-";
    match value {
        DeValue::String(text)
            if !text.is_empty()
                && text.chars().all(|c| c.is_alphanumeric() || PLAIN_CHARACTERS.contains(c)) =>
        {
            text.to_string()
        }
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(choice) => choice.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(list) => {
            let parts: Vec<String> = list.iter().map(|element| label(element.get_ref())).collect();
            format!("[{}]", parts.join(","))
        }
        DeValue::Table(table) => {
            let part = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
                format!("{}={}", key.get_ref(), label(value.get_ref()))
            };
            let mut parts: Vec<String> = table.iter().map(part).collect();
            parts.sort_unstable();
            format!("{{{}}}", parts.join(","))
        }
    }
}
