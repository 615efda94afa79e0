//! Positions in a drawing: lines `#at X Y NAME`, which are comments in TOML and Tcl.

use std::collections::BTreeMap;

const POSITION_MARK: &str = "#at ";

/// Positions of nodes and LANs in pixels, by name.
pub type Positions = BTreeMap<String, (i32, i32)>;

/// Reads the positions from the lines `#at X Y NAME` of a text.
pub fn read(text: &str) -> Positions {
    text.lines().filter_map(parse_position).collect()
}

fn parse_position(line: &str) -> Option<(String, (i32, i32))> {
    let mut words = line.strip_prefix(POSITION_MARK)?.splitn(3, ' ');
    let (x, y) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some((words.next()?.trim_end().to_owned(), (x, y)))
}

/// Returns the text with exactly these positions; unchanged if it already has them.
pub fn write(text: &str, positions: &Positions) -> String {
    if read(text) == *positions {
        return text.to_owned();
    }
    let mut whole = remove(text);
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    whole.extend(positions.iter().map(|(name, (x, y))| format!("{POSITION_MARK}{x} {y} {name}\n")));
    whole
}

/// Removes the positions; returns the rest of the text.
pub fn remove(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| parse_position(line).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_comments_that_change_nothing_else() {
        let text = "#at 10 20 a\nset b [$ns node]\n#at nowhere\n#at 3 4 two words\n";
        let mut positions = read(text);
        assert_eq!(positions, [("a".to_owned(), (10, 20)), ("two words".to_owned(), (3, 4))].into());
        assert_eq!(write(text, &positions), text);
        positions.remove("two words");
        positions.insert("b".to_owned(), (-5, 0));
        let moved = write(text, &positions);
        assert_eq!(moved, "set b [$ns node]\n#at nowhere\n#at 10 20 a\n#at -5 0 b\n");
        assert_eq!(write(&moved, &Positions::new()), remove(text));
    }
}
