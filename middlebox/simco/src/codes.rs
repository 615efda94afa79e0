//! Enumerations whose members are numbers on the wire.

/// Defines an enumeration with its codes: `code()` for emitting, `from_code()` for parsing. What documents a member is
/// what people are told of it.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $meaning:literal])* $member:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $meaning])* $member = $code,)*
        }

        impl $name {
            /// The number on the wire.
            pub const fn code(self) -> u8 {
                self as u8
            }
            /// The member with this number on the wire.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$member),)*
                    _ => None,
                }
            }
            /// What it means, in a few words.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$member => concat!($($meaning),*).trim().trim_end_matches('.'),)*
                }
            }
        }
    };
}
pub(crate) use codes;
