//! Translates serde's errors into plain words.

use crate::nearest_word;

/// Rewrites an error of serde or of the TOML parser in plain words, with a remedy.
pub fn rewrite_parse_error(message: &str) -> String {
    let message = message.trim_end();
    if let Some((found, expected)) = split_mismatch(message) {
        return describe_mismatch(&strip_type(found), expected);
    }
    // serde also reads a struct from a list of its fields, so a list of wrong length gives this error.
    if let Some((_, expected)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return describe_mismatch("a list", expected);
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if let Some((unknown, known)) = quoted.split_first() {
        if message.starts_with("unknown field") {
            return unknown_word("key", unknown, known);
        }
        if message.starts_with("unknown variant") {
            return unknown_word("word", unknown, known);
        }
        if message.starts_with("missing field") {
            return format!("the key {unknown:?} is missing; add it");
        }
    }
    // serde's error for a choice that is neither a word nor a table with one key.
    if message.starts_with("wanted string or table") || message.starts_with("wanted exactly 1 element") {
        return "this must be a word in quotes".to_owned();
    }
    if message.contains("recurs") {
        return "too many tables or lists are nested here; reduce the depth".to_owned();
    }
    message.replace('`', "\"").replace('\n', "; ")
}

fn unknown_word(what: &str, unknown: &str, known: &[&str]) -> String {
    match nearest_word(unknown, known.iter().copied()) {
        Some(near) => format!("unknown {what} {unknown:?}; did you mean {near:?}?"),
        None => format!("unknown {what} {unknown:?}; known here are {}", known.join(", ")),
    }
}

/// Splits serde's message "invalid type: X, expected Y" into the found value X and the expected one Y.
fn split_mismatch(message: &str) -> Option<(&str, &str)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    rest.split_once(", expected ")
}

/// Strips the name of the type that serde puts before a value.
fn strip_type(found: &str) -> String {
    match found.split_once(' ') {
        _ if found == "map" => "a table".to_owned(),
        _ if found == "sequence" => "a list".to_owned(),
        Some(("string", text)) => text.to_owned(),
        Some(("integer" | "boolean" | "floating", rest)) => rest.split('`').nth(1).unwrap_or(rest).to_owned(),
        _ => found.replace('`', "\""),
    }
}

/// Returns an error message for `found` where serde expected `expected`.
fn describe_mismatch(found: &str, expected: &str) -> String {
    let is_number = found.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    match expected {
        "any value" => format!("the number {found} is too large"),
        // A float of TOML, such as 1e6.
        "u8" | "u16" | "u32" | "u64" | "usize" if whole_number(found).is_some() => {
            let whole = whole_number(found).unwrap_or_default();
            format!("{found} is not {}; write {whole}", describe_expected(expected))
        }
        "a string" if is_number => format!("{found} is not text; write it in quotes: \"{found}\""),
        _ if is_number && expected.contains("a percentage") => {
            format!("{found} is not a percentage; write it in quotes and with %, as in {}", percentage(found))
        }
        _ if is_number && expected.contains(" such as \"") => {
            format!("{found} has no unit; write {expected}")
        }
        _ => format!("{found} is not {}", describe_expected(expected)),
    }
}

/// Returns the digits of a float that is a whole number, such as `1000000` for `1e6`; `None` for other
/// text.
fn whole_number(float: &str) -> Option<u64> {
    let number = float.contains('.').then(|| float.parse::<f64>().ok()).flatten()?;
    (number.fract() == 0.0 && (0.0..=9e15).contains(&number)).then_some(number as u64)
}

/// Formats a bare number as a percentage in quotes. A number between 0 and 1 is treated as a share, so 0.05
/// becomes 5 %.
pub(crate) fn percentage(number: &str) -> String {
    match number.parse::<f64>() {
        Ok(share) if share > 0.0 && share < 1.0 => {
            let percent = (share * 1e14).round() / 1e12;
            format!("\"{percent}%\" for a share of {number}")
        }
        _ => format!("\"{number}%\""),
    }
}

/// Describes in plain words the value that serde expected.
fn describe_expected(expected: &str) -> String {
    let whole = |max: u64| format!("a whole number from 0 to {max}");
    match expected {
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        // The largest integer of TOML.
        "u64" | "usize" => whole(i64::MAX as u64),
        "f32" | "f64" => "a number such as 0.5".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list, as in [ … ]".to_owned(),
        "a map" => "a table, as in { key = … }".to_owned(),
        _ if expected.starts_with("struct ") => "a table, as in { key = … }".to_owned(),
        _ if expected.contains("variant") => "a word in quotes".to_owned(),
        _ => expected.replace('`', "\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_suggest_the_nearest_key_or_the_unit() {
        for (message, said) in [
            (
                "unknown field `dealy`, expected one of `rate`, `delay`",
                "unknown key \"dealy\"; did you mean \"delay\"?",
            ),
            ("unknown field `xyzzy`, expected `a` or `b`", "unknown key \"xyzzy\"; known here are a, b"),
            (
                "unknown variant `alk`, expected `none` or `all`",
                "unknown word \"alk\"; did you mean \"all\"?",
            ),
            ("missing field `at`", "the key \"at\" is missing; add it"),
            (
                "invalid type: integer `10`, expected a time such as \"10ms\" (units: ms)",
                "10 has no unit; write a time such as \"10ms\" (units: ms)",
            ),
            (
                "invalid type: floating point `0.5`, expected a percentage such as \"1%\", or a loss table",
                "0.5 is not a percentage; write it in quotes and with %, as in \"50%\" for a share of 0.5",
            ),
            (
                "invalid type: floating point `1000000.0`, expected u64",
                "1000000.0 is not a whole number from 0 to 9223372036854775807; write 1000000",
            ),
            (
                "invalid type: floating point `1.5`, expected u64",
                "1.5 is not a whole number from 0 to 9223372036854775807",
            ),
            ("invalid type: integer `5`, expected a string", "5 is not text; write it in quotes: \"5\""),
        ] {
            assert_eq!(rewrite_parse_error(message), said);
        }
    }

    #[test]
    fn errors_for_numbers_out_of_range_name_the_range() {
        for (message, said) in [
            (
                "invalid value: integer `-1`, expected u64",
                "-1 is not a whole number from 0 to 9223372036854775807",
            ),
            (
                "invalid value: integer `1000000`, expected u16",
                "1000000 is not a whole number from 0 to 65535",
            ),
            (
                "invalid type: integer `99999999999999999999` as i128, expected any value",
                "the number 99999999999999999999 is too large",
            ),
        ] {
            assert_eq!(rewrite_parse_error(message), said);
        }
    }

    #[test]
    fn wrong_toml_types_are_described_by_their_syntax() {
        for (message, said) in [
            ("invalid type: integer `5`, expected struct NetworkSpec", "5 is not a table, as in { key = … }"),
            (
                "invalid length 1, expected struct HandoverSpec with 4 elements",
                "a list is not a table, as in { key = … }",
            ),
            ("invalid type: map, expected a sequence", "a table is not a list, as in [ … ]"),
            ("invalid type: string \"x\", expected a boolean", "\"x\" is not true or false"),
        ] {
            assert_eq!(rewrite_parse_error(message), said);
        }
    }
}
