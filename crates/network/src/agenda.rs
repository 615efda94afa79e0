//! The order of events: when does each component act next?

use hol_base::Time;

/// One entry for each component: the time at which it acts next. Ties go to the lower index, so the order of
/// events is total and the same everywhere.
///
/// A tournament tree: each inner node is the earlier of its two children, which lie side by side in memory. The
/// earliest of all is the root; a change climbs until a node stays what it was, so one that concerns nobody else costs
/// the same however many components there are. And unlike a heap it changes an entry in place. (`cargo bench -p
/// hol-network` measures it beside a scan and a binary heap.)
#[derive(Debug)]
pub struct Agenda {
    /// `nodes[1]` is the root; the children of node n are 2n and 2n + 1; the second half are the components.
    nodes: Vec<Entry>,
}

/// Who acts next in a part of the tree, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    time: Time,
    component: u32,
}

impl Agenda {
    /// An agenda on which none of `components` has anything to do.
    pub fn new(components: usize) -> Self {
        let leaves = components.next_power_of_two();
        let leaf = |component| Entry { time: Time::MAX, component };
        let mut nodes = vec![leaf(0); leaves];
        nodes.extend((0..leaves as u32).map(leaf));
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Self { nodes }
    }

    /// `component` acts next at `time`; [`Time::MAX`] means never.
    #[inline]
    pub fn set(&mut self, component: usize, time: Time) {
        let mut node = component + self.nodes.len() / 2;
        self.nodes[node].time = time;
        while node > 1 {
            // The left child wins a tie: all its components have lower indices.
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            let winner = if left.time <= right.time { left } else { right };
            node /= 2;
            if std::mem::replace(&mut self.nodes[node], winner) == winner {
                return;
            }
        }
    }

    /// The component that acts next, and when; [`Time::MAX`] if none has anything to do.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let Entry { time, component } = self.nodes[1];
        (time, component as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn ties_go_to_the_lower_index() {
        for components in [1, 2, 3, 7, 8, 50] {
            let mut agenda = Agenda::new(components);
            assert_eq!(agenda.first().0, Time::MAX);
            for component in (0..components).rev() {
                agenda.set(component, Time::from_millis(5));
                assert_eq!(agenda.first(), (Time::from_millis(5), component), "{components} components");
            }
        }
    }

    #[test]
    fn the_first_is_always_the_earliest() {
        let mut rng = Seed(11).rng();
        for components in [1, 2, 5, 6, 33] {
            let mut agenda = Agenda::new(components);
            let mut times = vec![Time::MAX; components];
            for _ in 0..2000 {
                let component = rng.below(components as u64) as usize;
                let time = if rng.chance(0.2) { Time::MAX } else { Time::from_nanos(rng.below(20)) };
                times[component] = time;
                agenda.set(component, time);
                let expected = times.iter().enumerate().min_by_key(|(index, time)| (**time, *index)).unwrap();
                assert_eq!(agenda.first().0, *expected.1);
                assert!(*expected.1 == Time::MAX || agenda.first().1 == expected.0);
            }
        }
    }
}
