//! Transactions: messages that the kernel executes together or not at all. linux/netfilter/nfnetlink.h

use hol_base::{Duration, Time};
use hol_netlink::{CREATE, EXCLUSIVE, Message};

use super::expression::{Expressions, add_number, add_value};
use crate::required_elements::ElementState;
use crate::shape::{self, Field, Shape};

/// The number of nftables among the subsystems of nfnetlink: `NFNL_SUBSYS_NFTABLES`.
pub(super) const NFTABLES: u16 = 10;
/// Types of the messages that begin and end a transaction, such as `NFNL_MSG_BATCH_BEGIN`.
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
/// The family of tables for both IPv4 and IPv6: `NFPROTO_INET`.
pub(super) const INET: u8 = 1;
/// Interval at which the kernel removes expired elements, which match no packet but cost work.
const GC_INTERVAL: Duration = Duration::from_secs(30);
/// `NFT_SET_TIMEOUT`
const TIMEOUT_FLAG: u32 = 16;
/// Time for which an element outlives its rule if no transaction deletes it.
///
/// The end of a rule deletes its elements. An element that expires in the kernel instead stays in the hash table until
/// it is collected, which transactions delay (net/netfilter/nft_set_hash.c `nft_rhash_gc`). Once there are sixteen
/// elements with the same key, the table accepts no more: EBUSY (lib/rhashtable.c `rhashtable_insert_rehash`). So
/// elements should expire in the kernel only if this process has ended or is late.
pub(super) const GRACE_TIME: Duration = Duration::from_secs(5);

/// The type of a message: `enum nf_tables_msg_types`.
#[derive(Debug, Clone, Copy)]
pub(super) enum MessageType {
    NewTable = 0,
    GetTable = 1,
    DeleteTable = 2,
    NewChain = 3,
    GetChain = 4,
    DeleteChain = 5,
    NewRule = 6,
    DeleteRule = 8,
    NewSet = 9,
    GetSet = 10,
    DeleteSet = 11,
    NewElement = 12,
    GetElement = 13,
    DeleteElement = 14,
    /// Deletes an element if it exists; since Linux 6.3.
    DestroyElement = 30,
}

/// Returns a message about a table of the family `inet`. The name of the table is always the first attribute.
pub(super) fn table_message(table: &str, kind: MessageType, flags: u16) -> Message {
    Message::new(NFTABLES << 8 | kind as u16, flags, &[INET, 0, 0, 0]).with_name(1, table)
}

/// A transaction that is being built.
#[derive(Debug)]
pub(super) struct Transaction<'a> {
    table: &'a str,
    octets: Vec<u8>,
    messages: u32,
}

impl<'a> Transaction<'a> {
    pub fn new(table: &'a str) -> Self {
        let mut transaction = Self { table, octets: Vec::new(), messages: 0 };
        transaction.push(frame(BATCH_BEGIN));
        transaction
    }

    /// Ends the transaction and returns its octets for the kernel.
    pub fn finish(mut self) -> Vec<u8> {
        self.push(frame(BATCH_END));
        self.octets
    }

    /// Returns the octets of the transaction without its end. The kernel then reports which messages it would reject,
    /// and aborts the transaction.
    pub fn finish_without_commit(self) -> Vec<u8> {
        self.octets
    }

    /// Returns the sequence number of the next message.
    pub fn next_sequence(&self) -> u32 {
        self.messages
    }

    /// Creates a table if it does not exist.
    pub fn ensure_table(&mut self) {
        self.push(table_message(self.table, MessageType::NewTable, CREATE));
    }

    /// Creates a table with these flags; if the table exists, sets its flags.
    pub fn create_table(&mut self, flags: u32) {
        self.push(add_number(table_message(self.table, MessageType::NewTable, CREATE), 2, flags));
    }

    pub fn delete_table(&mut self) {
        self.push(table_message(self.table, MessageType::DeleteTable, 0));
    }

    pub fn delete_chain(&mut self, name: &str) {
        self.push(table_message(self.table, MessageType::DeleteChain, 0).with_name(3, name));
    }

    /// Creates a chain to which rules can jump.
    pub fn create_chain(&mut self, name: &str) {
        self.push(table_message(self.table, MessageType::NewChain, CREATE).with_name(3, name));
    }

    /// Creates a base chain, which accepts packets that reach its end.
    pub fn create_base_chain(&mut self, name: &str, kind: &str, hook: u32, priority: i32) {
        const ACCEPT: u32 = 1;
        let message = table_message(self.table, MessageType::NewChain, CREATE).with_name(3, name);
        let message = message
            .with_nested(4, &[], |place| add_number(add_number(place, 1, hook), 2, priority.cast_unsigned()));
        self.push(add_number(message, 5, ACCEPT).with_name(7, kind));
    }

    /// Removes the rules of a chain, or of all chains if `None`.
    pub fn flush(&mut self, chain: Option<&str>) {
        let message = table_message(self.table, MessageType::DeleteRule, 0);
        self.push(if let Some(chain) = chain { message.with_name(2, chain) } else { message });
    }

    /// Adds a rule at the end of a chain.
    pub fn add_rule(&mut self, chain: &str, rule: impl FnOnce(Expressions) -> Expressions) {
        const APPEND_FLAG: u16 = 0x800;
        let message =
            table_message(self.table, MessageType::NewRule, CREATE | APPEND_FLAG).with_name(2, chain);
        self.push(message.with_nested(4, &[], |list| rule(Expressions(list)).0));
    }

    pub fn create_set(&mut self, shape: &Shape) {
        let (key, data): (Vec<Field>, Vec<Field>) = (shape.key().collect(), shape.data().collect());
        self.push(self.set_message(&shape.name(), TIMEOUT_FLAG, &key, &data));
    }

    /// Creates a map from endpoints to endpoints, to which rules add elements with this timeout.
    pub fn create_dynamic_map(&mut self, name: &str, endpoint: &[Field], timeout: Duration, size: u32) {
        const DYNAMIC_FLAG: u32 = 32;
        let message = self.set_message(name, TIMEOUT_FLAG | DYNAMIC_FLAG, endpoint, endpoint);
        let message = message.with_nested(9, &[], |description| add_number(description, 1, size));
        self.push(message.with(11, &timeout.as_millis().to_be_bytes()));
    }

    /// Returns the message that creates a set, or a map if it has `data`.
    fn set_message(&self, name: &str, flags: u32, key: &[Field], data: &[Field]) -> Message {
        const MAP_FLAG: u32 = 8;
        let kind = |fields: &[Field]| fields.iter().fold(0, |kind, field| kind << 6 | field.data_type());
        let width = |fields: &[Field]| fields.iter().map(|field| field.width() as u32).sum();
        let message = table_message(self.table, MessageType::NewSet, CREATE).with_name(2, name);
        let message = add_number(message, 3, if data.is_empty() { flags } else { MAP_FLAG | flags });
        let message = add_number(add_number(message, 4, kind(key)), 5, width(key));
        let message = add_number(message, 10, self.messages);
        let message = add_number(message, 12, GC_INTERVAL.as_millis() as u32);
        if data.is_empty() {
            return message;
        }
        add_number(add_number(message, 6, kind(data)), 7, width(data))
    }

    pub fn delete_set(&mut self, name: &str) {
        self.push(table_message(self.table, MessageType::DeleteSet, 0).with_name(2, name));
    }

    pub fn add_element(&mut self, now: Time, set: &str, key: &[u8], state: &ElementState) {
        self.new_element(now, set, key, state, EXCLUSIVE);
    }

    /// Changes the timeout of an element, or adds the element if it no longer exists. Needs Linux 6.12.
    pub fn update_element(&mut self, now: Time, set: &str, key: &[u8], state: &ElementState) {
        self.new_element(now, set, key, state, 0);
    }

    fn new_element(&mut self, now: Time, set: &str, key: &[u8], state: &ElementState, flags: u16) {
        let remaining = (state.end.saturating_since(now) + GRACE_TIME).as_millis();
        let message = table_message(self.table, MessageType::NewElement, CREATE | flags).with_name(2, set);
        self.push(message.with_nested(3, &[], |list| {
            list.with_nested(1, &[], |octets| {
                let octets = add_value(octets, 1, key);
                let octets = match &state.target {
                    Some(target) => add_value(octets, 2, &shape::data(target)),
                    None => octets,
                };
                // Without the remaining time an update to the same timeout would change nothing.
                octets.with(4, &remaining.to_be_bytes()).with(5, &remaining.to_be_bytes())
            })
        }));
    }

    pub fn delete_element(&mut self, set: &str, key: &[u8]) {
        self.remove_element(MessageType::DeleteElement, set, key);
    }

    /// Deletes an element if it still exists.
    pub fn destroy_element(&mut self, set: &str, key: &[u8]) {
        self.remove_element(MessageType::DestroyElement, set, key);
    }

    fn remove_element(&mut self, kind: MessageType, set: &str, key: &[u8]) {
        let message = table_message(self.table, kind, 0).with_name(2, set);
        self.push(
            message.with_nested(3, &[], |list| list.with_nested(1, &[], |octets| add_value(octets, 1, key))),
        );
    }

    fn push(&mut self, message: Message) {
        self.octets.extend(message.finish(self.messages));
        self.messages += 1;
    }
}

/// Returns the message that begins or ends a transaction.
fn frame(kind: u16) -> Message {
    let [high, low] = NFTABLES.to_be_bytes();
    Message::new(kind, 0, &[0, 0, high, low])
}
