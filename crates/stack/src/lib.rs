//! Named sets of endpoint behaviour, and transport specifications such as sctp:streams=8
