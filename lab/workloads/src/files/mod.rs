//! `files`: a client puts files on a server, gets them back and removes them, one request at a time, as over SMB.

mod content;
mod frame;
mod script;
mod store;

use hol_base::{ByteCount, Seed};
use hol_measure::RecordKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::batches::Batch;
use crate::load::Pacer;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::{Application, FramingFn, Host, Pace, StreamLayout, Workload, WorkloadError};
use script::FileClient;
use store::FileServer;

/// Settings of the workload `files`: the keys of `[workload] kind = "files"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Files per batch; `messages` counts batches. Default 100.
    pub files: u32,
    /// Octets per file. Default 100.
    pub size: ByteCount,
    /// Octets of a file per request or reply, with one request in flight at a time. Default 16573, as in smbclient 3.0.
    pub block: ByteCount,
    /// Operations on each file, in order. Default: all three.
    #[serde(alias = "deeds")]
    pub operations: Vec<FileOperation>,
}

/// An operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileOperation {
    /// Create the file, write it block by block, and store it. The last reply contains the digest of the stored file.
    Put,
    /// Open the file, read it block by block, and close it.
    Get,
    /// Remove the file.
    Remove,
}

impl Default for Files {
    fn default() -> Self {
        let operations = vec![FileOperation::Put, FileOperation::Get, FileOperation::Remove];
        Self { files: 100, size: ByteCount(100), block: ByteCount(16_573), operations }
    }
}

impl FileOperation {
    const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Remove => "remove",
        }
    }
}

impl Files {
    /// Maximum number of octets that a server stores, because both ends of the kernel world share one machine's memory.
    const MAX_STORED: u64 = 256 << 20;
    /// Maximum number of requests per batch, because all records of a batch stay in memory until the batch ends.
    const MAX_REQUESTS: u64 = 1 << 20;

    fn block_count(&self) -> u64 {
        self.size.0.div_ceil(self.block.0)
    }

    /// Returns the number of requests per batch.
    fn request_count(&self) -> u64 {
        let of_one = |operation: &FileOperation| match operation {
            FileOperation::Put | FileOperation::Get => 2 + self.block_count(),
            FileOperation::Remove => 1,
        };
        u64::from(self.files).saturating_mul(self.operations.iter().map(of_one).sum())
    }

    /// Returns the maximum number of files that the server stores at the same time; `None` if an operation reads or
    /// removes a file that does not exist.
    fn max_stored_files(&self) -> Option<u64> {
        let mut is_there = false;
        for operation in &self.operations {
            if !is_there && *operation != FileOperation::Put {
                return None;
            }
            is_there = *operation != FileOperation::Remove;
        }
        Some(if is_there { self.files.into() } else { 1 })
    }
}

impl Workload for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn about(&self) -> &'static str {
        "a client puts, gets and removes files, one request at a time as over SMB; their content is checked"
    }

    fn own_keys(&self) -> &'static [&'static str] {
        &["files", "size", "block", "operations"]
    }

    fn check_own(&self) -> Result<(), WorkloadError> {
        let files = |problem| Err(WorkloadError::Files(problem));
        if self.files == 0 || self.operations.is_empty() {
            return files("`files` is 0 or `operations` is empty; set at least one of each");
        }
        let Some(kept) = self.max_stored_files() else {
            return files("`operations` gets or removes a file before it exists; begin with \"put\"");
        };
        if self.block.0 == 0 || self.block.0 > WorkloadError::MAX_SIZE - frame::HEADER_OCTETS as u64 {
            return files("`block` must be at least 1 octet and less than 16 MiB");
        }
        if self.size.0.saturating_mul(kept) > Self::MAX_STORED {
            return files(
                "the files would exceed the server's 256 MiB; lower `size`, or add \"remove\" to `operations`",
            );
        }
        if self.request_count() > Self::MAX_REQUESTS {
            return files(
                "a batch would have more than 1048576 requests; raise `block`, or lower `files` and raise `messages`",
            );
        }
        Ok(())
    }

    fn pace(&self) -> Pace {
        Pace::Replied
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn record_kind(&self) -> RecordKind {
        RecordKind::Batch
    }

    fn framing_fn(&self) -> FramingFn {
        frame::length_of
    }

    fn client(&self, lanes: StreamLayout, messages: u64, _: Seed) -> Box<dyn Application> {
        let octets = self.size.0.saturating_mul(self.files.into());
        let batch =
            Batch { messages: self.request_count(), octets: u32::try_from(octets).unwrap_or(u32::MAX) };
        let requests = messages.saturating_mul(batch.messages);
        let pacer = Pacer::untimed(Pace::Replied, requests);
        Box::new(Sender::new(FileClient::new(self.clone(), batch), lanes, pacer, requests, None))
    }

    fn server(&self, _: StreamLayout, messages: u64, _: Host) -> Box<dyn Application> {
        // One record per request, and one for the batch.
        let expected = messages.saturating_mul(self.request_count() + 1);
        Box::new(Receiver::new(FileServer::default(), expected))
    }

    fn describe(&self) -> String {
        let operations: Vec<&str> = self.operations.iter().map(|operation| operation.name()).collect();
        format!("files {} x {}, {}", self.files, self.size, operations.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keys: &str) -> Result<(), String> {
        let files: Files = serde_json::from_str(keys).expect("its keys");
        files.check_own().map_err(|problem| problem.to_string())
    }

    #[test]
    fn invalid_settings_are_refused_with_a_remedy() {
        assert_eq!(check("{}"), Ok(()));
        assert_eq!(check(r#"{"size":"0B","operations":["put","put","remove"]}"#), Ok(()));
        assert_eq!(check(r#"{"deeds":["put"]}"#), Ok(()), "the former name");
        for (keys, cure) in [
            (r#"{"files":0}"#, "at least"),
            (r#"{"operations":[]}"#, "at least"),
            (r#"{"operations":["get"]}"#, "begin with \"put\""),
            (r#"{"operations":["put","remove","get"]}"#, "begin with \"put\""),
            (r#"{"block":"0B"}"#, "at least 1 octet"),
            (r#"{"block":"16MiB"}"#, "less than 16 MiB"),
            (r#"{"size":"100MB","operations":["put"]}"#, "add \"remove\""),
            (r#"{"size":"100MB","block":"100B"}"#, "raise `block`"),
        ] {
            assert!(check(keys).unwrap_err().contains(cure), "{keys}");
        }
        assert_eq!(check(r#"{"files":1,"size":"100MB"}"#), Ok(()));
    }

    #[test]
    fn put_and_get_need_one_request_per_block_plus_two() {
        let files = |files, size, block, operations: &[FileOperation]| {
            let (size, block) = (ByteCount(size), ByteCount(block));
            Files { files, size, block, operations: operations.to_vec() }.request_count()
        };
        assert_eq!(files(5000, 100, 64_512, &[FileOperation::Put, FileOperation::Remove]), 5000 * (3 + 1));
        assert_eq!(files(1, 100_000_000, 64_512, &[FileOperation::Put]), 1551 + 2);
        assert_eq!(files(2, 0, 1, &[FileOperation::Put, FileOperation::Get]), 2 * (2 + 2));
    }
}
