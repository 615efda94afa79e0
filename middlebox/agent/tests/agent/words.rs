//! Random texts as ends of flows.

use hol_agent::{FlowEnd, Server, tuples};
use proptest::prelude::*;

proptest! {
    /// The texts consist of the characters of flow ends, so that many are valid.
    #[test]
    fn an_end_of_a_flow_is_shown_as_it_can_be_written(
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
    fn whatever_is_written_is_an_end_or_a_server_or_an_error(text in r".{0,40}|[\[\]:.0-9a-z]{0,20}") {
        if let Err(error) = text.parse::<FlowEnd>() {
            prop_assert!(error.to_string().contains(&text));
        }
        match text.parse::<Server>() {
            Ok(server) => prop_assert!(!server.host.is_empty() && server.port != 0),
            Err(error) => prop_assert!(error.to_string().contains(&text)),
        }
    }
}
