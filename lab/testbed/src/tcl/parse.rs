//! Parses commands, words and their parts by the rules of Tcl's manual page `Tcl(n)`.

use super::{Text, WordError, error_at};

/// Maximum nesting of brackets, braces and parentheses; a script with deeper nesting is rejected.
pub(super) const MAX_NESTING: usize = 50;

/// The words of a command; a command ends at a line break or a semicolon.
pub(super) type Command = Vec<RawWord>;

/// A word of a command before variables and commands in it are substituted.
#[derive(Debug, Clone)]
pub(super) struct RawWord {
    /// Offset of the word among all sources.
    pub at: usize,
    pub parts: Vec<Part>,
    /// Offset of the text in the braces if the word is in braces.
    pub verbatim: Option<usize>,
}

/// A part of a word: text, a variable, or commands.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Literal text in a word.
    Text(String),
    /// A variable in a word: `$name`, `${name}` or `$name(index)`.
    Variable { at: usize, name: String, index: Option<Vec<Part>> },
    /// Commands in brackets in a word, which are replaced by their result: `[commands]`.
    Script(Vec<Command>),
}

/// A parser that reads a text from front to back.
#[derive(Debug, Clone)]
pub(super) struct Parser<'t> {
    text: Text<'t>,
    /// Number of octets read so far.
    pub offset: usize,
    depth: usize,
}

/// Parses a script into its commands.
pub(super) fn script(text: Text<'_>) -> Result<Vec<Command>, WordError> {
    Parser::new(text).commands(None)
}

/// Returns the character that the backslash sequence at the start of a text stands for, and the length of the sequence
/// in octets. Tcl(n).
pub(super) fn backslash(text: &str) -> (char, usize) {
    let behind = &text[1..];
    let Some(c) = behind.chars().next() else { return ('\\', 1) };
    let digits = |from: usize, radix: u32, max: usize| {
        let digits = behind[from..].chars().take(max).take_while(|c| c.is_digit(radix)).count();
        let value = u32::from_str_radix(&behind[from..from + digits], radix).ok()?;
        Some((char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER), 1 + from + digits))
    };
    let code = match c {
        'x' => digits(1, 16, 2),
        'u' => digits(1, 16, 4),
        'U' => digits(1, 16, 8),
        '0'..='7' => digits(0, 8, 3),
        _ => None,
    };
    code.unwrap_or(match c {
        'a' => ('\u{7}', 2),
        'b' => ('\u{8}', 2),
        'f' => ('\u{c}', 2),
        'n' => ('\n', 2),
        'r' => ('\r', 2),
        't' => ('\t', 2),
        'v' => ('\u{b}', 2),
        // The sequence includes the blanks at the start of the next line.
        '\n' => (' ', 2 + behind[1..].len() - behind[1..].trim_start_matches([' ', '\t']).len()),
        c => (c, 1 + c.len_utf8()),
    })
}

impl<'t> Parser<'t> {
    /// Creates a parser at the beginning of a text.
    pub fn new(text: Text<'t>) -> Self {
        Self { text, offset: 0, depth: 0 }
    }

    /// Returns the offset of the parser among all sources.
    pub fn script_position(&self) -> usize {
        self.text.script_position(self.offset)
    }

    /// Returns the next character without reading it.
    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Returns the text that has not been read yet.
    pub fn rest(&self) -> &'t str {
        &self.text.text[self.offset..]
    }

    /// Reads and returns the next character; `None` at the end.
    pub fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.offset += next.len_utf8();
        Some(next)
    }

    /// Reads `expected` if the text continues with it; returns whether it does.
    pub fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        self.offset += if found { expected.len() } else { 0 };
        found
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.offset += length;
        &rest[..length]
    }

    /// Reads commands up to the end of the text, or up to the closing bracket.
    fn commands(&mut self, close: Option<char>) -> Result<Vec<Command>, WordError> {
        let mut commands = Vec::new();
        loop {
            self.take_while(|c| c.is_whitespace() || c == ';');
            if self.eat("\\\n") {
                continue;
            }
            if self.peek() == Some('#') {
                self.skip_comment();
                continue;
            }
            match self.peek() {
                None if close.is_none() => return Ok(commands),
                None => {
                    return error_at(self.script_position(), "the script ends inside [ ]; close the bracket");
                }
                Some(']') if close.is_some() => {
                    self.take();
                    return Ok(commands);
                }
                Some(_) => commands.push(self.command(close)?),
            }
        }
    }

    /// Skips a comment. A backslash at the end of a line continues the comment in the next line.
    fn skip_comment(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '\\' => drop(self.take()),
                '\n' => return,
                _ => {}
            }
        }
    }

    fn command(&mut self, close: Option<char>) -> Result<Command, WordError> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some('\n' | ';') => return Ok(words),
                next if next == close => return Ok(words),
                Some(_) => words.push(self.word(close)?),
            }
        }
    }

    /// Skips blanks inside a command; a backslash at the end of a line counts as one.
    fn skip_blanks(&mut self) {
        while !self.take_while(|c| c.is_whitespace() && c != '\n').is_empty() || self.eat("\\\n") {}
    }

    fn word(&mut self, close: Option<char>) -> Result<RawWord, WordError> {
        let at = self.script_position();
        if self.peek() == Some('{') {
            let (text, verbatim) = self.braces()?;
            self.ends_here(close, "}")?;
            return Ok(RawWord { at, parts: vec![Part::Text(text)], verbatim });
        }
        let parts = if self.eat("\"") {
            let parts = self.parts(|c| c == '"')?;
            if !self.eat("\"") {
                return error_at(at, "the quotes that open here are never closed; add a \"");
            }
            self.ends_here(close, "\"")?;
            parts
        } else {
            self.parts(|c| c.is_whitespace() || c == ';' || Some(c) == close)?
        };
        Ok(RawWord { at, parts, verbatim: None })
    }

    fn ends_here(&self, close: Option<char>, before: &str) -> Result<(), WordError> {
        match self.peek() {
            None => Ok(()),
            Some(c) if c.is_whitespace() || c == ';' || Some(c) == close => Ok(()),
            Some('\\') if self.rest().starts_with("\\\n") => Ok(()),
            Some(c) => error_at(
                self.script_position(),
                format!("{c:?} follows {before} without a blank; insert one"),
            ),
        }
    }

    /// Reads a text in braces. Returns the text, and the offset of its first octet.
    pub fn braces(&mut self) -> Result<(String, Option<usize>), WordError> {
        let open = self.script_position();
        self.take();
        let (start, base) = (self.offset, self.script_position());
        let mut depth = 1;
        while let Some(c) = self.take() {
            match c {
                '\\' => drop(self.take()),
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let text = &self.text.text[start..self.offset - 1];
                // A joined line is replaced with blanks, so that all offsets stay the same.
                let joined = text.replace("\\\n", "  ");
                return Ok((joined, Some(base)));
            }
        }
        error_at(open, "the brace that opens here is never closed; add a }")
    }

    /// Reads the parts of a word up to a character that ends them.
    pub fn parts(&mut self, ends: impl Fn(char) -> bool + Copy) -> Result<Vec<Part>, WordError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        while let Some(c) = self.peek().filter(|c| !ends(*c)) {
            match c {
                '$' | '[' => {
                    if let Some(part) = self.substitution()? {
                        parts.extend((!text.is_empty()).then(|| Part::Text(std::mem::take(&mut text))));
                        parts.push(part);
                    } else {
                        text.push('$');
                        self.take();
                    }
                }
                '\\' if self.rest().starts_with("\\\n") && ends(' ') => break,
                '\\' => {
                    let (c, length) = backslash(self.rest());
                    text.push(c);
                    self.offset += length;
                }
                _ => {
                    text.push(c);
                    self.take();
                }
            }
        }
        parts.extend((!text.is_empty()).then_some(Part::Text(text)));
        // Scripts have many words of one part.
        parts.shrink_to_fit();
        Ok(parts)
    }

    /// Reads `$…` or `[…]`; `None` if the dollar sign is literal.
    pub fn substitution(&mut self) -> Result<Option<Part>, WordError> {
        let at = self.script_position();
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return error_at(at, format!("brackets are nested more than {MAX_NESTING} deep; use variables"));
        }
        let part =
            if self.eat("[") { Some(Part::Script(self.commands(Some(']'))?)) } else { self.variable(at)? };
        self.depth -= 1;
        Ok(part)
    }

    /// Reads the name of a variable: letters, digits, `_`, and at least two colons together.
    fn variable_name(&mut self) -> &'t str {
        let rest = self.rest();
        let mut length = 0;
        while let Some(c) = rest[length..].chars().next() {
            let colons = rest[length..].len() - rest[length..].trim_start_matches(':').len();
            length += match c {
                ':' if colons >= 2 => colons,
                c if c.is_ascii_alphanumeric() || c == '_' => 1,
                _ => break,
            };
        }
        self.offset += length;
        &rest[..length]
    }

    fn variable(&mut self, at: usize) -> Result<Option<Part>, WordError> {
        let start = self.offset;
        self.take();
        if self.peek() == Some('{') {
            let (name, _) = self.braces()?;
            return Ok(Some(Part::Variable { at, name, index: None }));
        }
        let name = self.variable_name().to_owned();
        if name.is_empty() {
            self.offset = start;
            return Ok(None);
        }
        let index = if self.eat("(") {
            let index = self.parts(|c| c == ')')?;
            if !self.eat(")") {
                return error_at(at, format!("the index of ${name}( is never closed; add a )"));
            }
            Some(index)
        } else {
            None
        };
        Ok(Some(Part::Variable { at, name, index }))
    }
}
