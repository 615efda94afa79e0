//! The event queue: which component acts next, and when.

use hol_base::Time;

/// The time at which each component acts next. If several components act at the same time, the one with the lowest
/// index comes first, so that the order is reproducible.
///
/// The queue is a tournament tree: each pair of components has a winner, the one that acts earlier, and the
/// winners of neighbouring pairs form pairs again, up to the root. A change climbs only until the winner of a pair
/// stays the same, so that its cost rarely depends on the number of components. Unlike a heap, the tree changes an
/// entry in place. (`cargo bench -p hol-network` compares it with a scan and a binary heap.)
#[derive(Debug)]
pub struct EventQueue {
    /// The pairs of the tree. The winners of the pairs 2n and 2n + 1 form pair n; `pairs[1]` is the root. The pairs of
    /// components are in the second half.
    pairs: Vec<[Entry; 2]>,
}

/// The component of a part of the tree that acts next, and the time at which it acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    time: Time,
    component: u32,
}

/// Returns the winner of a pair. If both times are equal, it is the left entry, because all its components have
/// lower indices.
fn winner([left, right]: &[Entry; 2]) -> Entry {
    if left.time <= right.time { *left } else { *right }
}

impl EventQueue {
    /// Creates a queue for this number of components, all of which are idle.
    pub fn new(components: usize) -> Self {
        let places = components.next_power_of_two().max(2);
        let idle = |component: usize| Entry { time: Time::MAX, component: component as u32 };
        let mut pairs = vec![[idle(0); 2]; places];
        for component in 0..places {
            pairs[(places + component) / 2][component & 1] = idle(component);
        }
        for pair in (2..places).rev() {
            pairs[pair / 2][pair & 1] = winner(&pairs[pair]);
        }
        Self { pairs }
    }

    /// Grows the queue, if necessary, so that index `component` exists; new components are idle.
    pub fn make_room(&mut self, component: usize) {
        // The tree has as many pairs as slots for components, because two components share a pair of the last half.
        let places = self.pairs.len();
        if component < places {
            return;
        }
        let mut larger = Self::new(component + 1);
        for entry in self.pairs[places / 2..].as_flattened() {
            larger.set(entry.component as usize, entry.time);
        }
        *self = larger;
    }

    /// Sets the time at which `component` acts next; [`Time::MAX`] means never.
    #[inline]
    pub fn set(&mut self, component: usize, time: Time) {
        let mut entry = Entry { time, component: component as u32 };
        let mut place = self.pairs.len() + component;
        while place > 1 {
            let pair = &mut self.pairs[place / 2];
            if std::mem::replace(&mut pair[place & 1], entry) == entry {
                return;
            }
            entry = winner(pair);
            place /= 2;
        }
    }

    /// Returns the time of the next action, and the component that acts; the time is [`Time::MAX`] if no component
    /// acts.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let Entry { time, component } = winner(&self.pairs[1]);
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
            let mut agenda = EventQueue::new(components);
            assert_eq!(agenda.first().0, Time::MAX);
            for component in (0..components).rev() {
                agenda.set(component, Time::from_millis(5));
                assert_eq!(agenda.first(), (Time::from_millis(5), component), "{components} components");
            }
        }
    }

    #[test]
    fn growing_keeps_the_times_of_existing_components() {
        let mut agenda = EventQueue::new(1);
        for component in 0..40 {
            agenda.make_room(component);
            agenda.set(component, Time::from_nanos(100 - component as u64 / 2));
            assert_eq!(agenda.first(), (Time::from_nanos(100 - component as u64 / 2), component / 2 * 2));
        }
    }

    #[test]
    fn first_returns_the_earliest_component() {
        let mut rng = Seed(11).rng();
        for components in [1, 2, 5, 6, 33] {
            let mut agenda = EventQueue::new(components);
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
