//! The list of all workloads. A new workload is a line here, and its own file or folder.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Bulk, Echo, Files, Load, Media, Oneway, Page, Pingpong, Programs, Replay, Rpc, Simco, Workload};

macro_rules! registry {
    ($($workload:ident),* $(,)?) => {
        /// A workload with its settings; the key `kind` selects the workload.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        pub enum WorkloadKind {
            $(#[doc = concat!("See [`", stringify!($workload), "`].")] $workload($workload),)*
        }

        impl WorkloadKind {
            /// Returns each workload once, without any keys.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$workload($workload::default())),*]
            }

            /// Returns the settings of the workload.
            pub fn workload(&self) -> &dyn Workload {
                match self { $(Self::$workload(workload) => workload,)* }
            }

            /// Returns the settings of the workload, mutable.
            pub fn workload_mut(&mut self) -> &mut dyn Workload {
                match self { $(Self::$workload(workload) => workload,)* }
            }
        }

        $(impl From<$workload> for WorkloadKind {
            fn from(workload: $workload) -> Self {
                Self::$workload(workload)
            }
        })*
    };
}

/// The keys that every workload has in addition to `kind`.
const COMMON_KEYS: [&str; 6] = ["from", "to", "start", "spread", "connect_timeout", "listens"];

impl WorkloadKind {
    /// Returns all keys that are valid for this kind of workload.
    pub fn keys(&self) -> Vec<&'static str> {
        let load = if self.workload().load().is_some() { Load::KEYS.as_slice() } else { &[] };
        [self.workload().own_keys(), load, &COMMON_KEYS].concat()
    }
}

registry! {
    Rpc,
    Simco,
    Echo,
    Pingpong,
    Oneway,
    Bulk,
    Page,
    Media,
    Files,
    Replay,
    Programs,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workload_is_serialized_with_its_kind() {
        for kind in WorkloadKind::all() {
            let json = serde_json::to_value(&kind).expect("it is plain data");
            assert_eq!(json["kind"], kind.workload().name());
        }
    }

    #[test]
    fn listed_keys_are_exactly_the_known_keys() {
        for kind in WorkloadKind::all() {
            let refused = |key: &str| {
                let json = format!("{{\"kind\":\"{}\",\"{key}\":[[]]}}", kind.workload().name());
                let problem = serde_json::from_str::<crate::WorkloadSpec>(&json).unwrap_err().to_string();
                problem.contains("unknown field")
            };
            assert!(kind.keys().into_iter().all(|key| !refused(key)), "{:?}", kind.keys());
            assert!(["rat", "sise", "mux"].into_iter().all(refused));
        }
    }
}
