//! A channel that several lines share, as stations on a radio or both directions of an old Ethernet do: one packet at a time
//! over all of them. Who waits takes turns; nobody collides.

use std::collections::BTreeMap;

use hol_base::Time;

use crate::line::Line;
use crate::observer::Observer;
use crate::spec::Settings;
use crate::topology::LinePlan;

/// The lines of a channel, and whose turn it was last.
#[derive(Debug)]
pub(crate) struct Channel {
    /// By their places in the network, ascending.
    pub(crate) members: Vec<usize>,
    /// The place among the members.
    last: usize,
}

impl Channel {
    /// The channels that `lines` name.
    pub(crate) fn all(lines: &[LinePlan]) -> Vec<Self> {
        let mut channels = BTreeMap::<&str, Vec<usize>>::new();
        for (place, line) in
            lines.iter().enumerate().filter(|(_, line)| line.settings.channel != Settings::OWN_CHANNEL)
        {
            channels.entry(&line.settings.channel).or_default().push(place);
        }
        channels.into_values().map(|members| Self { last: members.len() - 1, members }).collect()
    }

    /// Starts the transmissions that are due, each line's in its turn.
    pub(crate) fn advance(&mut self, now: Time, lines: &mut [Line], observer: &mut Observer<'_>) {
        while let Some(next) = self.next(now, lines) {
            self.last = next;
            lines[self.members[next]].start_next(observer);
            self.occupy(self.members[next], lines);
        }
    }

    /// Keeps the others from transmitting as long as `sender` does.
    pub(crate) fn occupy(&self, sender: usize, lines: &mut [Line]) {
        let until = lines[sender].free_at();
        for member in &self.members {
            lines[*member].keep_silent(until);
        }
    }

    /// The transmission of `sender` that was to end at `due` ends when it does now.
    pub(crate) fn moved(&self, sender: usize, due: Time, lines: &mut [Line]) {
        let until = lines[sender].sends_until(Time::ZERO).unwrap_or(due);
        for member in &self.members {
            if lines[*member].silent_until() == due {
                lines[*member].keep_silent(until);
            }
        }
    }

    /// Whose turn it is, by the place among the members, if one of them waits and may transmit.
    fn next(&self, now: Time, lines: &[Line]) -> Option<usize> {
        let mut after = (1..=self.members.len()).map(|step| (self.last + step) % self.members.len());
        after.find(|place| lines[self.members[*place]].is_due(now))
    }
}
