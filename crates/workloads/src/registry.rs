//! Every workload that there is. A new one is a line here, and a file or folder of its own.

use serde::{Deserialize, Serialize};

use crate::{Bulk, Echo, Oneway, Pingpong, Simco, Workload};

macro_rules! registry {
    ($($workload:ident),* $(,)?) => {
        /// A workload with its keys; which one it is, the key `kind` says.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        pub enum Kind {
            $(#[doc = concat!("See [`", stringify!($workload), "`].")] $workload($workload),)*
        }

        impl Kind {
            /// Each of them with every key left out.
            pub fn all() -> Vec<Self> {
                vec![$(Self::$workload($workload::default())),*]
            }

            /// Whichever it is.
            pub fn workload(&self) -> &dyn Workload {
                match self { $(Self::$workload(workload) => workload,)* }
            }

            /// The same, to be changed.
            pub fn workload_mut(&mut self) -> &mut dyn Workload {
                match self { $(Self::$workload(workload) => workload,)* }
            }
        }

        $(impl From<$workload> for Kind {
            fn from(workload: $workload) -> Self {
                Self::$workload(workload)
            }
        })*
    };
}

registry! {
    Simco,
    Echo,
    Pingpong,
    Oneway,
    Bulk,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_written_by_its_name() {
        for kind in Kind::all() {
            let json = serde_json::to_value(&kind).expect("it is plain data");
            assert_eq!(json["kind"], kind.workload().name());
        }
    }
}
