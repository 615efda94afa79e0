//! Enumerations whose members are numbers on the wire.

/// Defines an enumeration whose members have codes: `code()` encodes a member, `from_code()` parses one. The doc
/// comment of a member is also its description for users.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $meaning:literal])* $member:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $meaning])* $member = $code,)*
        }

        impl $name {
            /// Returns the member's code in messages.
            pub const fn code(self) -> u8 {
                self as u8
            }
            /// Returns the member with this code; `None` if there is none.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$member),)*
                    _ => None,
                }
            }
            /// Returns the description of the member for users.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$member => concat!($($meaning),*).trim().trim_end_matches('.'),)*
                }
            }
        }
    };
}
pub(crate) use codes;
