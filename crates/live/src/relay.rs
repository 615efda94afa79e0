//! News of a flow's server goes to the host that has its client. The one with the experiment hears all of it, for others know nobody else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use hol_sockets::{News, Post, TellOf};

/// Who brings it.
#[derive(Clone, Default)]
pub(crate) struct Relay {
    /// For clients that are here.
    pub(crate) post: Post,
    /// Tells the hosts of others, by flow.
    elsewhere: Arc<Mutex<BTreeMap<usize, Arc<TellOf>>>>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Relay")
    }
}

impl Relay {
    /// From now on these flows, and no others, have their clients on other hosts.
    pub(crate) fn has_elsewhere(&self, clients: BTreeMap<usize, Arc<TellOf>>) {
        *self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner) = clients;
    }

    /// Something has happened to a flow's server.
    pub(crate) fn bring(&self, flow: usize, news: News) {
        let elsewhere = self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).get(&flow).cloned();
        match elsewhere {
            Some(tell) => tell(flow, news),
            None => self.post.bring(flow, news),
        }
    }
}
