//! The netlink socket to the kernel's nftables, and its answers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use hol_netlink::{Socket, attributes};
use rustix::system::uname;

use super::expression::VALUE_ATTRIBUTE;
use super::transaction::{INET, MessageType, Transaction, table_message};
use crate::FilterError;

/// A connection to the kernel's nftables.
#[derive(Debug)]
pub(super) struct Kernel {
    socket: Socket,
    abilities: Abilities,
}

/// What not every kernel can do with elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abilities {
    /// Whether the kernel accepts the deletion of an element that no longer exists.
    pub destroy: bool,
    /// Whether the kernel can change the timeout of an element.
    pub update_timeout: bool,
}

/// A message that the kernel rejected, so that its transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RejectedMessage {
    /// Sequence number of the message in its transaction.
    pub sequence: u32,
    /// The error number (errno) of the rejection.
    pub error: i32,
}

/// An element in the kernel's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelElement {
    /// Remaining lifetime in milliseconds; `None` if the element never expires.
    pub remaining: Option<u64>,
    /// The value of the element if its set is a map.
    pub data: Option<Vec<u8>>,
}

/// The content of a table: the elements of each set, by key.
pub(super) type TableContent = BTreeMap<String, BTreeMap<Vec<u8>, KernelElement>>;

/// Error numbers of the kernel: errno(3).
const EPERM: i32 = 1;
pub(super) const ENOENT: i32 = 2;
pub(super) const EEXIST: i32 = 17;
const ENOBUFS: i32 = 105;
/// Error numbers of errors that may be temporary: a full hash table, too little memory, or a module that is being
/// loaded.
const TRANSIENT_ERRORS: [i32; 4] = [11, 12, 16, ENOBUFS];
/// Length of `struct nfgenmsg`, which precedes the attributes of a message, in octets.
const NFGENMSG_LENGTH: usize = 4;

impl RejectedMessage {
    pub fn is_transient(self) -> bool {
        TRANSIENT_ERRORS.contains(&self.error)
    }

    /// Converts the rejection to an error that concerns the whole transaction.
    pub fn reason(self, table: &str) -> FilterError {
        match self {
            // The first message begins the transaction, which needs the same permission as all others.
            Self { sequence: 0, error: EPERM } => FilterError::NotPermitted,
            Self { error: EPERM, .. } => FilterError::TableOwned { table: table.into() },
            Self { error, .. } => {
                let source = io::Error::from_raw_os_error(error);
                if self.is_transient() {
                    FilterError::Busy(source)
                } else {
                    FilterError::MissingFeature(source)
                }
            }
        }
    }
}

impl Kernel {
    /// Sizes of the socket's buffers in octets. A transaction may be large. Its answers are few, unless many messages
    /// are rejected; then it does not matter if some are lost.
    const SEND_BUFFER_OCTETS: usize = 256 << 20;
    const RECEIVE_BUFFER_OCTETS: usize = 8 << 20;

    pub fn open() -> Result<Self, FilterError> {
        let socket = Socket::netfilter()?;
        match socket.set_buffers(Self::SEND_BUFFER_OCTETS, Self::RECEIVE_BUFFER_OCTETS) {
            Ok(()) => {
                let update_timeout = can_update_timeout(&uname().release().to_string_lossy());
                Ok(Self { abilities: Abilities { destroy: can_destroy(&socket)?, update_timeout }, socket })
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(FilterError::NotPermitted),
            Err(error) => Err(error.into()),
        }
    }

    /// Executes a transaction and returns the rejected messages. If there are any, nothing has changed.
    pub fn commit(&self, transaction: &[u8]) -> Result<Vec<RejectedMessage>, FilterError> {
        commit(&self.socket, transaction)
    }

    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Returns the netlink port of this socket, which identifies its changes.
    pub fn port(&self) -> io::Result<u32> {
        self.socket.port()
    }

    /// Returns true if the table exists.
    pub fn has_table(&self, table: &str) -> Result<bool, FilterError> {
        match self.socket.execute(table_message(table, MessageType::GetTable, 0)) {
            Ok(()) => Ok(true),
            Err(error) if error.raw_os_error() == Some(ENOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the chains of a table; empty if it does not exist.
    pub fn chains(&self, table: &str) -> Result<Vec<String>, FilterError> {
        let mut names = Vec::new();
        // The kernel lists the chains of other tables too.
        self.socket.list(table_message(table, MessageType::GetChain, 0), |body| {
            names.extend(name(body, 3).filter(|_| is_about(body, table)));
        })?;
        Ok(names)
    }

    /// Returns the other tables of the family `inet` that have all of these chains.
    pub fn tables_with(&self, chains: &[&str], except: &str) -> Result<Vec<String>, FilterError> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.socket.list(table_message(except, MessageType::GetChain, 0), |body| {
            let (table, chain) = (name(body, 1), name(body, 3));
            if let Some((table, chain)) = table.zip(chain)
                && body.first() == Some(&INET)
                && table != except
            {
                found.entry(table).or_default().insert(chain);
            }
        })?;
        let has_all = |had: &BTreeSet<String>| chains.iter().all(|chain| had.contains(*chain));
        Ok(found.into_iter().filter(|(_, had)| has_all(had)).map(|(table, _)| table).collect())
    }

    /// Returns the sets of a table; empty if it does not exist.
    pub fn sets(&self, table: &str) -> Result<Vec<String>, FilterError> {
        let mut names = Vec::new();
        if self.has_table(table)? {
            self.socket
                .list(table_message(table, MessageType::GetSet, 0), |body| names.extend(name(body, 2)))?;
        }
        Ok(names)
    }

    /// Lists a set once, and calls `take` with each listed element. Elements may be [missing](super::listing) in the
    /// list.
    pub fn list_once(
        &self,
        table: &str,
        set: &str,
        mut take: impl FnMut(Vec<u8>, KernelElement),
    ) -> Result<(), FilterError> {
        let probe = table_message(table, MessageType::GetElement, 0).with_name(2, set);
        Ok(self
            .socket
            .stream_list(probe, |body| elements_of(body).for_each(|(key, found)| take(key, found)))?)
    }
}

/// Returns true if a message of nftables concerns the table `table` or an object in it.
pub(super) fn is_about(body: &[u8], table: &str) -> bool {
    body.first() == Some(&INET) && name(body, 1).as_deref() == Some(table)
}

fn commit(socket: &Socket, transaction: &[u8]) -> Result<Vec<RejectedMessage>, FilterError> {
    socket.send(transaction)?;
    let mut refusals = Vec::new();
    let received = socket.read_answers(|answer| {
        if let Some(error) = answer.outcome().filter(|error| *error != 0) {
            refusals.push(RejectedMessage { sequence: answer.sequence, error });
        }
    });
    match received {
        // There are more answers than fit into the buffer. All are rejections, and the first ones suffice.
        Err(error) if error.raw_os_error() == Some(ENOBUFS) && !refusals.is_empty() => {}
        received => received?,
    }
    Ok(refusals)
}

/// Determines whether the kernel knows [`MessageType::DestroyElement`], with a transaction that has no effect. A kernel
/// that knows the message reports that the table does not exist (`ENOENT`); other kernels reject the message.
fn can_destroy(socket: &Socket) -> Result<bool, FilterError> {
    const PROBE_TABLE: &str = "hol.question";
    let mut probe = Transaction::new(PROBE_TABLE);
    probe.destroy_element("none", &[0]);
    let refusals = commit(socket, &probe.finish_without_commit())?;
    Ok(refusals.iter().any(|refusal| refusal.error == ENOENT))
}

/// Returns true if a kernel of this release can change the timeout of an element: Linux 6.12. Older kernels accept the
/// message, and change nothing, so only the release tells (net/netfilter/nf_tables_api.c `nft_add_set_elem`).
fn can_update_timeout(release: &str) -> bool {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    matches!((numbers.next(), numbers.next()), (Some(major), Some(minor)) if (major, minor) >= (6, 12))
}

fn name(body: &[u8], kind: u16) -> Option<String> {
    let name = attribute(body.get(NFGENMSG_LENGTH..)?, kind)?;
    String::from_utf8(name.strip_suffix(&[0])?.to_vec()).ok()
}

fn elements_of(body: &[u8]) -> impl Iterator<Item = (Vec<u8>, KernelElement)> {
    let list = body.get(NFGENMSG_LENGTH..).and_then(|octets| attribute(octets, 3)).unwrap_or_default();
    attributes(list).filter_map(|(_, element)| {
        let value = |kind| attribute(attribute(element, kind)?, VALUE_ATTRIBUTE).map(<[u8]>::to_vec);
        let remaining =
            attribute(element, 5).and_then(|octets| Some(u64::from_be_bytes(octets.try_into().ok()?)));
        Some((value(1)?, KernelElement { remaining, data: value(2) }))
    })
}

fn attribute(octets: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(octets).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_changed_from_linux_6_12_on() {
        for release in ["6.12.0", "6.12-rc1", "6.18.44-fc-v657", "7.0.0"] {
            assert!(can_update_timeout(release), "{release}");
        }
        for release in ["6.11.9", "5.14.0-570.12.1.el9_6.x86_64", "4.19.0", "6", "unknown", ""] {
            assert!(!can_update_timeout(release), "{release}");
        }
    }

    /// Errors that may be temporary are distinguished from missing features. The rejected message may create a set or a
    /// chain, so the error is not assigned to a change of a rule.
    #[test]
    fn a_rejection_that_may_pass_is_distinguished_from_a_missing_feature() {
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        for error in TRANSIENT_ERRORS {
            assert!(RejectedMessage { sequence: 3, error }.reason("hol").is_transient(), "{error}");
        }
        for error in [EPERM, ENOENT, EINVAL, EOPNOTSUPP] {
            assert!(!RejectedMessage { sequence: 3, error }.reason("hol").is_transient(), "{error}");
        }
    }
}
