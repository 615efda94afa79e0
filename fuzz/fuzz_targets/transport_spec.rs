//! Parses arbitrary text as a transport. A parsed transport must survive printing and parsing again.
#![no_main]

use hol_stack::TransportSpec;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(spec) = text.parse::<TransportSpec>() {
        assert_eq!(spec.to_string().parse::<TransportSpec>().as_ref(), Ok(&spec));
    }
});
