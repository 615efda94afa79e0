//! A TCP connection or SCTP association as it passes the place of a capture.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::course::Course;
use super::sight::{Numbered, Opening};

/// One conversation; side 0 opened it, or was heard first. Times are in ns.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub sides: [(IpAddr, u16); 2],
    /// What each side sends.
    pub courses: [Course; 2],
    /// When it was asked for, agreed to, and when the opener went on.
    opening: [Option<u64>; 3],
    /// Whether the first two were repeated.
    is_repeated: [bool; 2],
    /// When each side's clock was first seen at a value.
    clocks: [BTreeMap<u32, u64>; 2],
    /// The shortest time to the echo of each side's clock.
    echoes: [Option<u64>; 2],
    /// The longest segment that both take, in octets of payload.
    pub mss: Option<u16>,
    /// The opening has been seen.
    pub is_whole: bool,
}

/// Clocks whose echo has not come are forgotten beyond so many values.
const CLOCKS: usize = 4096;

impl Conversation {
    pub fn new(sides: [(IpAddr, u16); 2]) -> Self {
        Self {
            sides,
            courses: Default::default(),
            opening: [None; 3],
            is_repeated: [false; 2],
            clocks: Default::default(),
            echoes: [None; 2],
            mss: None,
            is_whole: false,
        }
    }

    /// Whether another one begins between the same sockets: this one has been used.
    pub fn is_over(&self, says: &Numbered) -> bool {
        says.opening == Some(Opening::Asks) && self.courses.iter().any(|course| !course.arrived.is_empty())
    }

    /// A packet of `octets` octets passes that this side sent.
    pub fn pass(&mut self, at: u64, side: usize, octets: u32, says: &Numbered) {
        self.open(at, side, says);
        let delay = says.timestamps.and_then(|(value, echo)| self.read_clock(at, side, value, echo));
        // Who was asked for the conversation is who answers in it.
        self.courses[1 - side].acknowledge(at, says, side == 1);
        match (&says.data[..], self.mss.map(u32::from)) {
            ([], _) => {}
            // What the network card cuts into segments later is on the path as many packets.
            (&[(first, count)], Some(mss)) if !says.is_sctp && mss > 0 && count > mss => {
                for part in (0..count).step_by(mss as usize) {
                    let length = mss.min(count - part);
                    let data = [(first.wrapping_add(part), length)];
                    self.courses[side].pass(at, &data, octets - count + length, delay.filter(|_| part == 0));
                }
            }
            (data, _) => self.courses[side].pass(at, data, octets, delay),
        }
    }

    fn open(&mut self, at: u64, side: usize, says: &Numbered) {
        if let Some(first) = says.first {
            self.courses[side].begin(first);
        }
        self.mss = says.mss.map(|mss| self.mss.map_or(mss, |other| other.min(mss))).or(self.mss);
        match says.opening {
            Some(Opening::Asks) => {
                self.is_repeated[0] |= self.opening[0].is_some();
                (self.opening[0], self.is_whole) = (Some(at), true);
            }
            Some(Opening::Agrees) => {
                self.is_repeated[1] |= self.opening[1].is_some();
                self.opening[1] = Some(at);
            }
            None if side == 0 && self.opening[1].is_some() => {
                self.opening[2].get_or_insert(at);
            }
            None => {}
        }
    }

    /// Notes a side's clock, and tells how long the echo of the other's took. RFC 7323 section 4.
    fn read_clock(&mut self, at: u64, side: usize, value: u32, echo: u32) -> Option<u64> {
        let own = &mut self.clocks[side];
        own.entry(value).or_insert(at);
        if own.len() > CLOCKS {
            own.pop_first();
        }
        let others = &mut self.clocks[1 - side];
        let delay = at.saturating_sub(others.remove(&echo)?);
        // What was not echoed before will not be: the receiver echoes the latest.
        *others = others.split_off(&echo);
        let shortest = &mut self.echoes[1 - side];
        *shortest = [*shortest, Some(delay)].into_iter().flatten().min();
        Some(delay)
    }

    /// The shortest time from when a side's packet passes until the answer of the other side does.
    pub fn half(&self, side: usize) -> Option<u64> {
        [self.handshake(side), self.courses[side].shortest, self.echoes[side]].into_iter().flatten().min()
    }

    /// The same of the handshake alone. RFC 6298 section 3: not if what was answered, or the answer, was repeated.
    pub fn handshake(&self, side: usize) -> Option<u64> {
        let between = self.opening[side + 1]?.checked_sub(self.opening[side]?)?;
        (!self.is_repeated[side..].contains(&true)).then_some(between)
    }
}
