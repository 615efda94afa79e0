//! What was said in a shell, as far back as it is kept.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Octets that are kept; who wants more has `:pcap` and files.
const LONGEST: usize = 256 << 10;

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Entry {
    /// Its number, from 0: one that is missing was forgotten, or missed.
    pub at: u64,
    /// `{"prompt": {node, now, code, nodes}}`, `{"line": TEXT}` that somebody typed, `{"out": TEXT}`, `{"err": TEXT}`, `{"note": TEXT}`, or
    /// at the end `{"end": WHY}`.
    pub said: Value,
}

/// All of it, and whether a line is waited for.
#[derive(Debug, Default)]
pub struct Transcript {
    entries: VecDeque<(Entry, usize)>,
    octets: usize,
    next: u64,
    is_waiting: bool,
}

impl Transcript {
    /// Takes in what was said.
    pub fn add(&mut self, said: Value) -> Entry {
        self.is_waiting = said.get("prompt").is_some();
        let size = said.to_string().len();
        let entry = Entry { at: self.next, said };
        self.next += 1;
        self.octets += size;
        self.entries.push_back((entry.clone(), size));
        while self.octets > LONGEST {
            let Some((_, size)) = self.entries.pop_front() else { break };
            self.octets -= size;
        }
        entry
    }

    /// Whether a line is waited for.
    pub const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// What is kept.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_is_forgotten_and_numbers_tell_so() {
        let mut transcript = Transcript::default();
        for _ in 0..5 {
            transcript.add(json!({ "out": "x".repeat(LONGEST / 4) }));
        }
        let kept: Vec<u64> = transcript.entries().iter().map(|entry| entry.at).collect();
        assert_eq!(kept, [2, 3, 4]);
    }

    #[test]
    fn a_line_is_waited_for_after_a_prompt() {
        let mut transcript = Transcript::default();
        assert!(!transcript.is_waiting());
        transcript.add(json!({ "prompt": { "node": "client" } }));
        assert!(transcript.is_waiting());
        transcript.add(json!({ "line": "ls" }));
        assert!(!transcript.is_waiting());
    }
}
