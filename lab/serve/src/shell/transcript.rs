//! The transcript of a shell, of limited size.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Maximum number of octets of a transcript; the oldest entries are removed.
const MAX_SIZE: usize = 256 << 10;

/// An entry of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Entry {
    /// Number of the entry, from 0. A gap means that entries were removed or missed.
    #[serde(rename = "at")]
    pub number: u64,
    /// The content as JSON: `{"prompt": {node, now, code, nodes}}`, the input `{"line": TEXT}`, the output `{"out":
    /// TEXT}`, `{"err": TEXT}` or `{"note": TEXT}`, or at the end `{"end": REASON}`.
    #[serde(rename = "said")]
    pub content: Value,
}

/// The entries of a transcript, and whether the shell waits for a line.
#[derive(Debug, Default)]
pub struct Transcript {
    entries: VecDeque<(Entry, usize)>,
    /// Octets of all entries.
    octets: usize,
    /// The number of the next entry.
    next: u64,
    is_waiting: bool,
}

impl Transcript {
    /// Adds an entry, and removes the oldest entries if the transcript is too long.
    pub fn add(&mut self, content: Value) -> Entry {
        self.is_waiting = content.get("prompt").is_some();
        let size = content.to_string().len();
        let entry = Entry { number: self.next, content };
        self.next += 1;
        self.octets += size;
        self.entries.push_back((entry.clone(), size));
        while self.octets > MAX_SIZE {
            let Some((_, size)) = self.entries.pop_front() else { break };
            self.octets -= size;
        }
        entry
    }

    /// Returns whether the shell waits for a line.
    pub const fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Returns the entries that were not removed.
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.iter().map(|(entry, _)| entry.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn oldest_entries_are_removed_and_numbers_show_the_gap() {
        let mut transcript = Transcript::default();
        for _ in 0..5 {
            transcript.add(json!({ "out": "x".repeat(MAX_SIZE / 4) }));
        }
        let kept: Vec<u64> = transcript.entries().iter().map(|entry| entry.number).collect();
        assert_eq!(kept, [2, 3, 4]);
    }

    #[test]
    fn shell_waits_for_a_line_after_a_prompt() {
        let mut transcript = Transcript::default();
        assert!(!transcript.is_waiting());
        transcript.add(json!({ "prompt": { "node": "client" } }));
        assert!(transcript.is_waiting());
        transcript.add(json!({ "line": "ls" }));
        assert!(!transcript.is_waiting());
    }
}
