//! Serial numbers (RFC 1982). They wrap around, so they have no total order, only before and after.

/// Defines a serial number type with wrapping addition, `before`, `after` and `distance_from`, but without
/// `Ord`.
///
/// Circular order is not transitive, so sorted containers would be wrong.
#[macro_export]
macro_rules! serial_number {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub $raw);

        impl $name {
            /// Returns whether this number is earlier than `other`, in the direction in which the circle of
            /// numbers is shorter.
            pub const fn before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }
            /// Returns whether this number is later than `other`.
            pub const fn after(self, other: Self) -> bool {
                other.before(self)
            }
            /// Returns whether this number is not later than `other`.
            pub const fn at_or_before(self, other: Self) -> bool {
                !other.before(self)
            }
            /// Returns whether this number is not earlier than `other`.
            pub const fn at_or_after(self, other: Self) -> bool {
                !self.before(other)
            }
            /// Returns the number of steps from `earlier` forward to this number, around the circle.
            pub const fn distance_from(self, earlier: Self) -> $raw {
                self.0.wrapping_sub(earlier.0)
            }
            /// Returns the later of this number and `other`.
            pub const fn latest(self, other: Self) -> Self {
                if self.before(other) { other } else { self }
            }
            /// Returns the number that follows this one.
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }
        }
        impl ::std::ops::Add<$raw> for $name {
            type Output = Self;
            fn add(self, steps: $raw) -> Self {
                Self(self.0.wrapping_add(steps))
            }
        }
        impl ::std::ops::AddAssign<$raw> for $name {
            fn add_assign(&mut self, steps: $raw) {
                *self = *self + steps;
            }
        }
        impl ::std::ops::Sub<$raw> for $name {
            type Output = Self;
            fn sub(self, steps: $raw) -> Self {
                Self(self.0.wrapping_sub(steps))
            }
        }
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

#[cfg(test)]
mod tests {
    serial_number!(
        /// A serial number for the tests.
        Number, u32, i32
    );

    #[test]
    fn serial_numbers_are_compared_across_the_wrap() {
        assert!(Number(u32::MAX).before(Number(0)));
        assert!(Number(0).after(Number(u32::MAX)));
        assert!(!Number(5).before(Number(5)) && Number(5).at_or_before(Number(5)));
        assert_eq!(Number(2).distance_from(Number(u32::MAX)), 3);
        assert_eq!((Number(u32::MAX) + 3).0, 2);
        assert_eq!(Number(u32::MAX).latest(Number(1)), Number(1));
        assert!(Number(0).at_or_after(Number(u32::MAX)));
        assert_eq!(Number(u32::MAX).next(), Number(0));
    }
}
