//! Errors of scenarios whose settings contradict each other.

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
        /// The key that names the node: `from`, `to` or `hosts`.
        key: &'static str,
        /// The unknown node.
        node: String,
        /// The nodes of the network.
        known: String,
        /// An example of a known node.
        example: String,
    },
    /// A packet filter is set on a node whose middlebox is not measured.
    #[error(
        "`filter` has no effect, because no middlebox runs on {0:?}; remove the key, or use the workload simco"
    )]
    NoMiddlebox(String),
    /// A `service` time is set on a node at which no flow ends.
    #[error(
        "`service` has no effect, because no flow ends on {0:?}; remove the key, or name the node in `from` or `to`"
    )]
    IdleProcessor(String),
    /// A program has invalid keys.
    #[error("in [[program]] number {}: {problem}", .index + 1)]
    Program {
        /// The index of the program in the list, from 0.
        index: usize,
        /// What is wrong, and how to correct it.
        problem: &'static str,
    },
    /// There is no program whose end could end the run.
    #[error(
        "the workload is `programs`, but every [[program]] is a service; add a [[program]] without `ready`, choose another `kind`, or use \
        `hol exec`"
    )]
    NoProgram,
    /// The workload of programs has a `start` or `spread`, but each program has its own `start`.
    #[error(
        "`start` and `spread` of the workload do not apply to programs; give each [[program]] its own `start`"
    )]
    ProgramsStart,
    /// The transport has TLS, but programs bring their own.
    #[error("programs use their own TLS; remove `tls` from the transport")]
    ProgramsTls,
    /// Programs are the workload of a background or onward flow.
    #[error("`programs` cannot be the workload of a [[background]] or [[onward]]; add a [[program]] instead")]
    ProgramsAsOtherFlow,
    /// A `service` time is set for datagrams, whose sender is not limited by flow control.
    #[error(
        "{0:?} has a `service` time, but datagrams arrive even while it is busy, and losses in its buffer would not be counted; use TCP or SCTP, or remove `service`"
    )]
    ServiceOverDatagrams(String),
    /// A workload sends from a node to itself.
    #[error("`from` and `to` are both {0:?}; name two nodes")]
    SameEnds(String),
    /// UNIX sockets are used between two hosts.
    #[error("a UNIX socket connects programs on one node; use from = {0:?} and to = {0:?}")]
    UnixSocketBetweenNodes(String),
    /// The run needs more connections than there are client ports.
    #[error(
        "a run has {0} connections, but there are only {1} dynamic ports (RFC 6335 section 6); lower a `count`; for pages, lower `messages` or use more repetitions"
    )]
    TooManyConnections(u64, usize),
    /// An entry of the background is invalid.
    #[error("in [[background]] number {}: {problem}", .index + 1)]
    Background {
        /// The index of the entry in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// An onward flow is invalid.
    #[error("in [[onward]] number {}: {problem}", .index + 1)]
    Onward {
        /// The index of the flow in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// An onward flow starts at a server that receives no requests.
    #[error(
        "{0:?} receives no requests, so it cannot send onward requests; name it in `to` of the workload or of an earlier [[onward]]"
    )]
    OnwardFromIdleServer(String),
    /// Two flows end at a server with onward flows, so it is ambiguous which of them causes the onward requests.
    #[error(
        "two flows end at {0:?}, but a server with [[onward]] requests can have only one; move the other to another node"
    )]
    AmbiguousOnwardServer(String),
    /// The workload of an onward flow has no replies.
    #[error("{0} has no requests with replies, which [[onward]] needs; use echo or simco")]
    OnwardWithoutReplies(&'static str),
    /// An onward flow has its own schedule.
    #[error(
        "onward requests have no schedule of their own: each is due when the server receives a request; remove `rate`, `interval`, \
        `arrivals`, `sources` and `late_limit`"
    )]
    OnwardLoad,
    /// A greedy sender uses a transport that accepts any number of messages at once.
    #[error(
        "UDP does not limit the rate of a sender that waits only for the transport; use oneway with a `rate` above zero"
    )]
    GreedyOverDatagrams,
    /// A workload that waits for each reply uses a transport that may lose the reply.
    #[error(
        "{0} would stop at the first lost message, because this transport is unreliable; use TCP, SCTP without the \
        options `lifetime` and `retransmissions`, or another workload such as echo"
    )]
    WaitsForLostReply(&'static str),
    /// The socket refuses a message with EMSGSIZE.
    #[error(
        "a message of {0} octets is longer than SCTP's send buffer of {1}, and Linux refuses it; lower `size`, `reply` or `request` (`max` of a log-normal one), or raise the transport's \
         send_buffer"
    )]
    LongerThanSendBuffer(u64, u64),
    /// There are no messages to send.
    #[error("`messages` is 0; set at least 1")]
    NoMessages,
    /// There are more messages than 32-bit numbers can identify.
    #[error("`messages` results in {0} messages per run, but the maximum is {max}; use more repetitions", max = u32::MAX)]
    TooManyMessages(u64),
}
