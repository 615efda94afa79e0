//! A channel shared by several links, like stations on a radio channel or both directions of an old Ethernet.
//! Only one of these links transmits at a time. Waiting links take turns; there are no collisions.

use std::collections::BTreeMap;

use hol_base::Time;

use crate::link::Link;
use crate::observer::TapReporter;
use crate::spec::Settings;
use crate::topology::LinkDirectionSettings;

/// The links that share a channel, only one of which can transmit at a time, and the link that transmitted last.
#[derive(Debug)]
pub(crate) struct Channel {
    /// Indices of the links, in ascending order.
    pub(crate) members: Vec<usize>,
    /// Index into `members` of the link that transmitted last.
    last_member: usize,
}

impl Channel {
    /// Returns the channels that the settings of `links` name.
    pub(crate) fn from_links(links: &[LinkDirectionSettings]) -> Vec<Self> {
        let mut channels = BTreeMap::<&str, Vec<usize>>::new();
        for (place, link) in
            links.iter().enumerate().filter(|(_, link)| link.settings.channel != Settings::OWN_CHANNEL)
        {
            channels.entry(&link.settings.channel).or_default().push(place);
        }
        channels.into_values().map(|members| Self { last_member: members.len() - 1, members }).collect()
    }

    /// Starts the transmissions that are due. The links take turns.
    pub(crate) fn advance(&mut self, now: Time, links: &mut [Link], observer: &mut TapReporter<'_>) {
        while let Some(next) = self.next_sender(now, links) {
            self.last_member = next;
            links[self.members[next]].start_next(observer);
            self.occupy(self.members[next], links);
        }
    }

    /// Prevents the other links of the channel from transmitting while `sender` transmits.
    pub(crate) fn occupy(&self, sender: usize, links: &mut [Link]) {
        // A link with the rate 0 leaves the channel to the others.
        let Some(until) = links[sender].occupied_until() else { return };
        for member in &self.members {
            links[*member].block_until(until);
        }
    }

    /// Adjusts how long the other links of the channel are blocked, because the transmission of `sender`, which was to end
    /// at `due`, now ends at another time.
    pub(crate) fn adjust_blocked(&self, sender: usize, due: Time, links: &mut [Link]) {
        let until = links[sender].sends_until(Time::ZERO).unwrap_or(due);
        for member in &self.members {
            if links[*member].blocked_until() == due {
                links[*member].block_until(until);
            }
        }
    }

    /// Returns the index of the link that transmits next; `None` if no link both has a packet and may transmit.
    fn next_sender(&self, now: Time, links: &[Link]) -> Option<usize> {
        let mut after = (1..=self.members.len()).map(|step| (self.last_member + step) % self.members.len());
        after.find(|place| links[self.members[*place]].is_due(now))
    }
}
