//! Enumerations whose members are numbers on the wire.

/// Defines an enumeration with its codes: `code()` for emitting, `from_code()` for parsing. The doc comment
/// of a member is also its description for users.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $meaning:literal])* $member:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $meaning])* $member = $code,)*
        }

        impl $name {
            /// Returns the number on the wire.
            pub const fn code(self) -> u8 {
                self as u8
            }
            /// Returns the member with this number on the wire; `None` if there is none.
            pub const fn from_code(code: u8) -> Option<Self> {
                match code {
                    $($code => Some(Self::$member),)*
                    _ => None,
                }
            }
            /// Returns the member's meaning in a few words.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$member => concat!($($meaning),*).trim().trim_end_matches('.'),)*
                }
            }
        }
    };
}
pub(crate) use codes;
