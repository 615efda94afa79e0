//! Errors of scenarios that contradict themselves.

use hol_network::NetworkError;
use hol_workloads::WorkloadError;

/// A scenario that no world can run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The network table contradicts itself.
    #[error("in [network]: {0}")]
    Network(#[from] NetworkError),
    /// The workload table contradicts itself.
    #[error("in [workload]: {0}")]
    Workload(#[from] WorkloadError),
    /// The network has no such node.
    #[error(
        "`{key}` is {node:?}, which is not in the network; name one of {known}, as in {}",
        if *.key == "hosts" { format!("[hosts.{example}]") } else { format!("{key} = {example:?}") }
    )]
    UnknownNode {
        /// `from`, `to` or `hosts`.
        key: &'static str,
        /// The unknown node.
        node: String,
        /// The nodes of the network.
        known: String,
        /// An example of a known node.
        example: String,
    },
    /// A packet filter on a node whose middlebox is not measured.
    #[error(
        "no middlebox is measured on {0:?}, so its packet filter has nothing to do; remove `filter`, or take simco"
    )]
    NoMiddlebox(String),
    /// A `service` time on a node at which no flow ends.
    #[error(
        "no flow ends on {0:?}, so its `service` has nothing to do; remove it, or name the node in `from` or `to`"
    )]
    IdleProcessor(String),
    /// A program with invalid keys.
    #[error("in [[program]] number {}: {problem}", .index + 1)]
    Program {
        /// Its index in the list, from 0.
        index: usize,
        /// What is wrong, and how to correct it.
        problem: &'static str,
    },
    /// No program whose end could end the run.
    #[error(
        "the workload is programs, but every [[program]] is a service; add one without `ready`, take another `kind`, or on the \
         command line `hol exec`"
    )]
    NoProgram,
    /// A `start` or `spread` in the workload of programs, each of which has its own `start`.
    #[error(
        "`start` and `spread` of the workload say nothing of programs; give each [[program]] its own `start`"
    )]
    ProgramsStart,
    /// TLS for programs, which bring their own.
    #[error("programs bring their own TLS; remove `tls` from the transport")]
    ProgramsTls,
    /// Programs in a scenario whose workload is not programs.
    #[error("programs are no workload of a [[background]] or [[onward]]; add a [[program]] for each instead")]
    ProgramsBeside,
    /// A `service` time for datagrams, whose sender no flow control limits.
    #[error(
        "{0:?} takes a `service` time for messages, but datagrams come however busy it is, and what its buffer lost nobody would say; \
         take TCP or SCTP, or remove `service`"
    )]
    ServiceOfDatagrams(String),
    /// A workload from a node to itself.
    #[error("`from` and `to` are both {0:?}; name two nodes")]
    SameEnds(String),
    /// UNIX sockets between two hosts.
    #[error("a UNIX socket joins programs of one node; say from = {0:?} and to = {0:?}")]
    TwoHosts(String),
    /// More connections than client ports.
    #[error(
        "{0} connections in a run are more than the {1} dynamic ports (RFC 6335 section 6); lower a `count`, or of pages take \
         fewer in a repetition: `messages`, or more repetitions"
    )]
    TooManyConnections(u64, usize),
    /// An invalid entry of the background.
    #[error("in [[background]] number {}: {problem}", .index + 1)]
    Background {
        /// Its index in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// An invalid onward flow.
    #[error("in [[onward]] number {}: {problem}", .index + 1)]
    Onward {
        /// Its index in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// An onward flow from a server that receives no requests.
    #[error(
        "no request comes to {0:?}, which is to ask; let the workload, or an [[onward]] before this one, go `to` it"
    )]
    AsksUnasked(String),
    /// Two flows that end at a server with onward flows, so that it is ambiguous which of them causes the onward requests.
    #[error(
        "two flows end at {0:?}, which asks others, and does so for one flow only; let the other end at another node"
    )]
    AskedByTwo(String),
    /// An onward flow whose workload has no replies.
    #[error("{0} is not answered request by request; take echo or simco")]
    NotAnswered(&'static str),
    /// An onward flow with a schedule of its own.
    #[error(
        "its requests come due when their server has one to answer; remove `rate`, `interval`, `arrivals`, `sources` and `late_limit`"
    )]
    OnwardLoad,
    /// A greedy sender over a transport that accepts any number of messages at once.
    #[error("UDP does not set the pace of a greedy sender; give `interval` or `rate` a value above zero")]
    NothingSetsThePace,
    /// A workload that waits for each reply, over a transport that may lose the reply.
    #[error(
        "{0} over a transport that gives messages up would end with the first one; \
         take TCP or SCTP without lifetime and retransmissions, or another workload such as echo"
    )]
    WaitsForTheLost(&'static str),
    /// A message that the socket refuses with EMSGSIZE.
    #[error(
        "a message of {0} octets is longer than SCTP's send buffer of {1}, and Linux refuses it; lower `size`, `reply` or `request` (`most` of a log-normal one), or raise the transport's \
         send_buffer"
    )]
    LongerThanSendBuffer(u64, u64),
    /// No messages to send.
    #[error("`messages` is 0; a run needs at least one")]
    NoMessages,
    /// More messages than 32-bit numbers can identify.
    #[error("`messages` makes {0} in a run, which has at most {max}; take more repetitions", max = u32::MAX)]
    TooManyMessages(u64),
}
