//! Commands that matter only on a physical testbed, and are ignored.

use crate::script::IgnoredCommand;
use crate::simulator::{Object, Outcome, Simulator};
use crate::tcl::{Word, WordError, error_at};

/// Returns why hol ignores a command; `None` for a command that it does not ignore.
pub(crate) fn reason(command: &str) -> Option<&'static str> {
    IGNORED.iter().find(|(known, _)| *known == command).map(|(_, reason)| *reason)
}

/// Returns the names of all ignored commands.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    IGNORED.iter().map(|(name, _)| *name)
}

const HOSTS_REASON: &str = "hosts are determined by the experiment's world";
const SOFTWARE_REASON: &str = "the software of nodes is that of this machine, or a `root` of the experiment";
const MACHINES_REASON: &str = "hol allocates no machines";
const SCREEN_REASON: &str = "the command only draws or prints";

const FILES_REASON: &str =
    "scripts cannot open files or start programs; hol trace --ns2 writes a trace of a run";

const IGNORED: [(&str, &str); 38] = [
    ("open", FILES_REASON),
    ("close", FILES_REASON),
    ("exec", FILES_REASON),
    ("remove-all-packet-headers", "the command only changes internals of ns"),
    ("add-packet-header", "the command only changes internals of ns"),
    ("remove-packet-header", "the command only changes internals of ns"),
    ("puts", SCREEN_REASON),
    ("flush", SCREEN_REASON),
    ("tb-set-hardware", HOSTS_REASON),
    ("tb-set-node-os", HOSTS_REASON),
    ("tb-set-delay-os", HOSTS_REASON),
    ("tb-set-jail-os", HOSTS_REASON),
    ("tb-set-sim-os", HOSTS_REASON),
    ("tb-make-soft-vtype", HOSTS_REASON),
    ("tb-make-hard-vtype", HOSTS_REASON),
    ("tb-make-weighted-vtype", HOSTS_REASON),
    ("tb-set-node-cmdline", HOSTS_REASON),
    ("tb-set-node-rpms", SOFTWARE_REASON),
    ("tb-set-node-deltas", SOFTWARE_REASON),
    ("tb-set-sync-server", SOFTWARE_REASON),
    ("tb-fix-node", MACHINES_REASON),
    ("tb-bind-parent", MACHINES_REASON),
    ("tb-fix-current-resources", MACHINES_REASON),
    ("tb-set-node-failure-action", MACHINES_REASON),
    ("tb-set-cpu-usage", MACHINES_REASON),
    ("tb-set-mem-usage", MACHINES_REASON),
    ("tb-set-colocate-factor", MACHINES_REASON),
    ("tb-set-allowcolocate", MACHINES_REASON),
    ("tb-set-multiplexed", MACHINES_REASON),
    ("tb-set-endnodeshaping", MACHINES_REASON),
    ("tb-use-endnodeshaping", MACHINES_REASON),
    ("tb-force-endnodeshaping", MACHINES_REASON),
    ("tb-set-useveth", MACHINES_REASON),
    ("tb-set-encapsulate", MACHINES_REASON),
    ("tb-set-link-encap", MACHINES_REASON),
    ("tb-set-vlink-emulation", MACHINES_REASON),
    ("tb-set-netmask", "hol has routes to single addresses only"),
    ("tb-set-ip-routing", "routes are static, with the fewest hops"),
];

/// Maximum number of unknown commands that are reported together.
const MAX_UNKNOWN: usize = 50;

impl Simulator<'_> {
    /// Adds a command to the list of ignored commands.
    pub(crate) fn ignore(&mut self, words: &[Word], reason: &'static str) -> Outcome {
        // A loop may execute the command several times.
        if !self.ignored_at.insert(words[0].at) {
            return Ok(String::new());
        }
        let command = self.text_of(words).to_owned();
        let place = self.sources.line(words[0].at);
        if self.ignored_texts.insert((place.clone(), command.clone())) {
            self.ignored.push(IgnoredCommand { place, command, reason });
        }
        Ok(String::new())
    }

    /// Returns the text of a command for messages; of a command with several lines only the first.
    fn text_of(&self, words: &[Word]) -> &str {
        let (first, last) = (words[0].at, words[words.len() - 1].at);
        let text = self.sources.text_from(last);
        let end = match text.chars().next() {
            Some('"') => text[1..].find('"').map(|end| end + 2),
            Some('{') => text.find('}').map(|end| end + 1),
            _ => text.find(|c: char| c.is_whitespace() || ";}]".contains(c)),
        };
        let whole = self.sources.rest_of_line(first);
        let end = end.map_or(whole.len(), |end| (last + end).saturating_sub(first)).min(whole.len());
        whole.get(..end).unwrap_or_default()
    }

    /// Records an error and lets the script continue, so that all errors are reported together.
    pub(crate) fn unknown(&mut self, at: usize, problem: String) -> Outcome {
        if self.unknown.len() >= MAX_UNKNOWN {
            return error_at(at, problem);
        }
        let complaint = WordError { at, problem };
        if !self.unknown.contains(&complaint) {
            self.unknown.push(complaint);
        }
        Ok(self.add(Object::Unknown))
    }
}
