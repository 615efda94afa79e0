//! Converts numbers that wrap to positions that do not wrap.

/// Converts wrapping sequence numbers to positions, counted from the first number. A number may have several positions;
/// the one nearest to the highest position so far is chosen. RFC 1982.
#[derive(Debug, Default)]
pub(crate) struct SequencePositions {
    /// The first number, whose position is 0; `None` before it is known.
    origin: Option<u32>,
    /// The highest position so far.
    furthest: u64,
}

impl SequencePositions {
    /// Sets the number at position 0, unless it is already known.
    pub fn set_origin(&mut self, origin: u32) {
        self.origin.get_or_insert(origin);
    }

    /// Returns the number at position 0; `None` before it is known.
    pub const fn origin(&self) -> Option<u32> {
        self.origin
    }

    /// Returns the position of a number; negative before position 0. The first number of all has position 0, unless
    /// [`Self::set_origin`] has set another one.
    pub fn position(&mut self, number: u32) -> i64 {
        let origin = *self.origin.get_or_insert(number);
        let furthest = origin.wrapping_add(self.furthest as u32);
        let place = self.furthest as i64 + i64::from(number.wrapping_sub(furthest) as i32);
        self.furthest = self.furthest.max(place.max(0) as u64);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 section 3.4: sequence numbers are modulo 2³².
    #[test]
    fn numbers_wrap_and_positions_do_not() {
        let mut places = SequencePositions::default();
        places.set_origin(u32::MAX - 1);
        assert_eq!([u32::MAX - 1, 1, u32::MAX, u32::MAX - 3].map(|n| places.position(n)), [0, 3, 1, -2]);
        let turns: Vec<_> = (0..10).map(|turn| places.position((turn as u32) << 30)).collect();
        let expected: Vec<_> = (0..10).map(|turn| (turn << 30) + 2).collect();
        assert_eq!(turns, expected);
    }
}
