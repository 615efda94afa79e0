//! A scenario that contradicts itself.

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
    /// A node that is not there.
    #[error(
        "`{key}` is {node:?}, which is not in the network; name one of {known}, as in {}",
        if *.key == "hosts" { format!("[hosts.{example}]") } else { format!("{key} = {example:?}") }
    )]
    UnknownNode {
        /// `from`, `to` or `hosts`.
        key: &'static str,
        /// The node.
        node: String,
        /// The nodes that are there.
        known: String,
        /// One of them.
        example: String,
    },
    /// A packet filter that nobody would use.
    #[error(
        "no middlebox is measured on {0:?}, so its packet filter has nothing to do; remove `filter`, or take simco"
    )]
    NoMiddlebox(String),
    /// A processor that nobody would use.
    #[error(
        "no flow ends on {0:?}, so its `service` has nothing to do; remove it, or name the node in `from` or `to`"
    )]
    IdleProcessor(String),
    /// A program that cannot be.
    #[error("in [[program]] number {}: {problem}", .index + 1)]
    Program {
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong, with the cure.
        problem: &'static str,
    },
    /// Nothing would end the run.
    #[error(
        "the workload is programs, and there is no [[program]] whose end is awaited; add one without `ready`, take another `kind`, or on the \
         command line `hol exec`"
    )]
    NoProgram,
    /// Each program has a start of its own.
    #[error(
        "`start` and `spread` of the workload say nothing of programs; give each [[program]] its own `start`"
    )]
    ProgramsStart,
    /// Programs stand in a list of their own.
    #[error("programs are no workload of a [[background]] or [[onward]]; add a [[program]] for each instead")]
    ProgramsBeside,
    /// Nothing would hold a sender of datagrams back.
    #[error(
        "{0:?} takes a `service` time for messages, but datagrams come however busy it is, and what its buffer lost nobody would say; \
         take TCP or SCTP, or remove `service`"
    )]
    ServiceOfDatagrams(String),
    /// A workload runs between two nodes.
    #[error("`from` and `to` are both {0:?}; name two nodes")]
    SameEnds(String),
    /// UNIX sockets are of one host.
    #[error("a UNIX socket joins programs of one node; say from = {0:?} and to = {0:?}")]
    TwoHosts(String),
    /// Too many connections for the ports.
    #[error(
        "{0} connections in a run are more than the {1} dynamic ports (RFC 6335 section 6); lower a `count`, or of pages take \
         fewer in a repetition: `messages`, or more repetitions"
    )]
    TooManyConnections(u64, usize),
    /// An entry of the background is wrong.
    #[error("in [[background]] number {}: {problem}", .index + 1)]
    Background {
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// An entry of what servers ask of others is wrong.
    #[error("in [[onward]] number {}: {problem}", .index + 1)]
    Onward {
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// Who asks on behalf of a request must have got one.
    #[error(
        "no request comes to {0:?}, which is to ask; let the workload, or an [[onward]] before this one, go `to` it"
    )]
    AsksUnasked(String),
    /// Two flows come to one who asks: nobody would know for which.
    #[error(
        "two flows end at {0:?}, which asks others, and does so for one flow only; let the other end at another node"
    )]
    AskedByTwo(String),
    /// A workload that is no requests with replies.
    #[error("{0} is not answered request by request; take echo or simco")]
    NotAnswered(&'static str),
    /// No schedule makes it due.
    #[error(
        "its requests come due when their server has one to answer; remove `rate`, `interval`, `arrivals`, `sources` and `late_limit`"
    )]
    OnwardLoad,
    /// The transport would take any number of messages at once.
    #[error("UDP does not set the pace of a greedy sender; give `interval` or `rate` a value above zero")]
    NothingSetsThePace,
    /// The next message waits for a reply that may never come.
    #[error(
        "{0} over a transport that gives messages up would end with the first one; \
         take TCP or SCTP without lifetime and retransmissions, or another workload such as echo"
    )]
    WaitsForTheLost(&'static str),
    /// The socket refuses it: EMSGSIZE.
    #[error(
        "a message of {0} octets is longer than SCTP's send buffer of {1}, and Linux refuses it; lower `size`, or raise the transport's \
         send_buffer"
    )]
    LongerThanSendBuffer(u64, u64),
    /// There is nothing to send.
    #[error("`messages` is 0; a run needs at least one")]
    NoMessages,
    /// Messages are numbered with 32 bits.
    #[error("`messages` makes {0} in a run, which has at most {max}; take more repetitions", max = u32::MAX)]
    TooManyMessages(u64),
}
