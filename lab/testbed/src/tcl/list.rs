//! Lists of Tcl: text whose elements are separated by blanks; braces and quotes hold an element together.

/// Returns the elements of a list; an error says which brace or quote is never closed.
pub(crate) fn elements(text: &str) -> Result<Vec<String>, String> {
    let mut elements = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (element, behind) = match first {
            '{' => braced(rest)?,
            '"' => quoted(rest)?,
            _ => bare(rest),
        };
        if !behind.is_empty() && !behind.starts_with(char::is_whitespace) {
            return Err(format!("in the list {text:?} text follows {first:?} without a blank; insert one"));
        }
        elements.push(element);
        rest = behind.trim_start();
    }
    Ok(elements)
}

fn braced(text: &str) -> Result<(String, &str), String> {
    let mut depth = 0;
    let mut escaped = false;
    for (offset, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok((text[1..offset].to_owned(), &text[offset + 1..]));
        }
    }
    Err(format!("a brace of the list {text:?} is never closed; add a }}"))
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    let end = text[1..]
        .find('"')
        .ok_or_else(|| format!("a quote of the list {text:?} is never closed; add a \""))?;
    Ok((text[1..=end].to_owned(), &text[end + 2..]))
}

/// Up to a blank; a backslash takes the next letter as it is.
fn bare(text: &str) -> (String, &str) {
    let mut element = String::new();
    let mut letters = text.char_indices();
    while let Some((offset, c)) = letters.next() {
        match c {
            '\\' => element.extend(letters.next().map(|(_, c)| c)),
            c if c.is_whitespace() => return (element, &text[offset..]),
            c => element.push(c),
        }
    }
    (element, "")
}

/// A list of these elements.
pub(super) fn list<'e>(elements: impl IntoIterator<Item = &'e str>) -> String {
    elements.into_iter().map(element).collect::<Vec<_>>().join(" ")
}

fn element(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "{}[]\"\\$;".contains(c));
    if plain {
        return text.to_owned();
    }
    // Braces keep what is in them, if they match.
    match elements(&format!("{{{text}}}")) {
        Ok(only) if only.len() == 1 && only[0] == text && !text.ends_with('\\') => format!("{{{text}}}"),
        _ => {
            text.chars().flat_map(|c| (!c.is_alphanumeric()).then_some('\\').into_iter().chain([c])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_may_hold_blanks() {
        assert_eq!(elements(" a {b c}  \"d e\" {} ").unwrap(), ["a", "b c", "d e", ""]);
        assert_eq!(elements("{a {b c}} d").unwrap(), ["a {b c}", "d"]);
        assert!(elements("{a").is_err() && elements("{a}b").is_err());
    }

    #[test]
    fn a_list_gives_its_elements_back() {
        let hard = ["", "a b", "{a} b", "$x", "[run]", "{{", "say \"x\""];
        assert_eq!(elements(&list(hard)).unwrap(), hard);
    }
}
