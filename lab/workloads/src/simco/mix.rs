//! The mix of requests of the `simco` workload.

use std::fmt;

use hol_base::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Weights of the kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "weights such as { enable = 2, lifetime = 1, delete = 1 }")]
pub struct RequestMix {
    /// Weight of enabling a rule (PER).
    pub enable: u32,
    /// Weight of extending a rule (PLC).
    #[serde(default)]
    pub lifetime: u32,
    /// Weight of deleting a rule (PLC with a lifetime of zero).
    #[serde(default)]
    pub delete: u32,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestPurpose {
    Enable,
    Lifetime,
    Delete,
}

impl Default for RequestMix {
    fn default() -> Self {
        Self::ENABLE_ONLY
    }
}

impl RequestMix {
    /// A mix of requests that only enable rules.
    pub(crate) const ENABLE_ONLY: Self = Self { enable: 1, lifetime: 0, delete: 0 };

    /// Returns whether the mix only enables rules, and leaves them to expire.
    pub const fn only_enables(&self) -> bool {
        self.lifetime == 0 && self.delete == 0
    }

    /// Returns whether the mix enables at least as many rules as it deletes.
    pub(crate) const fn is_sustainable(&self) -> bool {
        self.enable > 0 && self.delete <= self.enable
    }

    /// Draws the purpose of the next request.
    pub(crate) fn draw(&self, rng: &mut Rng) -> RequestPurpose {
        let [enable, lifetime, delete] = [self.enable, self.lifetime, self.delete].map(u64::from);
        let drawn = rng.below(enable + lifetime + delete);
        if drawn < enable {
            RequestPurpose::Enable
        } else if drawn < enable + lifetime {
            RequestPurpose::Lifetime
        } else {
            RequestPurpose::Delete
        }
    }
}

impl fmt::Display for RequestMix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { enable, lifetime, delete } = self;
        write!(f, "enable={enable},lifetime={lifetime},delete={delete}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;

    #[test]
    fn requests_are_drawn_by_their_weights() {
        let (mix, mut rng) = (RequestMix { enable: 3, lifetime: 2, delete: 1 }, Seed(4).rng());
        let drawn: Vec<RequestPurpose> = (0..60_000).map(|_| mix.draw(&mut rng)).collect();
        let share = |purpose| drawn.iter().filter(|drawn| **drawn == purpose).count() as f64 / 10_000.0;
        for (purpose, expected) in
            [(RequestPurpose::Enable, 3.0), (RequestPurpose::Lifetime, 2.0), (RequestPurpose::Delete, 1.0)]
        {
            assert!((share(purpose) - expected).abs() < 0.05, "{purpose:?}: {}", share(purpose));
        }
    }
}
