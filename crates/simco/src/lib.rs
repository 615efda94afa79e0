//! SIMCO, RFC 4540: messages
