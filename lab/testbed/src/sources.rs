//! The texts of a script: its own text, and the texts of the files that it reads with `source`.

/// Maximum number of octets of a script and all files that it reads.
const MAX_SCRIPT_OCTETS: usize = 4 << 20;

/// The texts of a script and the files that it reads, one after the other; so an offset identifies a file and a
/// position in it.
#[derive(Debug)]
pub(crate) struct Sources {
    texts: Vec<Source>,
}

/// The script, or a file that it reads.
#[derive(Debug)]
struct Source {
    name: String,
    text: String,
    /// Offset of the first octet of the file in the sequence of all texts.
    base: usize,
    /// Offsets in the file at which its lines begin.
    lines: Vec<usize>,
}

impl Source {
    fn new(name: &str, text: &str, base: usize) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Self { name: name.to_owned(), text: text.to_owned(), base, lines }
    }

    /// Returns the number of the line that contains the offset; lines count from 1.
    fn line(&self, at: usize) -> usize {
        let at = (at - self.base).min(self.text.len());
        self.lines.partition_point(|start| *start <= at)
    }
}

impl Sources {
    /// Creates the sequence with the text of the script.
    pub fn new(name: &str, text: &str) -> Self {
        Self { texts: vec![Source::new(name, text, 0)] }
    }

    /// Adds a file and returns the offset of its start; `None` if the texts become too long.
    pub fn add(&mut self, name: &str, text: &str) -> Option<usize> {
        let last = &self.texts[self.texts.len() - 1];
        let base = last.base + last.text.len() + 1;
        if base + text.len() > MAX_SCRIPT_OCTETS {
            return None;
        }
        self.texts.push(Source::new(name, text, base));
        Some(base)
    }

    /// Returns the file and the line that contain an offset, as `file:line`.
    pub fn line(&self, at: usize) -> String {
        let own = self.source_at(at);
        format!("{}:{}", own.name, own.line(at))
    }

    /// Returns the name of the file that contains the offset, and its line and column, both from 1.
    pub fn locate(&self, at: usize) -> (&str, usize, usize) {
        let source = self.source_at(at);
        let (line, Source { name, text, base, lines }) = (source.line(at), source);
        let at = (at - base).min(text.len());
        let before = text.get(lines[line - 1]..at).unwrap_or_default();
        (name, line, before.chars().count() + 1)
    }

    /// Returns the rest of the file that contains the offset, from the offset on.
    pub fn text_from(&self, at: usize) -> &str {
        let Source { text, base, .. } = self.source_at(at);
        text.get(at - base..).unwrap_or_default()
    }

    /// Returns the text from the offset to the end of its line.
    pub fn rest_of_line(&self, at: usize) -> &str {
        let own = self.source_at(at);
        let end = own.lines.get(own.line(at)).map_or(own.text.len(), |next| next - 1);
        own.text.get(at - own.base..end).unwrap_or_default()
    }

    /// Returns the words of all texts with their offsets, except words in comments and in printed text.
    pub fn words(&self) -> impl Iterator<Item = (&str, usize)> {
        self.texts.iter().flat_map(|Source { text, base, .. }| {
            let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
            // Printed text contains no commands.
            let lines = lines.filter_map(|line| line.split("puts ").next());
            let words =
                lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || "[]{}\"();".contains(c)));
            words.map(move |word| (word, base + (word.as_ptr() as usize - text.as_ptr() as usize)))
        })
    }

    fn source_at(&self, at: usize) -> &Source {
        let index = self.texts.partition_point(|source| source.base <= at);
        &self.texts[index.saturating_sub(1)]
    }
}
