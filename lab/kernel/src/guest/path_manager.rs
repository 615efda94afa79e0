//! MPTCP's path manager in the kernel: which addresses of a host carry subflows (RFC 8684 section 3.2). ip-mptcp(8)

use std::net::IpAddr;

use hol_netlink::{Message, Socket, attributes};
use nix::libc;

use super::GuestError;

/// MPTCP's path manager in one namespace.
#[derive(Debug)]
pub(super) struct PathManager {
    socket: Socket,
    /// The generic netlink family ID of the path manager.
    family: u16,
}

/// Name of the path manager's generic netlink family. linux/mptcp_pm.h
const GENL_NAME: &[u8] = b"mptcp_pm\0";
const ADD_ADDR: u8 = 1;
const DEL_ADDR: u8 = 2;
const SET_LIMITS: u8 = 5;
/// Numbers of the attributes of an endpoint. linux/mptcp_pm.h
const FLAGS_ATTRIBUTE: u16 = 6;

impl PathManager {
    /// Opens MPTCP's path manager in this thread's namespace.
    pub(super) fn open() -> Result<Self, GuestError> {
        let (socket, mut family) = (Socket::generic()?, None);
        // linux/genetlink.h: the request for the family that is named after the four octets of the header.
        const GENL_CONTROLLER: u16 = 0x10;
        const GET_FAMILY: u8 = 3;
        socket.list(Message::new(GENL_CONTROLLER, 0, &[GET_FAMILY, 1, 0, 0]), |entry| {
            family = family.or(number(entry.get(4..).unwrap_or_default()));
        })?;
        let family =
            family.ok_or("the kernel has no path manager for MPTCP; use a kernel with CONFIG_MPTCP")?;
        Ok(Self { socket, family })
    }

    /// Adds an endpoint with this address; each connection then gets a subflow from the address.
    pub(super) fn add(&self, address: IpAddr, interface: u32) -> Result<(), GuestError> {
        const IF_IDX: u16 = 7;
        const SUBFLOW_FLAG: u32 = 2;
        let endpoint = |attributes: Message| {
            about(attributes, address)
                .with_number(FLAGS_ATTRIBUTE, SUBFLOW_FLAG)
                .with_number(IF_IDX, interface)
        };
        self.request(ADD_ADDR, endpoint, &format!("add subflows from {address}"))
    }

    /// Adds an endpoint whose address each connection announces to its peer (ADD_ADDR, RFC 8684 section 3.4.1), so that
    /// the peer can add a subflow to it. If the path is a backup, the reply to MP_JOIN has the flag B (section 3.2).
    pub(super) fn signal(&self, address: IpAddr, is_backup: bool) -> Result<(), GuestError> {
        const SIGNAL_FLAG: u32 = 1;
        const BACKUP_FLAG: u32 = 4;
        let flags = if is_backup { SIGNAL_FLAG | BACKUP_FLAG } else { SIGNAL_FLAG };
        let endpoint = |attributes: Message| about(attributes, address).with_number(FLAGS_ATTRIBUTE, flags);
        self.request(ADD_ADDR, endpoint, &format!("announce {address}"))
    }

    /// Limits the number of additional subflows of a connection, and of the addresses that it accepts from its
    /// peer. Linux's default is 0, with which a connection uses only one path.
    pub(super) fn set_limits(&self, subflows: u32) -> Result<(), GuestError> {
        const RCV_ADD_ADDRS: u16 = 2;
        const SUBFLOWS_ATTRIBUTE: u16 = 3;
        let message = Message::new(self.family, 0, &[SET_LIMITS, 1, 0, 0])
            .with_number(RCV_ADD_ADDRS, subflows)
            .with_number(SUBFLOWS_ATTRIBUTE, subflows);
        self.socket
            .execute(message)
            .map_err(|error| format!("cannot allow {subflows} subflows: {error}").into())
    }

    /// Removes an endpoint. If it is the address of the initial subflow, that subflow ends, and its data move to the other subflows.
    pub(super) fn remove(&self, address: IpAddr) -> Result<(), GuestError> {
        const ID: u16 = 2;
        let endpoint = |attributes: Message| about(attributes, address).with(ID, &[0]);
        self.request(DEL_ADDR, endpoint, &format!("remove the subflows from {address}"))
    }

    fn request(
        &self,
        command: u8,
        endpoint: impl FnOnce(Message) -> Message,
        doing: &str,
    ) -> Result<(), GuestError> {
        const NESTED: u16 = 0x8000;
        const ADDR: u16 = 1;
        let message =
            Message::new(self.family, 0, &[command, 1, 0, 0]).with_nested(ADDR | NESTED, &[], endpoint);
        self.socket.execute(message).map_err(|error| format!("cannot {doing}: {error}").into())
    }
}

fn about(attributes: Message, address: IpAddr) -> Message {
    const FAMILY: u16 = 1;
    const ADDR4: u16 = 3;
    const ADDR6: u16 = 4;
    let family = |number: i32| attributes.with(FAMILY, &(number as u16).to_ne_bytes());
    match address {
        IpAddr::V4(address) => family(libc::AF_INET).with(ADDR4, &address.octets()),
        IpAddr::V6(address) => family(libc::AF_INET6).with(ADDR6, &address.octets()),
    }
}

/// Returns the number of the generic netlink family with these attributes if it is the path manager; otherwise
/// `None`.
fn number(family: &[u8]) -> Option<u16> {
    const FAMILY_ID: u16 = 1;
    const FAMILY_NAME: u16 = 2;
    let value = |wanted| attributes(family).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    value(FAMILY_NAME).filter(|name| *name == GENL_NAME)?;
    Some(u16::from_ne_bytes(*value(FAMILY_ID)?.first_chunk()?))
}
