//! Splits the text of a script into statements, which may span lines; removes comments and the parts for other systems.

use crate::PlayError;

/// A statement of a script: an option, a step or a command block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Line number at which the statement begins.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// The construct that continues beyond the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum OpenConstruct {
    #[default]
    Nothing,
    Comment,
    Quotes,
    Backticks,
    Python,
}

/// Splits lines, and tracks whether a statement continues in the next one.
#[derive(Debug, Default)]
struct Scanner {
    inside: OpenConstruct,
    /// Number of brackets that are open.
    depth: usize,
}

impl Scanner {
    /// Returns a line of the script without its comments.
    fn scan<'t>(&mut self, mut rest: &'t str) -> String {
        let mut text = String::new();
        let mut copy = |rest: &mut &'t str, octets: usize| {
            text.push_str(&rest[..octets]);
            *rest = &rest[octets..];
        };
        while let Some(next) = rest.chars().next() {
            let (inside, taken) = match self.inside {
                OpenConstruct::Comment => {
                    let end = rest.find("*/").map(|at| at + 2);
                    rest = &rest[end.unwrap_or(rest.len())..];
                    self.inside = if end.is_some() { OpenConstruct::Nothing } else { OpenConstruct::Comment };
                    continue;
                }
                OpenConstruct::Python if rest.starts_with("}%") => (OpenConstruct::Nothing, 2),
                OpenConstruct::Quotes if next == '"' => (OpenConstruct::Nothing, 1),
                OpenConstruct::Backticks if next == '`' => (OpenConstruct::Nothing, 1),
                OpenConstruct::Nothing if rest.starts_with("//") => break,
                OpenConstruct::Nothing if rest.starts_with("/*") => {
                    self.inside = OpenConstruct::Comment;
                    rest = &rest[2..];
                    continue;
                }
                OpenConstruct::Nothing if rest.starts_with("%{") => (OpenConstruct::Python, 2),
                OpenConstruct::Nothing if next == '"' => (OpenConstruct::Quotes, 1),
                OpenConstruct::Nothing if next == '`' => (OpenConstruct::Backticks, 1),
                inside => (inside, next.len_utf8()),
            };
            if self.inside == OpenConstruct::Nothing && inside == OpenConstruct::Nothing {
                match next {
                    '(' | '[' | '{' => self.depth += 1,
                    ')' | ']' | '}' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
            self.inside = inside;
            copy(&mut rest, taken);
        }
        text
    }

    fn is_open(&self) -> bool {
        self.inside != OpenConstruct::Nothing || self.depth > 0
    }

    /// Returns whether the next line is within a code block (shell commands or Python).
    fn is_in_code(&self) -> bool {
        matches!(self.inside, OpenConstruct::Python | OpenConstruct::Backticks)
    }
}

/// Splits a script into statements. Lines between `#ifdef NAME` and `#endif` count only if `defines` contains
/// NAME.
pub(crate) fn split_statements(text: &str, defines: &[String]) -> Result<Vec<Statement>, PlayError> {
    let mut statements: Vec<Statement> = Vec::new();
    let mut scanner = Scanner::default();
    // The line of the open #ifdef, and whether the following lines are skipped.
    let mut condition: Option<(usize, bool)> = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if !scanner.is_in_code() && line.trim_start().starts_with('#') {
            condition = apply_directive(line.trim(), number, condition, defines)?;
            continue;
        }
        if condition.is_some_and(|(_, leaves_out)| leaves_out) {
            continue;
        }
        let was_open = scanner.is_open();
        let separator = if scanner.is_in_code() { '\n' } else { ' ' };
        let part = scanner.scan(line);
        match statements.last_mut() {
            Some(last) if was_open => {
                last.text.push(separator);
                last.text.push_str(part.trim());
            }
            _ if part.trim().is_empty() => {}
            Some(last) if continues(&last.text, part.trim()) => {
                last.text.push(' ');
                last.text.push_str(part.trim());
            }
            _ => statements.push(Statement { line: number, text: part.trim().to_owned() }),
        }
    }
    match (condition, statements.last()) {
        (Some((line, _)), _) => Err(PlayError::new("this #ifdef has no #endif; add one").at_line(line)),
        (None, Some(last)) if scanner.is_open() => {
            let problem = "a bracket, a quote, a comment, \"`\" or \"%{\" that begins here is not closed";
            Err(PlayError::new(problem).at_line(last.line))
        }
        _ => Ok(statements),
    }
}

/// Handles #ifdef and #endif; any other line that begins with `#` is a comment.
fn apply_directive(
    line: &str,
    number: usize,
    condition: Option<(usize, bool)>,
    defines: &[String],
) -> Result<Option<(usize, bool)>, PlayError> {
    let mut words = line.split_whitespace();
    let problem = match (words.next(), words.next(), condition) {
        (Some("#ifdef"), Some(name), None) => {
            return Ok(Some((number, !defines.iter().any(|define| define == name))));
        }
        (Some("#ifdef"), Some(_), Some((first, _))) => {
            format!("this #ifdef is inside that of line {first}; packetdrill does not support nesting")
        }
        (Some("#ifdef"), None, _) => "#ifdef has no name; use #ifdef Linux".to_owned(),
        (Some("#endif"), _, Some(_)) => return Ok(None),
        (Some("#endif"), _, None) => "this #endif has no #ifdef; add one before it".to_owned(),
        (Some("#else" | "#if" | "#ifndef" | "#elif"), ..) => {
            format!("{line:?} is not a condition of packetdrill; use #ifdef NAME and #endif")
        }
        _ => return Ok(condition),
    };
    Err(PlayError::new(problem).at_line(number))
}

/// Returns whether the line `next` continues the statement `text`: either a statement cannot end like `text`, or
/// it cannot begin like `next`.
fn continues(text: &str, next: &str) -> bool {
    let is_step = !text.starts_with("--");
    let lacks_end = text.ends_with([',', '=', '|', ';']);
    let names_error = text.ends_with("= -1") && next.starts_with('E');
    is_step && (lacks_end || names_error || next.starts_with(['<', '=']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(usize, String)> {
        let read = split_statements(text, &["Linux".to_owned()]).unwrap();
        read.into_iter().map(|statement| (statement.line, statement.text)).collect()
    }

    #[test]
    fn statement_may_span_several_lines() {
        let text = "+0 f(3, {a=1,\n  b=2}, // why\n 8) = 0\n+0 > S 0:0(0)\n  <mss 1>\n+0 g() = -1\n EAGAIN (no)\n+1\n+0 h() = -1 // any\n+2";
        let expected = [
            (1, "+0 f(3, {a=1, b=2}, 8) = 0"),
            (4, "+0 > S 0:0(0) <mss 1>"),
            (6, "+0 g() = -1 EAGAIN (no)"),
            (8, "+1"),
            (9, "+0 h() = -1"),
            (10, "+2"),
        ];
        assert_eq!(cut(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn comments_are_removed_and_python_code_is_kept() {
        let text = "/* one\ntwo */ 0 `a // b\n# c`\n# no step\n+0 %{ # d\n x = 3 // 2 }%\n+0 f(\"//\") = 0";
        let expected = [(2, "0 `a // b\n# c`"), (5, "+0 %{ # d\nx = 3 // 2 }%"), (7, "+0 f(\"//\") = 0")];
        assert_eq!(cut(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn lines_for_other_systems_are_skipped() {
        let text = "#ifdef FreeBSD\n+1\n#endif\n#ifdef Linux\n+2\n#endif\n+3";
        assert_eq!(cut(text), [(5, "+2".to_owned()), (7, "+3".to_owned())]);
        for (text, cure) in [
            ("#ifdef Linux\n+1", ":1: this #ifdef has no #endif"),
            ("+1\n#endif", ":2: this #endif has no #ifdef"),
            ("#ifdef A\n#ifdef B\n#endif", ":2: this #ifdef is inside that of line 1"),
            ("#ifdef", "has no name"),
            ("#else", "use #ifdef NAME and #endif"),
            ("+0\n+1 f(", ":2: a bracket, a quote"),
            ("+0 `a", "is not closed"),
        ] {
            let problem = split_statements(text, &["Linux".to_owned()]).unwrap_err().to_string();
            assert!(problem.contains(cure), "{text}: {problem}");
        }
    }
}
