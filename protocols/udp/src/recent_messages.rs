//! Detection of duplicate messages.

use std::collections::{BTreeSet, VecDeque};

use crate::endpoint::MessageId;

/// The identifiers of the latest messages. A SIP transaction repeats its request for 32 s, and the server
/// remembers the identifier for the same time (RFC 3261 table 4, timer J).
#[derive(Debug, Default)]
pub(crate) struct RecentMessages {
    names: BTreeSet<MessageId>,
    /// The identifiers, oldest first.
    order: VecDeque<MessageId>,
}

impl RecentMessages {
    /// Maximum number of identifiers, 2^18: enough for 32 s of 8,000 messages per second.
    const MAX_NAMES: usize = 1 << 18;

    /// Adds the identifier of a message; returns false if it is already in the list.
    pub(crate) fn insert(&mut self, name: MessageId) -> bool {
        if !self.names.insert(name) {
            return false;
        }
        if self.order.len() == Self::MAX_NAMES
            && let Some(oldest) = self.order.pop_front()
        {
            self.names.remove(&oldest);
        }
        self.order.push_back(name);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_names_are_kept() {
        let mut recent = RecentMessages::default();
        let last = RecentMessages::MAX_NAMES as u64;
        assert!((0..=last).all(|name| recent.insert(name.to_be_bytes())));
        assert!(!recent.insert(last.to_be_bytes()) && !recent.insert(1_u64.to_be_bytes()));
        assert!(recent.insert(0_u64.to_be_bytes()), "the oldest name was forgotten");
        assert_eq!(
            (recent.names.len(), recent.order.len()),
            (RecentMessages::MAX_NAMES, RecentMessages::MAX_NAMES)
        );
    }
}
