//! Parses regular expressions of Tcl: re_syntax(n), without back references and look-ahead.

use super::parse::backslash;

/// The longest supported regular expression, in octets.
const MAX_PATTERN_OCTETS: usize = 4096;
/// Maximum nesting of parentheses in a regular expression; deeper nesting is rejected.
const MAX_NESTING: usize = 50;
/// The highest number of repetitions in a regular expression: `DUPMAX` of Tcl.
const MAX_REPETITIONS: usize = 255;

/// A parsed regular expression.
#[derive(Debug)]
pub(super) struct Pattern {
    pub root: Node,
    /// The number of groups, including group 0, which is the whole match.
    pub groups: usize,
    pub ignores_case: bool,
}

/// A node of a parsed regular expression.
#[derive(Debug)]
pub(super) enum Node {
    Letter(CharacterSet),
    Constraint(Constraint),
    Group(usize, Box<Node>),
    Sequence(Vec<Node>),
    /// Alternatives: `a|b`.
    Either(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: usize,
        max: usize,
        is_lazy: bool,
    },
}

/// A condition on a position in the text, such as `^`; it matches without consuming characters.
#[derive(Debug, Clone, Copy)]
pub(super) enum Constraint {
    Start,
    End,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

/// A set of characters, such as `[a-z_]`.
#[derive(Debug)]
pub(super) struct CharacterSet {
    items: Vec<Item>,
    is_negated: bool,
}

/// An item of a set of characters.
#[derive(Debug)]
enum Item {
    Range(char, char),
    /// The characters of a class; or, if `false`, all other characters.
    Class(Class, bool),
}

type Class = fn(char) -> bool;

/// The names of character classes, as in `[[:alpha:]]`.
const CLASSES: [(&str, Class); 10] = [
    ("alnum", char::is_alphanumeric),
    ("alpha", char::is_alphabetic),
    ("blank", |c| matches!(c, ' ' | '\t')),
    ("cntrl", char::is_control),
    ("digit", char::is_numeric),
    ("lower", char::is_lowercase),
    ("punct", |c| c.is_ascii_punctuation()),
    ("space", char::is_whitespace),
    ("upper", char::is_uppercase),
    ("xdigit", |c| c.is_ascii_hexdigit()),
];

/// Returns whether a character is part of a word.
pub(super) fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl CharacterSet {
    fn one(c: char) -> Self {
        Self { items: vec![Item::Range(c, c)], is_negated: false }
    }

    /// Returns the number of comparisons that are needed to check one character.
    pub fn size(&self) -> usize {
        self.items.len()
    }

    /// Returns whether a character is in the set; with `ignores_case`, whether its upper or lower case is.
    pub fn contains(&self, c: char, ignores_case: bool) -> bool {
        let is_in = |c: char| {
            self.items.iter().any(|item| match item {
                Item::Range(first, last) => (*first..=*last).contains(&c),
                Item::Class(class, is_inside) => class(c) == *is_inside,
            })
        };
        let is_any_in = || is_in(c) || ignores_case && c.to_lowercase().chain(c.to_uppercase()).any(is_in);
        is_any_in() != self.is_negated
    }
}

impl Node {
    /// Returns whether a node contains a group.
    pub fn has_groups(&self) -> bool {
        match self {
            Self::Letter(_) | Self::Constraint(_) => false,
            Self::Group(..) => true,
            Self::Sequence(nodes) | Self::Either(nodes) => nodes.iter().any(Self::has_groups),
            Self::Repeat { node, .. } => node.has_groups(),
        }
    }

    /// Returns whether a node prefers the shortest match; `None` if all its matches have the same length.
    pub fn is_lazy(&self) -> Option<bool> {
        match self {
            Self::Letter(_) | Self::Constraint(_) => None,
            Self::Group(_, node) => node.is_lazy(),
            Self::Sequence(nodes) => nodes.iter().find_map(Self::is_lazy),
            Self::Either(_) => Some(false),
            Self::Repeat { node, min, max, .. } if min == max => node.is_lazy(),
            Self::Repeat { is_lazy, .. } => Some(*is_lazy),
        }
    }
}

/// Parses a regular expression; returns a description of the problem if it is invalid.
pub(super) fn parse(text: &str, ignores_case: bool) -> Result<Pattern, String> {
    if text.len() > MAX_PATTERN_OCTETS {
        return Err(format!("the pattern has more than {MAX_PATTERN_OCTETS} octets"));
    }
    let (rest, ignores_case) = text.strip_prefix("(?i)").map_or((text, ignores_case), |rest| (rest, true));
    let mut reader = Reader { rest, groups: 1, depth: 0 };
    let root = reader.either()?;
    match reader.rest {
        "" => Ok(Pattern { root, groups: reader.groups, ignores_case }),
        _ => Err("a ) closes no parenthesis".to_owned()),
    }
}

/// A parser that reads a regular expression from front to back.
struct Reader<'p> {
    rest: &'p str,
    groups: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }

    fn eat(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn either(&mut self) -> Result<Node, String> {
        let mut all = vec![self.sequence()?];
        while self.eat("|") {
            all.push(self.sequence()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Node::Either(all) })
    }

    fn sequence(&mut self) -> Result<Node, String> {
        let mut nodes = Vec::new();
        while self.peek().is_some_and(|c| c != '|' && c != ')') {
            nodes.push(self.quantified()?);
        }
        Ok(Node::Sequence(nodes))
    }

    fn quantified(&mut self) -> Result<Node, String> {
        const INVALID_QUANTIFIER: &str = "a quantifier such as * follows nothing that can be repeated";
        if self.quantifier()?.is_some() {
            return Err(INVALID_QUANTIFIER.to_owned());
        }
        let node = self.atom()?;
        let Some((min, max)) = self.quantifier()? else { return Ok(node) };
        let is_lazy = self.eat("?");
        if matches!(node, Node::Constraint(_)) || self.quantifier()?.is_some() {
            return Err(INVALID_QUANTIFIER.to_owned());
        }
        Ok(Node::Repeat { node: Box::new(node), min, max, is_lazy })
    }

    /// Reads a quantifier: `*`, `+`, `?`, `{3}`, `{3,}` or `{3,5}`. Returns the minimum and maximum of repetitions.
    fn quantifier(&mut self) -> Result<Option<(usize, usize)>, String> {
        let simple = [("*", (0, usize::MAX)), ("+", (1, usize::MAX)), ("?", (0, 1))];
        if let Some((_, counts)) = simple.into_iter().find(|(sign, _)| self.eat(sign)) {
            return Ok(Some(counts));
        }
        let Some(inside) =
            self.rest.strip_prefix('{').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        else {
            return Ok(None);
        };
        let counts = inside.split_once('}').and_then(|(counts, rest)| {
            self.rest = rest;
            let count = |text: &str| text.parse::<usize>().ok().filter(|count| *count <= MAX_REPETITIONS);
            match counts.split_once(',') {
                None => Some((count(counts)?, count(counts)?)),
                Some((min, "")) => Some((count(min)?, usize::MAX)),
                Some((min, max)) => Some((count(min)?, count(max)?)),
            }
        });
        match counts.filter(|(min, max)| min <= max) {
            Some(counts) => Ok(Some(counts)),
            None => Err(format!("repetitions are written {{3}}, {{3,}} or {{3,5}}, up to {MAX_REPETITIONS}")),
        }
    }

    fn atom(&mut self) -> Result<Node, String> {
        Ok(match self.take() {
            Some('(') => self.group()?,
            Some('[') => Node::Letter(self.bracket()?),
            Some('.') => Node::Letter(CharacterSet { items: Vec::new(), is_negated: true }),
            Some('^') => Node::Constraint(Constraint::Start),
            Some('$') => Node::Constraint(Constraint::End),
            Some('\\') => self.escape()?,
            Some(c) => Node::Letter(CharacterSet::one(c)),
            None => return Err("the pattern ends too early".to_owned()),
        })
    }

    fn group(&mut self) -> Result<Node, String> {
        let is_counted = !self.eat("?:");
        if self.peek() == Some('?') {
            return Err("(? is supported only as (?: and as (?i) at the start".to_owned());
        }
        let number = self.groups;
        self.groups += usize::from(is_counted);
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("parentheses are nested more than {MAX_NESTING} deep"));
        }
        let node = self.either()?;
        self.depth -= 1;
        if !self.eat(")") {
            return Err("a parenthesis is never closed".to_owned());
        }
        Ok(if is_counted { Node::Group(number, Box::new(node)) } else { node })
    }

    /// Reads an escape sequence after its backslash.
    fn escape(&mut self) -> Result<Node, String> {
        let place = match self.peek() {
            Some('A') => Constraint::Start,
            Some('Z') => Constraint::End,
            Some('m') => Constraint::WordStart,
            Some('M') => Constraint::WordEnd,
            Some('y') => Constraint::WordEdge,
            Some('Y') => Constraint::NoWordEdge,
            _ => return Ok(Node::Letter(CharacterSet { items: vec![self.escaped()?], is_negated: false })),
        };
        self.take();
        Ok(Node::Constraint(place))
    }

    /// Reads a character or a class after a backslash.
    fn escaped(&mut self) -> Result<Item, String> {
        let class: Option<(Class, bool)> = match self.peek() {
            Some('d') => Some((char::is_numeric, true)),
            Some('D') => Some((char::is_numeric, false)),
            Some('s') => Some((char::is_whitespace, true)),
            Some('S') => Some((char::is_whitespace, false)),
            Some('w') => Some((is_word_character, true)),
            Some('W') => Some((is_word_character, false)),
            _ => None,
        };
        if let Some((class, is_inside)) = class {
            self.take();
            return Ok(Item::Class(class, is_inside));
        }
        match self.take() {
            Some('B') => Ok(Item::Range('\\', '\\')),
            Some(c) if "abfnrtvxuU".contains(c) => {
                let text = format!("\\{c}{}", self.rest);
                let (own, length) = backslash(&text);
                self.rest = &self.rest[length - 2..];
                Ok(Item::Range(own, own))
            }
            Some(c) if c.is_alphanumeric() => Err(format!("\\{c} is not supported")),
            Some(c) => Ok(Item::Range(c, c)),
            None => Err("the pattern ends with a backslash".to_owned()),
        }
    }

    /// Reads a set of characters such as `[a-z_]`, after its opening bracket.
    fn bracket(&mut self) -> Result<CharacterSet, String> {
        const OPEN_BRACKET: &str = "a bracket is never closed";
        let is_negated = self.eat("^");
        let mut items = Vec::new();
        loop {
            if !items.is_empty() && self.eat("]") {
                return Ok(CharacterSet { items, is_negated });
            }
            let first = self.read_item()?.ok_or(OPEN_BRACKET)?;
            let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.eat("-");
            items.push(match (first, is_range) {
                (first, false) => first,
                (Item::Range(first, _), true) => match self.read_item()?.ok_or(OPEN_BRACKET)? {
                    Item::Range(last, _) if first <= last => Item::Range(first, last),
                    Item::Range(last, _) => {
                        return Err(format!("the range {first}-{last} is not in ascending order"));
                    }
                    Item::Class(..) => {
                        return Err("a range must end with a character, not a class".to_owned());
                    }
                },
                _ => return Err("a range must begin with a character, not a class".to_owned()),
            });
        }
    }

    /// Reads a character, range or class in a set of characters.
    fn read_item(&mut self) -> Result<Option<Item>, String> {
        if self.eat("[:") {
            let known = CLASSES.into_iter().find(|(name, _)| self.eat(&format!("{name}:]")));
            let names = CLASSES.map(|(name, _)| name).join(", ");
            let (_, class) = known.ok_or_else(|| format!("classes in brackets are {names}"))?;
            return Ok(Some(Item::Class(class, true)));
        }
        if self.rest.starts_with("[.") || self.rest.starts_with("[=") {
            return Err("collating elements are not supported".to_owned());
        }
        match self.take() {
            Some('\\') => self.escaped().map(Some),
            c => Ok(c.map(|c| Item::Range(c, c))),
        }
    }
}
