//! Parses arbitrary text as the policy of a middlebox, and as its file of secrets.
#![no_main]

use hol_simco::{Policy, SharedSecrets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(policy) = Policy::parse(text)
        && let Some(anonymous) = policy.anonymous()
    {
        assert!(policy.may_access(anonymous, anonymous));
    }
    if let Err(error) = SharedSecrets::parse(text, Box::new(|| [0; 32])) {
        assert!(!error.to_string().is_empty());
    }
});
