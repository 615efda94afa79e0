//! Enumerations whose members are numbers on the wire.

/// Defines an enumeration with its codes: `code()` for emitting, `from_code()` for parsing.
macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$member_doc:meta])* $member:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$member_doc])* $member = $code,)*
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
        }
    };
}
pub(crate) use codes;
