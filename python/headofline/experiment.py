"""What an experiment says, as types. Made by scripts/build-python-types of docs/experiment.schema.json."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

Arrivals: TypeAlias = Literal['periodic', 'poisson']
"""
Distribution of the intervals between messages.
"""


Axes: TypeAlias = dict[str, list[Any]] | list[dict[str, list[Any]]]
"""
One group of axes, or several: `{ "network.loss" = ["0%", "1%"], seed = [1, 2] }`.
"""


Better: TypeAlias = Literal['less', 'more']
"""
Which of two numbers is better.
"""


BitRate: TypeAlias = str
"""
a bit rate above zero such as "100Mbit" (units: bit, kbit, Mbit, Gbit)
"""


ByteCount: TypeAlias = str
"""
a size such as "128B" (units: B, kB, MB, KiB, MiB)
"""


Command: TypeAlias = str | list[str]
"""
A command to run.
"""


ConnectionReuse: TypeAlias = Literal['close', 'keepalive', 'pipelined', 'multiplexed']
"""
How requests and responses share the connections and their streams.
"""


class Content1(TypedDict, closed=True):
    """
    A file with this text.
    """

    text: str


Content2 = TypedDict(
    'Content2',
    {
        'from': str,
    },
    closed=True,
)


class Content3(TypedDict, closed=True):
    """
    A directory with the contents of this tar archive on the host.
    """

    tar: str


class Content4(TypedDict, closed=True):
    """
    A file of this size with fixed content.
    """

    size: ByteCount


Content: TypeAlias = Content1 | Content2 | Content3 | Content4
"""
Content of a file or directory.
"""


Duration: TypeAlias = str
"""
a time such as "10ms" (units: ns, us, ms, s, min, h, d)
"""


class ExplicitLoss(TypedDict, closed=True):
    """
    The packets that are lost, by number.
    """

    drop: list[int]
    """
    Drop the packets with these numbers, counted from 1 in the order of transmission on the link.
    """


class FairSpec(TypedDict, closed=True):
    """
    The parameters of FQ-CoDel; the defaults are those of RFC 8290 section 5.2, and of Linux.
    """

    ce_threshold: NotRequired[Duration]
    """
    Mark every packet whose queueing delay exceeds this, if its endpoints support ECN; for DCTCP. Default off.
    """
    ecn: NotRequired[bool]
    """
    Mark packets instead of dropping them if their endpoints support ECN. Default yes, as in `tc`.
    """
    flows: NotRequired[int]
    """
    Number of queues; flows are spread over them by a hash of addresses and ports. Default 1024.
    """
    interval: NotRequired[Duration]
    """
    Time for which the delay must exceed the target before packets are dropped; about the longest usual round-trip time (RFC 8289
    section 4.3). Default 100 ms.
    """
    quantum: NotRequired[ByteCount]
    """
    Octets that a flow sends per turn, including those beyond IP. Default 1514.
    """
    target: NotRequired[Duration]
    """
    Acceptable queueing delay. Default 5 ms.
    """


class Figure(TypedDict, closed=True):
    """
    A figure of the report.
    """

    metric: NotRequired[str]
    """
    Name of the metric to draw, which may be one of `[program.metrics]`. Default `response-time`.
    """
    over: str
    """
    The swept key along the horizontal axis.
    """
    panels: NotRequired[str]
    """
    Draw one panel for each value of this swept key.
    """


FileOperation: TypeAlias = Literal['put', 'get', 'remove']
"""
An operation on a file.
"""


Filter: TypeAlias = Literal['none', 'nftables']
"""
How the rules of a middlebox are enforced.
"""


Frequency: TypeAlias = str
"""
a rate above zero such as "100/s"
"""


HandoverChange: TypeAlias = Literal['address', 'route']
"""
What changes when the client moves.
"""


class HandoverSpec(TypedDict, closed=True):
    """
    The movement of a client from one path to another.
    """

    at: NotRequired[Duration]
    """
    Time from the start of the run until the client enters the overlap. Default 1 s.
    """
    attach: NotRequired[Duration]
    """
    Time from entering the overlap until the client is reachable over the second path: association with the cell and
    configuration. Default none.
    """
    changes: NotRequired[HandoverChange]
    """
    What the handover changes. `"address"`: the client gets an address on the second path, and loses its address on the first when it
    leaves that path. `"route"`: the client keeps its address, and both ends send over the second path from then on (mobility below the
    transport, as with Mobile IP, a tunnel or GTP). Default `"address"`.
    """
    overlap: NotRequired[float]
    """
    Length of the overlap, in which both paths work, in m. Default 5.
    """
    speed: NotRequired[float]
    """
    Speed of the client in m/s. Default 10.
    """


class HostSpec(TypedDict, closed=True):
    """
    The `[hosts.NAME]` table of an experiment: properties of a node apart from its links.
    """

    filter: NotRequired[Filter]
    """
    How a middlebox on this host enforces its rules before it replies; `nftables` in the kernel world
    only. Default `none`.
    """
    service: NotRequired[Duration]
    """
    Processing time of each message that an application on this host reads; messages are processed one after another. Default none.
    """


Ip: TypeAlias = Literal['v4', 'v6']
"""
A version of IP.
"""


LinkDirection: TypeAlias = Literal['both', 'up', 'down']
"""
The directions that an event changes.
"""


class LogNormal(TypedDict, closed=True):
    """
    A log-normal distribution of sizes.
    """

    max: NotRequired[ByteCount]
    """
    Maximum size; larger draws are reduced to it. Default: the longest possible message. Its former name `most` is accepted, too.
    """
    median: ByteCount
    """
    Median of the sizes.
    """
    sigma: float
    """
    Standard deviation of the logarithm of the size.
    """


Measure: TypeAlias = Literal['program', 'connection', 'transaction']
"""
The times of programs that are measured, from outside.
"""


MessageSize: TypeAlias = ByteCount
"""
Octets per message, by default `DEFAULT`.
"""


MessageSize2: TypeAlias = ByteCount
"""
Octets per message, by default `DEFAULT`.
"""


MetricAggregation: TypeAlias = Literal['mean', 'sum', 'first', 'last', 'min', 'max']
"""
How several numbers are combined.
"""


NamedPath: TypeAlias = Literal[
    'wifi',
    'lte',
    '5g',
    'starlink',
    'dsl',
    'cable',
    'geo',
    'datacenter',
    'transatlantic',
]
"""
A named path: its settings are a file of `paths/`.
"""


class OwnDistribution1(TypedDict, closed=True):
    """
    A file next to the experiment, in the format of tc-netem(8).
    """

    file: str


class OwnDistribution2(TypedDict, closed=True):
    """
    Quantiles in units of `jitter`/8192.
    """

    table: list[int]


OwnDistribution: TypeAlias = OwnDistribution1 | OwnDistribution2


Packing: TypeAlias = Literal['mpa', 'adu']
"""
Content of a packet: one unit of this kind, or a fragment of a unit that is too long.
"""


class Pair(TypedDict, closed=True):
    """
    The files of the two directions.
    """

    down: NotRequired[str]
    """
    From server to client.
    """
    up: NotRequired[str]
    """
    From client to server.
    """


class PieSpec(TypedDict, closed=True):
    """
    The parameters of PIE; the defaults are those of RFC 8033 sections 4.1 and 4.2, and of Linux.
    """

    alpha: NotRequired[int]
    """
    Weight of the deviation from the target, in sixteenths of one per second, as in `tc`. Default 2.
    """
    beta: NotRequired[int]
    """
    Weight of the change of the delay, in the unit of `alpha`. Default 20.
    """
    ecn: NotRequired[bool]
    """
    Mark packets instead of dropping them if their endpoints support ECN and the probability is at most 10
    %. Default no, as in `tc`.
    """
    target: NotRequired[Duration]
    """
    Target of the queueing delay (RFC 8033: `QDELAY_REF`). Default 15 ms.
    """
    update: NotRequired[Duration]
    """
    Interval at which the probability is updated (RFC 8033: `T_UPDATE`; `tc`: `tupdate`). Default 15 ms.
    """


QueueLimit: TypeAlias = str
"""
a queue limit such as "1000p" (packets) or "64KiB" (octets)
"""


Ratio: TypeAlias = str
"""
a percentage from "0%" to "100%"
"""


class Ready1(TypedDict, closed=True):
    """
    Ready once a socket on the program's node listens on this port, whatever the transport.
    """

    listens: int


class Ready2(TypedDict, closed=True):
    """
    Ready once the program has printed this text on standard output or standard error.
    """

    prints: str


class Ready3(TypedDict, closed=True):
    """
    Ready this long after the start of the program.
    """

    after: Duration


Ready: TypeAlias = Ready1 | Ready2 | Ready3
"""
When a service counts as ready.
"""


RecordsKept: TypeAlias = Literal['none', 'all']
"""
Which records of single messages are kept in addition to the summaries.
"""


class RedSpec(TypedDict, closed=True):
    """
    The parameters of random early detection; the defaults are ns-2's without automatic tuning.
    """

    drop: NotRequired[Ratio]
    """
    Drop probability as the average approaches `max` (ns-2: 1/`linterm_`). Default 10 %.
    """
    ecn: NotRequired[bool]
    """
    Mark packets instead of dropping them if their endpoints support ECN, even above `max` (ns-2:
    `setbit_`; Linux: `ecn`). Default no.
    """
    gentle: NotRequired[bool]
    """
    Increase the probability from `drop` at `max` to 1 at twice `max` instead of jumping. Default no.
    """
    max: NotRequired[QueueLimit]
    """
    Average queue length from which every packet is dropped (ns-2: `maxthresh_`). Default 15 packets.
    """
    min: NotRequired[QueueLimit]
    """
    Average queue length below which no packet is dropped (ns-2: `thresh_`). Default 5 packets.
    """
    packet: NotRequired[ByteCount]
    """
    Size of a typical packet: while the queue is empty, the average decays once per transmission time of such a
    packet (ns-2: `mean_pktsize_`). Default 500 octets.
    """
    weight: NotRequired[float]
    """
    The weight of the newest sample in the average (ns-2: `q_weight_`). Default 0.002.
    """


Repetitions: TypeAlias = int | str


class RequestMix(TypedDict, closed=True):
    """
    Weights of the requests: with `{ enable = 2, lifetime = 1, delete = 1 }` half of them enable a rule.
    """

    delete: NotRequired[int]
    """
    Delete a rule (PLC with a lifetime of zero).
    """
    enable: int
    """
    Enable a rule (PER).
    """
    lifetime: NotRequired[int]
    """
    Extend a rule (PLC).
    """


Sizes: TypeAlias = ByteCount | LogNormal | dict[str, int]
"""
Octets of each of many messages or files.
How the sizes of messages are chosen.
"""


class TimedBursts(TypedDict, closed=True):
    """
    A link that alternates between a good and a bad state in time, whether packets are sent or not (a Markov
    chain in continuous time).

    It starts good, and the duration of each state is exponential. Unlike a burst of packets, a burst does not
    wait for a sender that backs off. The times depend only on the run's seed and the link, so all transports,
    and model and kernel world, meet the same bursts. After a day, or the mean time of 36,000 bursts, the link
    stays good.
    """

    bad_for: Duration
    """
    Mean time in the bad state.
    """
    good_for: Duration
    """
    Mean time in the good state. The sum of `good_for` and `bad_for` is at least 100 ms.
    """
    loss_bad: NotRequired[Ratio]
    """
    Loss in the bad state. Default 100 %.
    """
    loss_good: NotRequired[Ratio]
    """
    Loss in the good state. Default 0 %.
    """


class TokenBucket(TypedDict, closed=True):
    """
    The parameters of a policer, in octets of IP packets.
    """

    burst: ByteCount
    """
    Size of the token bucket, which is full at the start.
    """
    rate: BitRate
    """
    Token rate, 8 bit/s for each octet a second.
    """


TraceSpec: TypeAlias = str | Pair


TraceStart: TypeAlias = Literal['random'] | Duration


class Transport1(TypedDict, closed=True):
    """
    A transport to compare, with a label, or with its own workload settings.
    """

    label: NotRequired[str]
    """
    Label in tables and figures. Default: `spec`.
    """
    spec: str
    """
    Transport with its options, such as "sctp:streams=8"; `hol list` shows all.
    """
    workload: NotRequired[dict[str, Any]]
    """
    Keys of `[workload]` to override for this transport.
    """


Transport: TypeAlias = str | Transport1
"""
A transport to compare, with a label, or with its own workload settings.
"""


RpcWorkload = TypedDict(
    'RpcWorkload',
    {
        'arrivals': NotRequired[Arrivals],
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'head': NotRequired[ByteCount],
        'interval': NotRequired[Duration],
        'kind': Literal['rpc'],
        'late_limit': NotRequired[Duration],
        'listens': NotRequired[bool],
        'rate': NotRequired[Frequency],
        'reply': NotRequired[Sizes],
        'request': NotRequired[Sizes],
        'service': NotRequired[Duration],
        'sources': NotRequired[int],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'think': NotRequired[Duration],
        'to': NotRequired[str],
        'users': NotRequired[int],
    },
    closed=True,
)


SimcoWorkload = TypedDict(
    'SimcoWorkload',
    {
        'arrivals': NotRequired[Arrivals],
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'interval': NotRequired[Duration],
        'kind': Literal['simco'],
        'late_limit': NotRequired[Duration],
        'listens': NotRequired[bool],
        'mix': NotRequired[RequestMix],
        'rate': NotRequired[Frequency],
        'sources': NotRequired[int],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


EchoWorkload = TypedDict(
    'EchoWorkload',
    {
        'arrivals': NotRequired[Arrivals],
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'interval': NotRequired[Duration],
        'kind': Literal['echo'],
        'late_limit': NotRequired[Duration],
        'listens': NotRequired[bool],
        'rate': NotRequired[Frequency],
        'size': NotRequired[MessageSize],
        'sources': NotRequired[int],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


PingpongWorkload = TypedDict(
    'PingpongWorkload',
    {
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'kind': Literal['pingpong'],
        'listens': NotRequired[bool],
        'size': NotRequired[MessageSize],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


OnewayWorkload = TypedDict(
    'OnewayWorkload',
    {
        'arrivals': NotRequired[Arrivals],
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'interval': NotRequired[Duration],
        'kind': Literal['oneway'],
        'late_limit': NotRequired[Duration],
        'listens': NotRequired[bool],
        'rate': NotRequired[Frequency],
        'size': NotRequired[MessageSize],
        'sources': NotRequired[int],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


BulkWorkload = TypedDict(
    'BulkWorkload',
    {
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'kind': Literal['bulk'],
        'lasts': NotRequired[Duration],
        'listens': NotRequired[bool],
        'size': NotRequired[MessageSize2],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


PageWorkload = TypedDict(
    'PageWorkload',
    {
        'connect_timeout': NotRequired[Duration],
        'document': NotRequired[ByteCount],
        'early': NotRequired[bool],
        'from': NotRequired[str],
        'head': NotRequired[ByteCount],
        'kind': Literal['page'],
        'listens': NotRequired[bool],
        'objects': NotRequired[int],
        'pair': NotRequired[bool],
        'pause': NotRequired[Duration],
        'reopen': NotRequired[bool],
        'request': NotRequired[ByteCount],
        'size': NotRequired[Sizes],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'think': NotRequired[Duration],
        'to': NotRequired[str],
        'waves': NotRequired[int],
        'way': NotRequired[ConnectionReuse],
    },
    closed=True,
)


MediaWorkload = TypedDict(
    'MediaWorkload',
    {
        'bitrate': NotRequired[BitRate],
        'buffer': NotRequired[Duration],
        'connect_timeout': NotRequired[Duration],
        'fec': NotRequired[str],
        'from': NotRequired[str],
        'interleave': NotRequired[int],
        'kind': Literal['media'],
        'listens': NotRequired[bool],
        'packet': NotRequired[ByteCount],
        'packing': NotRequired[Packing],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


FilesWorkload = TypedDict(
    'FilesWorkload',
    {
        'block': NotRequired[ByteCount],
        'connect_timeout': NotRequired[Duration],
        'files': NotRequired[int],
        'from': NotRequired[str],
        'kind': Literal['files'],
        'listens': NotRequired[bool],
        'operations': NotRequired[list[FileOperation]],
        'size': NotRequired[ByteCount],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


ReplayWorkload = TypedDict(
    'ReplayWorkload',
    {
        'connect_timeout': NotRequired[Duration],
        'exchanges': NotRequired[list[str]],
        'from': NotRequired[str],
        'kind': Literal['replay'],
        'listens': NotRequired[bool],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


ProgramsWorkload = TypedDict(
    'ProgramsWorkload',
    {
        'connect_timeout': NotRequired[Duration],
        'from': NotRequired[str],
        'kind': Literal['programs'],
        'limit': NotRequired[Duration],
        'listens': NotRequired[bool],
        'measure': NotRequired[Measure],
        'spread': NotRequired[Duration],
        'start': NotRequired[Duration],
        'to': NotRequired[str],
    },
    closed=True,
)


WorkloadWhoseKindIsSwept = TypedDict(
    'WorkloadWhoseKindIsSwept',
    {
        'arrivals': NotRequired[Any],
        'bitrate': NotRequired[Any],
        'block': NotRequired[Any],
        'buffer': NotRequired[Any],
        'connect_timeout': NotRequired[Any],
        'document': NotRequired[Any],
        'early': NotRequired[Any],
        'exchanges': NotRequired[Any],
        'fec': NotRequired[Any],
        'files': NotRequired[Any],
        'from': NotRequired[Any],
        'head': NotRequired[Any],
        'interleave': NotRequired[Any],
        'interval': NotRequired[Any],
        'lasts': NotRequired[Any],
        'late_limit': NotRequired[Any],
        'limit': NotRequired[Any],
        'listens': NotRequired[Any],
        'measure': NotRequired[Any],
        'mix': NotRequired[Any],
        'objects': NotRequired[Any],
        'operations': NotRequired[Any],
        'packet': NotRequired[Any],
        'packing': NotRequired[Any],
        'pair': NotRequired[Any],
        'pause': NotRequired[Any],
        'rate': NotRequired[Any],
        'reopen': NotRequired[Any],
        'reply': NotRequired[Any],
        'request': NotRequired[Any],
        'service': NotRequired[Any],
        'size': NotRequired[Any],
        'sources': NotRequired[Any],
        'spread': NotRequired[Any],
        'start': NotRequired[Any],
        'think': NotRequired[Any],
        'to': NotRequired[Any],
        'users': NotRequired[Any],
        'waves': NotRequired[Any],
        'way': NotRequired[Any],
    },
    closed=True,
)


WorkloadSpec: TypeAlias = (
    RpcWorkload
    | SimcoWorkload
    | EchoWorkload
    | PingpongWorkload
    | OnewayWorkload
    | BulkWorkload
    | PageWorkload
    | MediaWorkload
    | FilesWorkload
    | ReplayWorkload
    | ProgramsWorkload
    | WorkloadWhoseKindIsSwept
)
"""
The application, its nodes and its start; the keys of its kind are in the same table.
"""


class Background(TypedDict, closed=True):
    """
    Background flows that compete with the measured one, all with the same workload.
    """

    count: NotRequired[int]
    """
    Number of background flows. Default 1.
    """
    messages: NotRequired[int]
    """
    Number of messages that each background flow sends before it closes its connections. Default: the flow sends until the workload has
    ended.
    """
    spread: NotRequired[Duration]
    """
    Start each background flow at a random time of up to this long after the workload's `start`. Default
    1 s.
    """
    transport: NotRequired[str]
    """
    Transport of the background flows. Default: that of the measured workload.
    """
    workload: NotRequired[WorkloadSpec]
    """
    Workload of each background flow. Default `bulk`: a greedy sender.
    """


class CodelSpec(TypedDict, closed=True):
    """
    The parameters of CoDel; the defaults are those of RFC 8289 sections 4.2 and 4.3, and of Linux.
    """

    ce_threshold: NotRequired[Duration]
    """
    Mark every packet whose queueing delay exceeds this, if its endpoints support ECN; for DCTCP. Default off.
    """
    ecn: NotRequired[bool]
    """
    Mark packets instead of dropping them if their endpoints support ECN. Default no, as in `tc`.
    """
    interval: NotRequired[Duration]
    """
    Time for which the delay must exceed the target before packets are dropped; about the longest usual round-trip time (RFC 8289
    section 4.3). Default 100 ms.
    """
    target: NotRequired[Duration]
    """
    Acceptable queueing delay. Default 5 ms.
    """


Distribution: TypeAlias = (
    Literal['uniform', 'normal', 'pareto', 'paretonormal'] | OwnDistribution
)


class DualPi2Spec(TypedDict, closed=True):
    """
    The parameters of DualPI2; the defaults are those of Linux (`dualpi2_reset_default`).
    """

    alpha: NotRequired[float]
    """
    Weight of the deviation from the target, in Hz. Default 41/256, about 0.16.
    """
    beta: NotRequired[float]
    """
    Weight of the change of the delay, in Hz. Default 819/256, about 3.2.
    """
    classic_protection: NotRequired[int]
    """
    Minimum share of the rate for the classic queue, in percent (`tc`: `classic_protection`). Default 10.
    """
    coupling: NotRequired[int]
    """
    Coupling factor: the low-latency queue's marking probability is at least this factor times the square root of the classic drop
    probability (`tc`: `coupling_factor`, RFC 9332: k). Default 2.
    """
    step: NotRequired[Duration]
    """
    Mark packets that wait longer than this in the low-latency queue (`tc`: `step_thresh`). Default 1 ms.
    """
    target: NotRequired[Duration]
    """
    Target of the classic queue's delay. Default 15 ms.
    """
    update: NotRequired[Duration]
    """
    Interval at which the probability is updated (`tc`: `tupdate`). Default 16 ms.
    """


class GilbertElliott(TypedDict, closed=True):
    """
    A link that alternates between a good and a bad state, each with its loss probability (Gilbert 1960,
    Elliott 1963).

    It starts good. Before each packet it may change its state; the packet is then lost with the state's
    probability. In the long run the link is bad for `good_to_bad / (good_to_bad + bad_to_good)` of the
    packets.
    """

    bad_to_good: Ratio
    """
    Probability that a bad link is good for the next packet; its inverse is the mean length of a burst.
    """
    good_to_bad: Ratio
    """
    Probability that a good link is bad for the next packet.
    """
    loss_bad: NotRequired[Ratio]
    """
    Loss in the bad state. Default 100 %.
    """
    loss_good: NotRequired[Ratio]
    """
    Loss in the good state. Default 0 %.
    """


LossSpec: TypeAlias = Ratio | GilbertElliott | TimedBursts | ExplicitLoss
"""
The packet loss of a link: which packets are lost.
"""


Metric = TypedDict(
    'Metric',
    {
        'better': NotRequired[Better],
        'from': NotRequired[str],
        'json': NotRequired[str],
        'regex': NotRequired[str],
        'take': NotRequired[MetricAggregation],
        'unit': NotRequired[str],
    },
    closed=True,
)


class Onward(TypedDict, closed=True):
    """
    Requests of a server to another server, one for each request that it receives; a server with several sends them one after
    another.
    """

    transport: NotRequired[str]
    """
    Transport of these requests. Default: that of the measured workload.
    """
    workload: WorkloadSpec
    """
    Workload of these requests: `from` is the server that sends them, `to` the server that replies.
    """


PoliceSpec: TypeAlias = Literal['none'] | TokenBucket


class Program(TypedDict, closed=True):
    """
    A program on a node. With `ready` the program is a service; otherwise the run lasts until the program ends.
    """

    command: Command
    """
    Command to run: a list of words, or a line for the node's `/bin/sh`.
    """
    directory: NotRequired[str]
    """
    Working directory of the program. Default /root.
    """
    env: NotRequired[dict[str, str]]
    """
    Environment variables, in addition to `PATH`, `HOME` and `LANG`.
    """
    files: NotRequired[dict[str, Content]]
    """
    Files to add to the program's node, by absolute path.
    """
    metrics: NotRequired[dict[str, Metric]]
    """
    Metrics read from the program's output or files, by name.
    """
    node: str
    """
    Node on which the program runs.
    """
    ready: NotRequired[Ready]
    """
    Condition under which the program is ready. With this key the program is a service: the run does not wait for its end.
    """
    start: NotRequired[Duration]
    """
    Start time: since all services are ready; for a service, since the start of the run. Default 0.
    """
    stop: NotRequired[Duration]
    """
    Time at which to send SIGTERM to the program, counted like `start`. Default: a service gets SIGTERM when all other programs have
    ended; other programs get none.
    """


class Discipline1(TypedDict, closed=True):
    codel: NotRequired[CodelSpec]
    dualpi2: NotRequired[DualPi2Spec]
    fq_codel: NotRequired[FairSpec]
    pie: NotRequired[PieSpec]
    red: NotRequired[RedSpec]


Discipline: TypeAlias = (
    Literal['droptail', 'red', 'codel', 'fq_codel', 'pie', 'dualpi2'] | Discipline1
)


class EventSpec(TypedDict, closed=True):
    """
    A change during the run: the link goes down or up, or one of its settings changes.
    """

    at: Duration
    """
    Time since the start of the run.
    """
    delay: NotRequired[Duration]
    """
    The new delay, from the next packet on; packets keep their order.
    """
    direction: NotRequired[LinkDirection]
    """
    Direction in which the link changes. Default both.
    """
    down: NotRequired[bool]
    """
    `true`: the link goes down, and packets on it are lost; `false`: it works again.
    """
    link: NotRequired[str]
    """
    Name of the link or LAN that changes (long form). Default all.
    """
    loss: NotRequired[LossSpec]
    """
    The new loss, from the next packet on.
    """
    path: NotRequired[int]
    """
    Number of the path that changes, counted from 1. Default all.
    """
    rate: NotRequired[BitRate]
    """
    The new bit rate, from the next bit on.
    """


class LanSpec(TypedDict, closed=True):
    """
    A shared segment: each of its nodes reaches every other in one hop; one packet at a time.
    """

    addresses: NotRequired[list[str]]
    """
    Addresses of `nodes`, in their order. Default 10.0.i.1, 10.0.i.2, … or fd00:0:0:i::1, …
    """
    channel: NotRequired[str]
    """
    Name of the channel of the link: links that name the same channel take turns and transmit one packet at a time. Model world only.
    Default `"own"`: not shared.
    """
    corrupt: NotRequired[Ratio]
    """
    Probability that a packet arrives with a wrong checksum. Default 0.
    """
    delay: NotRequired[Duration]
    """
    One-way propagation delay. Default 10 ms.
    """
    discipline: NotRequired[Discipline]
    """
    Queueing discipline: `"droptail"`, `"red"`, `"codel"`, `"fq_codel"`, `"pie"`, `"dualpi2"`, or a table such as
    `{ red = { min = "5p", max = "15p" } }`.
    """
    duplicate: NotRequired[Ratio]
    """
    Probability that a packet arrives twice. Default 0.
    """
    jitter: NotRequired[Duration]
    """
    Jitter: the delay varies uniformly by up to plus or minus this time, or as `jitter_distribution` specifies; packets keep their
    order. At most 2 s in the kernel world. Default none.
    """
    jitter_correlation: NotRequired[Ratio]
    """
    Correlation with the jitter of the previous packet. Uniform: j = correlation · j + (1 − correlation)
    · new, which reduces the variance. Normal: the correlation of consecutive packets. Model world only.
    Default 0 %.
    """
    jitter_distribution: NotRequired[Distribution]
    """
    Distribution of the jitter: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as in
    tc-netem; or `{ file = "measured.dist" }`, a file in the format of tc-netem. A negative delay becomes zero. Default `"uniform"`.
    """
    loss: NotRequired[LossSpec]
    """
    Packet loss: `"1%"`, a Gilbert–Elliott table whose bursts have a mean length in packets or in time, or `{ drop = [3, 7] }`. Default
    none.
    """
    mtu: NotRequired[ByteCount]
    """
    Maximum size of an IP packet; longer packets are dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    """
    name: NotRequired[str]
    """
    Name in events and drawings. Default the nodes, joined by hyphens.
    """
    nodes: list[str]
    """
    The nodes on the segment.
    """
    overhead: NotRequired[ByteCount]
    """
    Octets per packet on the link beyond IP. Default 14, as `tc` counts Ethernet.
    """
    police: NotRequired[PoliceSpec]
    """
    Drop packets that leave the link faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`. In the
    kernel world not together with `duplicate`. Default `"none"`.
    """
    queue: NotRequired[QueueLimit]
    """
    Capacity of the queue, including the packet in transmission. Default 1000 packets.
    """
    rate: NotRequired[BitRate]
    """
    Bit rate; a packet occupies the link for its length divided by this rate. Default 100 Mbit/s.
    """
    reorder: NotRequired[Ratio]
    """
    Probability that a packet is delayed by `reorder_by`, so that later packets overtake it. Default 0.
    """
    reorder_by: NotRequired[Duration]
    """
    Additional delay of reordered packets; needs `reorder`. Default none.
    """


class Overrides(TypedDict, closed=True):
    """
    Settings that replace those of the table around them.
    """

    channel: NotRequired[str]
    """
    Name of the channel of the link: links that name the same channel take turns and transmit one packet at a time. Model world only.
    Default `"own"`: not shared.
    """
    corrupt: NotRequired[Ratio]
    """
    Probability that a packet arrives with a wrong checksum. Default 0.
    """
    delay: NotRequired[Duration]
    """
    One-way propagation delay. Default 10 ms.
    """
    discipline: NotRequired[Discipline]
    """
    Queueing discipline: `"droptail"`, `"red"`, `"codel"`, `"fq_codel"`, `"pie"`, `"dualpi2"`, or a table such as
    `{ red = { min = "5p", max = "15p" } }`.
    """
    duplicate: NotRequired[Ratio]
    """
    Probability that a packet arrives twice. Default 0.
    """
    jitter: NotRequired[Duration]
    """
    Jitter: the delay varies uniformly by up to plus or minus this time, or as `jitter_distribution` specifies; packets keep their
    order. At most 2 s in the kernel world. Default none.
    """
    jitter_correlation: NotRequired[Ratio]
    """
    Correlation with the jitter of the previous packet. Uniform: j = correlation · j + (1 − correlation)
    · new, which reduces the variance. Normal: the correlation of consecutive packets. Model world only.
    Default 0 %.
    """
    jitter_distribution: NotRequired[Distribution]
    """
    Distribution of the jitter: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as in
    tc-netem; or `{ file = "measured.dist" }`, a file in the format of tc-netem. A negative delay becomes zero. Default `"uniform"`.
    """
    loss: NotRequired[LossSpec]
    """
    Packet loss: `"1%"`, a Gilbert–Elliott table whose bursts have a mean length in packets or in time, or `{ drop = [3, 7] }`. Default
    none.
    """
    mtu: NotRequired[ByteCount]
    """
    Maximum size of an IP packet; longer packets are dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    """
    overhead: NotRequired[ByteCount]
    """
    Octets per packet on the link beyond IP. Default 14, as `tc` counts Ethernet.
    """
    police: NotRequired[PoliceSpec]
    """
    Drop packets that leave the link faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`. In the
    kernel world not together with `duplicate`. Default `"none"`.
    """
    queue: NotRequired[QueueLimit]
    """
    Capacity of the queue, including the packet in transmission. Default 1000 packets.
    """
    rate: NotRequired[BitRate]
    """
    Bit rate; a packet occupies the link for its length divided by this rate. Default 100 Mbit/s.
    """
    reorder: NotRequired[Ratio]
    """
    Probability that a packet is delayed by `reorder_by`, so that later packets overtake it. Default 0.
    """
    reorder_by: NotRequired[Duration]
    """
    Additional delay of reordered packets; needs `reorder`. Default none.
    """


class PathSpec(TypedDict, closed=True):
    """
    One of several parallel links between `client` and `server`, each with its own interfaces.
    """

    backup: NotRequired[bool]
    """
    Use the path in MPTCP only while no other path works (RFC 8684 section 3.3, B). TCP uses only
    the first path, and SCTP has only one active path anyway. Not allowed for the first path,
    where connections start. Default no.
    """
    channel: NotRequired[str]
    """
    Name of the channel of the link: links that name the same channel take turns and transmit one packet at a time. Model world only.
    Default `"own"`: not shared.
    """
    corrupt: NotRequired[Ratio]
    """
    Probability that a packet arrives with a wrong checksum. Default 0.
    """
    delay: NotRequired[Duration]
    """
    One-way propagation delay. Default 10 ms.
    """
    discipline: NotRequired[Discipline]
    """
    Queueing discipline: `"droptail"`, `"red"`, `"codel"`, `"fq_codel"`, `"pie"`, `"dualpi2"`, or a table such as
    `{ red = { min = "5p", max = "15p" } }`.
    """
    down: NotRequired[Overrides]
    """
    Overrides for the direction from server to client.
    """
    duplicate: NotRequired[Ratio]
    """
    Probability that a packet arrives twice. Default 0.
    """
    jitter: NotRequired[Duration]
    """
    Jitter: the delay varies uniformly by up to plus or minus this time, or as `jitter_distribution` specifies; packets keep their
    order. At most 2 s in the kernel world. Default none.
    """
    jitter_correlation: NotRequired[Ratio]
    """
    Correlation with the jitter of the previous packet. Uniform: j = correlation · j + (1 − correlation)
    · new, which reduces the variance. Normal: the correlation of consecutive packets. Model world only.
    Default 0 %.
    """
    jitter_distribution: NotRequired[Distribution]
    """
    Distribution of the jitter: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as in
    tc-netem; or `{ file = "measured.dist" }`, a file in the format of tc-netem. A negative delay becomes zero. Default `"uniform"`.
    """
    loss: NotRequired[LossSpec]
    """
    Packet loss: `"1%"`, a Gilbert–Elliott table whose bursts have a mean length in packets or in time, or `{ drop = [3, 7] }`. Default
    none.
    """
    mtu: NotRequired[ByteCount]
    """
    Maximum size of an IP packet; longer packets are dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    """
    overhead: NotRequired[ByteCount]
    """
    Octets per packet on the link beyond IP. Default 14, as `tc` counts Ethernet.
    """
    path: NotRequired[NamedPath]
    """
    A path by name, such as `"lte"`: other keys of the table override its settings in both directions. `hol list paths` lists
    the paths; `hol help lte` shows the settings and sources of one. Default none.
    """
    police: NotRequired[PoliceSpec]
    """
    Drop packets that leave the link faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`. In the
    kernel world not together with `duplicate`. Default `"none"`.
    """
    queue: NotRequired[QueueLimit]
    """
    Capacity of the queue, including the packet in transmission. Default 1000 packets.
    """
    rate: NotRequired[BitRate]
    """
    Bit rate; a packet occupies the link for its length divided by this rate. Default 100 Mbit/s.
    """
    reorder: NotRequired[Ratio]
    """
    Probability that a packet is delayed by `reorder_by`, so that later packets overtake it. Default 0.
    """
    reorder_by: NotRequired[Duration]
    """
    Additional delay of reordered packets; needs `reorder`. Default none.
    """
    rtt: NotRequired[Duration]
    """
    Round-trip propagation delay, instead of `delay`: half of it in each direction.
    """
    up: NotRequired[Overrides]
    """
    Overrides for the direction from client to server.
    """


LinkSpec = TypedDict(
    'LinkSpec',
    {
        'addresses': NotRequired[list[str]],
        'channel': NotRequired[str],
        'corrupt': NotRequired[Ratio],
        'delay': NotRequired[Duration],
        'discipline': NotRequired[Discipline],
        'down': NotRequired[Overrides],
        'duplicate': NotRequired[Ratio],
        'from': str,
        'jitter': NotRequired[Duration],
        'jitter_correlation': NotRequired[Ratio],
        'jitter_distribution': NotRequired[Distribution],
        'loss': NotRequired[LossSpec],
        'mtu': NotRequired[ByteCount],
        'name': NotRequired[str],
        'overhead': NotRequired[ByteCount],
        'path': NotRequired[NamedPath],
        'police': NotRequired[PoliceSpec],
        'queue': NotRequired[QueueLimit],
        'rate': NotRequired[BitRate],
        'reorder': NotRequired[Ratio],
        'reorder_by': NotRequired[Duration],
        'rtt': NotRequired[Duration],
        'to': str,
        'up': NotRequired[Overrides],
    },
    closed=True,
)


class NetworkSpec(TypedDict, closed=True):
    """
    The network between the endpoints.
    """

    channel: NotRequired[str]
    """
    Name of the channel of the link: links that name the same channel take turns and transmit one packet at a time. Model world only.
    Default `"own"`: not shared.
    """
    corrupt: NotRequired[Ratio]
    """
    Probability that a packet arrives with a wrong checksum. Default 0.
    """
    delay: NotRequired[Duration]
    """
    One-way propagation delay. Default 10 ms.
    """
    discipline: NotRequired[Discipline]
    """
    Queueing discipline: `"droptail"`, `"red"`, `"codel"`, `"fq_codel"`, `"pie"`, `"dualpi2"`, or a table such as
    `{ red = { min = "5p", max = "15p" } }`.
    """
    down: NotRequired[Overrides]
    """
    Overrides for the direction from server to client.
    """
    duplicate: NotRequired[Ratio]
    """
    Probability that a packet arrives twice. Default 0.
    """
    events: NotRequired[list[EventSpec]]
    """
    Changes during the run.
    """
    handover: NotRequired[HandoverSpec]
    """
    Move the client from the first of two paths to the second. Over QUIC, and over UDP in the
    kernel world, only with `changes = "route"`.
    """
    ip: NotRequired[Ip]
    """
    Version of IP: `"v4"` or `"v6"`, whose header is 20 octets longer. Default `"v4"`.
    """
    jitter: NotRequired[Duration]
    """
    Jitter: the delay varies uniformly by up to plus or minus this time, or as `jitter_distribution` specifies; packets keep their
    order. At most 2 s in the kernel world. Default none.
    """
    jitter_correlation: NotRequired[Ratio]
    """
    Correlation with the jitter of the previous packet. Uniform: j = correlation · j + (1 − correlation)
    · new, which reduces the variance. Normal: the correlation of consecutive packets. Model world only.
    Default 0 %.
    """
    jitter_distribution: NotRequired[Distribution]
    """
    Distribution of the jitter: `"uniform"`; `"normal"`, with `jitter` as the standard deviation; `"pareto"` or `"paretonormal"`, as in
    tc-netem; or `{ file = "measured.dist" }`, a file in the format of tc-netem. A negative delay becomes zero. Default `"uniform"`.
    """
    lans: NotRequired[list[LanSpec]]
    """
    Long form: segments shared by several nodes.
    """
    links: NotRequired[list[LinkSpec]]
    """
    Long form: links between nodes.
    """
    loss: NotRequired[LossSpec]
    """
    Packet loss: `"1%"`, a Gilbert–Elliott table whose bursts have a mean length in packets or in time, or `{ drop = [3, 7] }`. Default
    none.
    """
    mtu: NotRequired[ByteCount]
    """
    Maximum size of an IP packet; longer packets are dropped. At most 65535 octets in the kernel world. Default 1500 octets.
    """
    nodes: NotRequired[list[str]]
    """
    Long form: names of all nodes, including `client` and `server`.
    """
    overhead: NotRequired[ByteCount]
    """
    Octets per packet on the link beyond IP. Default 14, as `tc` counts Ethernet.
    """
    path: NotRequired[NamedPath]
    """
    A path by name, such as `"lte"`: other keys of the table override its settings in both directions. `hol list paths` lists
    the paths; `hol help lte` shows the settings and sources of one. Default none.
    """
    paths: NotRequired[list[PathSpec]]
    """
    Parallel links between client and server. Path i has the addresses 10.0.i.1 and 10.0.i.2, or
    fd00:0:0:i::1 and fd00:0:0:i::2.
    """
    police: NotRequired[PoliceSpec]
    """
    Drop packets that leave the link faster than a rate: `{ rate = "1Mbit", burst = "10kB" }`. In the
    kernel world not together with `duplicate`. Default `"none"`.
    """
    queue: NotRequired[QueueLimit]
    """
    Capacity of the queue, including the packet in transmission. Default 1000 packets.
    """
    rate: NotRequired[BitRate]
    """
    Bit rate; a packet occupies the link for its length divided by this rate. Default 100 Mbit/s.
    """
    reorder: NotRequired[Ratio]
    """
    Probability that a packet is delayed by `reorder_by`, so that later packets overtake it. Default 0.
    """
    reorder_by: NotRequired[Duration]
    """
    Additional delay of reordered packets; needs `reorder`. Default none.
    """
    rtt: NotRequired[Duration]
    """
    Round-trip propagation delay, instead of `delay`: half of it in each direction.
    """
    trace: NotRequired[TraceSpec]
    """
    A trace of the link, as a file whose path is relative to the experiment file: a table (CSV) with `time` and some of `rate`,
    `delay` and `loss`, or the times at which a packet may leave (mahimahi). One file per direction: `{ up = "a.csv", down =
    "b.csv" }`.
    """
    trace_start: NotRequired[TraceStart]
    """
    Position in the trace at which a run begins: a time since the beginning of the trace, or `"random"`, which each run draws
    from its seed, so that all transports of a repetition begin at the same position. Default the beginning.
    """
    up: NotRequired[Overrides]
    """
    Overrides for the direction from client to server.
    """


class Experiment(TypedDict, closed=True):
    """
    An experiment of headofline, for `hol run`.
    """

    background: NotRequired[list[Background]]
    """
    Flows of other applications, which compete with the measured one.
    """
    figure: NotRequired[list[Figure]]
    """
    Further figures of the report.
    """
    hosts: NotRequired[dict[str, HostSpec]]
    """
    Properties of nodes other than links, by name.
    """
    messages: NotRequired[int]
    """
    Number of messages of a point, over all its repetitions. Default 10,000; programs run once per repetition.
    """
    network: NotRequired[NetworkSpec]
    """
    The network between the endpoints. Default a link of 100 Mbit/s and 10 ms.
    """
    onward: NotRequired[list[Onward]]
    """
    Requests that a server sends to other servers before it replies.
    """
    precision: NotRequired[Ratio]
    """
    Repeat until the half width of the 95 % confidence interval of the mean is at most this share of the mean; needs a range of
    `repetitions`. Default: no requirement.
    """
    program: NotRequired[list[Program]]
    """
    Run unmodified programs on nodes. Kernel world only.
    """
    records: NotRequired[RecordsKept]
    """
    Keep the records of all messages as Parquet files. Default none.
    """
    repetitions: NotRequired[Repetitions]
    """
    Number of runs of a point, each with its own seed; `"5..40"`: as many as `precision` needs, within these limits. Default 10.
    """
    root: NotRequired[str]
    """
    Source of the programs and of the files that they need: `"host"`, a directory, or an archive of one (`.tar`). Default `host`.
    """
    seed: NotRequired[int]
    """
    Seed of all random numbers; the same seed gives the same run, except in the live world. Default 1.
    """
    series: NotRequired[Duration]
    """
    Sample each run at this interval into Parquet files: windows, round-trip times, queues. Default none.
    """
    sweep: NotRequired[Axes]
    """
    Axes: a list of values for each dotted key; every combination is a point.
    """
    timeline: NotRequired[Duration]
    """
    Count deliveries per interval of this length, for figures over time. Default none.
    """
    title: NotRequired[str]
    """
    Title of the report. Default: the file's name.
    """
    topology: NotRequired[str]
    """
    An ns script that defines the network. Its path is relative to this file.
    """
    transports: list[Transport]
    """
    The transports to compare.
    """
    workload: NotRequired[WorkloadSpec]
    """
    The workload: the application, its messages and their schedule. Default `simco`.
    """
    world: NotRequired[str]
    """
    World in which the runs take place: `"model"`, `"kernel"`, `"kernel:6.1"` for that version, `"kernel:uml"`, `"live"` over this
    machine's loopback, `"live:namespaces"` over a path of network namespaces, `"live:HOST"` between this host and another,
    `"live:server=HOST,cross=OTHER"` between several hosts by node, or `"live:HOST via ROUTER"` through a router. Default `model`.
    """
    zip: NotRequired[Axes]
    """
    Axes whose lists advance together: the n-th values form a point.
    """
