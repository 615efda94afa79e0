//! Positions in a drawing: lines `#at X Y NAME`, which are comments in TOML and Tcl.

use std::collections::BTreeMap;

const MARK: &str = "#at ";

/// Positions of nodes and LANs in pixels, by name.
pub type Places = BTreeMap<String, (i32, i32)>;

/// Returns the positions in a text.
pub fn read(text: &str) -> Places {
    text.lines().filter_map(place).collect()
}

fn place(line: &str) -> Option<(String, (i32, i32))> {
    let mut words = line.strip_prefix(MARK)?.splitn(3, ' ');
    let (x, y) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((words.next()?.trim_end().to_owned(), (x, y)))
}

/// Returns the text with exactly these positions; unchanged if it already has them.
pub fn write(text: &str, places: &Places) -> String {
    if read(text) == *places {
        return text.to_owned();
    }
    let mut whole = without(text);
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    whole.extend(places.iter().map(|(name, (x, y))| format!("{MARK}{x} {y} {name}\n")));
    whole
}

/// Returns the text without positions.
pub fn without(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| place(line).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_in_the_text_and_change_nothing_else() {
        let text = "#at 10 20 a\nset b [$ns node]\n#at nowhere\n#at 3 4 two words\n";
        let mut places = read(text);
        assert_eq!(places, [("a".to_owned(), (10, 20)), ("two words".to_owned(), (3, 4))].into());
        assert_eq!(write(text, &places), text);
        places.remove("two words");
        places.insert("b".to_owned(), (-5, 0));
        let moved = write(text, &places);
        assert_eq!(moved, "set b [$ns node]\n#at nowhere\n#at 10 20 a\n#at -5 0 b\n");
        assert_eq!(write(&moved, &Places::new()), without(text));
    }
}
