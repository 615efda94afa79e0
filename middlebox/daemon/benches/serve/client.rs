//! A minimal agent, whose own cost is small.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use hol_base::{Duration, Time};
use hol_simco::{
    AddressTuple, Body, Direction, Enable, Header, Lifetime, Location, Message, PerParameters, Pid,
    PortParity, Reply, Request, Tid, Version,
};
use rustix::time::{ClockId, clock_gettime};

const UDP: u8 = 17;

/// An agent with an open session.
pub struct Client {
    socket: TcpStream,
    received: Vec<u8>,
    to_send: Vec<u8>,
    port: u16,
    /// Number of the internal host for the next rule, once all ports of the current host are used.
    host: u16,
}

/// Durations of transactions in nanoseconds.
pub struct Times(Vec<u64>);

pub fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).expect("the daemon listens");
        socket.set_nodelay(true).expect("TCP");
        let mut client = Self { socket, received: Vec::new(), to_send: Vec::new(), port: 0, host: 5 };
        client.queue(Request::Se { version: Version::SIMCO_3_0, challenge: None });
        client.exchange(&mut |_, reply| assert!(matches!(reply, Reply::Se { .. })));
        client
    }

    /// Performs life cycles of rules, `at_a_time` in parallel: enable, change of lifetime, delete.
    pub fn run_life_cycles(&mut self, at_a_time: u32, transactions: usize) {
        let mut asked = 0;
        let mut answered = 0;
        (0..at_a_time).for_each(|_| self.enable_another(&mut asked));
        while answered < asked {
            self.exchange(&mut |client, reply| {
                answered += 1;
                let goes_on = asked < transactions;
                match reply {
                    Reply::Per(rule) => {
                        client.queue(Request::Plc { pid: rule.pid, lifetime: Lifetime(90) });
                        client.queue(Request::Plc { pid: rule.pid, lifetime: Lifetime(0) });
                        asked += 2;
                    }
                    Reply::Prd if goes_on => client.enable_another(&mut asked),
                    _ => {}
                }
            });
        }
    }

    /// Enables this many rules that stay in force.
    pub fn enable(&mut self, at_a_time: u32, rules: usize) {
        let (mut asked, mut answered) = (0, 0);
        (0..at_a_time).for_each(|_| self.enable_another(&mut asked));
        while answered < asked {
            self.exchange(&mut |client, reply| {
                assert!(matches!(reply, Reply::Per(_)));
                answered += 1;
                if asked < rules {
                    client.enable_another(&mut asked);
                }
            });
        }
    }

    /// Measures the transactions enable, change, status and delete, one after the other, with this clock.
    pub fn measure_transactions(&mut self, transactions: usize, clock: &dyn Fn() -> Time) -> Times {
        let mut times = Vec::with_capacity(transactions);
        let mut pid = Pid(0);
        for step in 0..transactions {
            let start = clock();
            match step % 4 {
                0 => self.enable_another(&mut 0),
                1 => self.queue(Request::Plc { pid, lifetime: Lifetime(90) }),
                2 => self.queue(Request::Prs { pid }),
                _ => self.queue(Request::Plc { pid, lifetime: Lifetime(0) }),
            }
            self.exchange(&mut |_, reply| {
                if let Reply::Per(rule) = reply {
                    pid = rule.pid;
                }
            });
            times.push(clock().since(start).as_nanos());
        }
        times.sort_unstable();
        Times(times)
    }

    /// Measures the response time of one PDR (policy disable rule).
    pub fn time_to_block(&mut self) -> Duration {
        let at =
            |location, address: [u8; 4]| AddressTuple::of_host(location, UDP, SocketAddr::from((address, 0)));
        let start = now();
        self.queue(Request::Pdr {
            internal: at(Location::Internal, [10, 9, 9, 9]),
            external: at(Location::External, [203, 0, 113, 9]),
            lifetime: Lifetime(60),
        });
        self.exchange(&mut |_, reply| assert!(matches!(reply, Reply::Pdr { .. })));
        now().since(start)
    }

    fn enable_another(&mut self, asked: &mut usize) {
        self.port = self.port.wrapping_add(2);
        self.host += u16::from(self.port == 0);
        let [third, fourth] = self.host.to_be_bytes();
        let at = |address: [u8; 4], port| SocketAddr::from((address, port));
        let enable = Enable {
            parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
            internal: AddressTuple::of_host(
                Location::Internal,
                UDP,
                at([10, 0, third, fourth], self.port.max(1)),
            ),
            external: AddressTuple::of_host(Location::External, UDP, at([198, 51, 100, 7], 6000)),
            lifetime: Lifetime(3600),
        };
        self.queue(Request::Per { enable, gid: None });
        *asked += 1;
    }

    fn queue(&mut self, request: Request) {
        Message::request(Tid(1), request).append_to(&mut self.to_send);
    }

    /// Sends the queued requests, and handles the replies that have arrived; waits until at least one arrives.
    fn exchange(&mut self, receive: &mut dyn FnMut(&mut Self, Reply)) {
        self.socket.write_all(&self.to_send).expect("the daemon reads requests");
        self.to_send.clear();
        let mut piece = [0; 1 << 16];
        let count = self.socket.read(&mut piece).expect("the daemon answers");
        assert!(count > 0, "the daemon has closed the connection");
        let mut received = std::mem::take(&mut self.received);
        received.extend(&piece[..count]);
        let mut rest = &received[..];
        while let Some(length) = Header::parse(rest).map(|header| header.message_length())
            && length <= rest.len()
        {
            match Message::parse(&rest[..length]).expect("a message").body {
                Body::Reply(reply) => receive(self, reply),
                other => panic!("no positive reply: {other:?}"),
            }
            rest = &rest[length..];
        }
        let taken = received.len() - rest.len();
        received.drain(..taken);
        self.received = received;
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize] as f64 / 1e3;
        let (median, slowest) = (at(0.5), at(1.0));
        write!(
            f,
            "median {median:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, slowest {slowest:.0} µs ({:.0} × the median)",
            at(0.99),
            at(0.999),
            slowest / median
        )
    }
}
