//! Parses random texts as ends of flows.

use hol_agent::{FlowEnd, Server, tuples};
use proptest::prelude::*;

proptest! {
    /// The texts consist of the characters of flow ends, so that many are valid.
    #[test]
    fn printed_flow_ends_parse_to_the_same_value(
        text in r"\[?(any|\*|[0-9a-f.:]{1,20}|10\.0\.0\.[0-9]{1,3}|2001:db8::[0-9a-f]{0,4})(/[0-9]{1,3})?\]?(:([0-9]{1,5}([-+][0-9]{1,5})?|any|\*))?"
    ) {
        match text.parse::<FlowEnd>() {
            Ok(end) => {
                let both = tuples(&end, &end, 17);
                let shown = FlowEnd::from_tuple(&both.0).to_string();
                let again: FlowEnd = shown.parse().unwrap();
                prop_assert_eq!(tuples(&again, &again, 17), both, "{}", shown);
            }
            Err(error) => prop_assert!(error.to_string().contains(&text)),
        }
    }

    #[test]
    fn arbitrary_text_is_parsed_or_an_error(text in r".{0,40}|[\[\]:.0-9a-z]{0,20}") {
        if let Err(error) = text.parse::<FlowEnd>() {
            prop_assert!(error.to_string().contains(&text));
        }
        match text.parse::<Server>() {
            Ok(server) => prop_assert!(!server.host.is_empty() && server.port != Some(0)),
            Err(error) => prop_assert!(error.to_string().contains(&text)),
        }
    }
}
