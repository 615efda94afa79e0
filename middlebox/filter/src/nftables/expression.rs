//! The expressions of a rule. Attributes have the numbers of linux/netfilter/nf_tables.h, in the order of
//! that file. Registers have four octets each and are counted from 0.

use hol_netlink::Message;

/// The netlink attribute `NFTA_LIST_ELEM`: an element of a list.
const LIST_ELEMENT: u16 = 1;
/// The netlink attribute `NFTA_DATA_VALUE`.
pub(super) const VALUE_ATTRIBUTE: u16 = 1;
/// The register for the verdict, `NFT_REG_VERDICT`.
const VERDICT_REGISTER: u32 = 0;

/// The keys of the expression `meta`, which select the value that it loads.
#[derive(Debug, Clone, Copy)]
pub(super) enum MetaKey {
    InputInterface = 6,
    OutputInterface = 7,
    Version = 15,
    Protocol = 16,
}

/// The keys of the expression `ct`, which select the value that it loads or stores.
#[derive(Debug, Clone, Copy)]
pub(super) enum CtKey {
    State = 0,
    Direction = 1,
    /// The status of the connection: bits such as [`TRANSLATED_SOURCE`].
    Status = 2,
    /// The port of a tuple's source.
    SourcePort = 11,
    /// The label of the connection, of 128 bits. Storing a label only sets bits, and clears none.
    Label = 13,
    /// The address of a tuple's source.
    SourceV4 = 19,
    SourceV6 = 21,
}

/// The status bits `IPS_SRC_NAT` and `IPS_DST_NAT` of linux/netfilter/nf_conntrack_common.h: the source or destination
/// of the connection is translated.
pub(super) const TRANSLATED_SOURCE: u32 = 1 << 4;
pub(super) const TRANSLATED_DESTINATION: u32 = 1 << 5;

/// The labels of a connection: each label is a bit, counted from the lowest bit of the first octet.
pub(super) type Label = [u8; 16];

/// The header that the expression `payload` reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Header {
    Network = 1,
    Transport = 2,
}

/// The relation that the expression `cmp` checks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Comparison {
    Equal = 0,
    Unequal = 1,
    NotAbove = 3,
    NotBelow = 5,
}

/// What happens to a packet that a rule matches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Verdict<'a> {
    Accept,
    Drop,
    Jump(&'a str),
    Goto(&'a str),
}

/// Which address the expression `nat` translates.
#[derive(Debug, Clone, Copy)]
pub(super) enum Nat {
    Source = 0,
    Destination = 1,
}

/// The expressions of a rule, in order.
#[derive(Debug)]
pub(super) struct Expressions(pub Message);

impl Expressions {
    fn with(self, name: &str, fill: impl FnOnce(Message) -> Message) -> Self {
        const NAME_ATTRIBUTE: u16 = 1;
        const DATA_ATTRIBUTE: u16 = 2;
        let expression =
            |message: Message| message.with_name(NAME_ATTRIBUTE, name).with_nested(DATA_ATTRIBUTE, &[], fill);
        Self(self.0.with_nested(LIST_ELEMENT, &[], expression))
    }

    pub fn meta(self, key: MetaKey, to: usize) -> Self {
        self.with("meta", |data| add_number(register(data, 1, to), 2, key as u32))
    }

    pub fn ct(self, key: CtKey, to: usize) -> Self {
        self.with("ct", |data| add_number(register(data, 1, to), 2, key as u32))
    }

    /// Loads a part of the connection's tuple in this direction, of `enum ip_conntrack_dir`.
    pub fn ct_tuple(self, key: CtKey, direction: u8, to: usize) -> Self {
        self.with("ct", |data| add_number(register(data, 1, to), 2, key as u32).with(3, &[direction]))
    }

    /// Loads octets into the registers from `to` on.
    pub fn load(self, octets: &[u8], to: usize) -> Self {
        self.with("immediate", |data| add_value(register(data, 1, to), 2, octets))
    }

    /// Stores the registers from `from` on in the connection's `key`.
    pub fn store(self, key: CtKey, from: usize) -> Self {
        self.with("ct", |data| register(add_number(data, 2, key as u32), 4, from))
    }

    pub fn payload(self, header: Header, offset: usize, length: usize, to: usize) -> Self {
        self.with("payload", |data| {
            let data = add_number(register(data, 1, to), 2, header as u32);
            add_number(add_number(data, 3, offset as u32), 4, length as u32)
        })
    }

    /// Clears all bits that are not in `bits`, in the registers from `at` on.
    pub fn mask(self, at: usize, bits: &[u8]) -> Self {
        self.with("bitwise", |data| {
            let data = add_number(register(register(data, 1, at), 2, at), 3, bits.len() as u32);
            add_value(add_value(data, 4, bits), 5, &vec![0; bits.len()])
        })
    }

    /// Lets the rule continue only if the comparison of the registers from `at` on with the octets has the result
    /// `order`.
    pub fn compare(self, at: usize, order: Comparison, octets: &[u8]) -> Self {
        self.with("cmp", |data| add_value(add_number(register(data, 1, at), 2, order as u32), 3, octets))
    }

    /// Lets the rule continue only if the registers from `at` on equal these octets.
    pub fn equals(self, at: usize, octets: &[u8]) -> Self {
        self.compare(at, Comparison::Equal, octets)
    }

    /// Lets the rule continue only if the set contains the key in the registers from `at` on. If the set is a map, its
    /// value is stored in the registers from `to` on.
    pub fn lookup(self, set: &str, at: usize, to: Option<usize>) -> Self {
        self.with("lookup", |data| {
            let data = register(data.with_name(1, set), 2, at);
            if let Some(to) = to { register(data, 3, to) } else { data }
        })
    }

    /// Adds the registers from `key` on to a map, with those from `value` on as the value. An element with this key
    /// keeps its value, and its timeout starts again. Without room in the map the rule ends.
    pub fn update(self, map: &str, key: usize, value: usize) -> Self {
        const UPDATE: u32 = 1;
        self.with("dynset", |data| {
            let data = add_number(data.with_name(1, map), 3, UPDATE);
            register(register(data, 4, key), 5, value)
        })
    }

    /// Translates the connection to the address in a register. If `ports` is given, also translates to a port of the
    /// range between the values of the two registers. `version` is `NFPROTO_IPV4` or `NFPROTO_IPV6`.
    pub fn nat(self, nat: Nat, version: u8, address: usize, ports: Option<[usize; 2]>) -> Self {
        self.with("nat", |data| {
            let data = register(add_number(add_number(data, 1, nat as u32), 2, version.into()), 3, address);
            let Some([first, last]) = ports else { return data };
            register(register(data, 5, first), 6, last)
        })
    }

    pub fn verdict(self, verdict: Verdict<'_>) -> Self {
        // NF_DROP, NF_ACCEPT, NFT_JUMP, NFT_GOTO
        let (code, chain) = match verdict {
            Verdict::Drop => (0, None),
            Verdict::Accept => (1, None),
            Verdict::Jump(chain) => (-3, Some(chain)),
            Verdict::Goto(chain) => (-4_i32, Some(chain)),
        };
        self.with("immediate", |data| {
            add_number(data, 1, VERDICT_REGISTER).with_nested(2, &[], |data| {
                data.with_nested(2, &[], |verdict| {
                    let verdict = add_number(verdict, 1, code.cast_unsigned());
                    if let Some(chain) = chain { verdict.with_name(2, chain) } else { verdict }
                })
            })
        })
    }
}

/// Adds the number of a register to a message; the first register, `NFT_REG32_00`, has the number 8.
fn register(message: Message, kind: u16, register: usize) -> Message {
    add_number(message, kind, 8 + register as u32)
}

/// Adds a number to a message, big-endian as in nftables.
pub(super) fn add_number(message: Message, kind: u16, number: u32) -> Message {
    message.with(kind, &number.to_be_bytes())
}

pub(super) fn add_value(message: Message, kind: u16, octets: &[u8]) -> Message {
    message.with_nested(kind, &[], |data| data.with(VALUE_ATTRIBUTE, octets))
}
