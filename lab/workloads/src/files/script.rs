//! The client: its sequence of requests, and the check of the replies.

use bytes::Bytes;
use hol_base::{Digest, Time};
use hol_measure::RecordKind;

use super::frame::{Command, Header};
use super::{FileOperation, Files, content};
use crate::batches::Batch;
use crate::sender::{RepliedRequest, RequestSource};

/// A client that performs the operations on one file after the other, and repeats them for the next batch.
#[derive(Debug)]
pub(super) struct FileClient {
    files: Files,
    batch: Batch,
    /// Index of the current file.
    file: u32,
    /// Index of the current operation.
    operation: usize,
    /// The progress of the current operation.
    step: Step,
    /// The number of the content that was written last. It is the number of the first request that wrote this content,
    /// so no two contents are equal.
    content: u32,
    requests: u32,
    /// The request that has not been answered; `None` if all have.
    pending: Option<Header>,
}

/// The next request of an operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Begin,
    /// A request for the block at this offset.
    Block(u32),
    End,
}

impl FileClient {
    /// Creates a client at the start of its first batch.
    pub(super) fn new(files: Files, batch: Batch) -> Self {
        let step = Step::Begin;
        Self { files, batch, file: 0, operation: 0, step, content: 0, requests: 0, pending: None }
    }

    fn size(&self) -> u32 {
        self.files.size.0 as u32
    }

    /// Returns the range of octets of the block at this offset.
    fn block(&self, start: u32) -> std::ops::Range<u32> {
        start..self.size().min(start + self.files.block.0 as u32)
    }

    /// Returns the command for this step of an operation.
    fn command(&self, operation: FileOperation) -> Command {
        match (operation, self.step) {
            (FileOperation::Remove, _) => Command::Remove,
            (FileOperation::Put, Step::Begin) => Command::Create,
            (FileOperation::Put, Step::Block(_)) => Command::Write,
            (FileOperation::Get, Step::Begin) => Command::Open,
            (FileOperation::Get, Step::Block(_)) => Command::Read,
            (FileOperation::Put, Step::End) => Command::Store,
            (FileOperation::Get, Step::End) => Command::Close,
        }
    }

    /// Advances to the step after the request that was answered.
    fn advance(&mut self, operation: FileOperation) {
        let start = match self.step {
            _ if operation == FileOperation::Remove => return self.finish_operation(),
            Step::Begin => 0,
            Step::Block(start) => self.block(start).end,
            Step::End => return self.finish_operation(),
        };
        self.step = if start < self.size() { Step::Block(start) } else { Step::End };
    }

    fn finish_operation(&mut self) {
        self.step = Step::Begin;
        self.operation += 1;
        if self.operation == self.files.operations.len() {
            (self.operation, self.file) = (0, (self.file + 1) % self.files.files);
        }
    }

    /// Returns an error if a reply does not fit its request.
    fn check(&self, pending: Header, replied: Header, block: &[u8]) -> Result<(), &'static str> {
        if (Header { digest: pending.digest, ..replied }) != pending {
            return Err("the peer replied to another request");
        }
        let (due, stored) = match pending.command {
            Command::Read => (
                content::content_octets(self.content, pending.offset..pending.offset + pending.octets),
                Digest(0),
            ),
            Command::Store => (Bytes::new(), content::digest(self.content, self.size())),
            _ => (Bytes::new(), Digest(0)),
        };
        if replied.digest != stored {
            return Err("the stored file differs from the one that was sent");
        }
        if block != due {
            return Err("the returned file differs from the one that was sent");
        }
        Ok(())
    }
}

impl RequestSource for FileClient {
    fn kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn batch(&self) -> Option<Batch> {
        Some(self.batch)
    }

    fn next(&mut self, _: Time, number: u32) -> (u32, Bytes) {
        let operation = self.files.operations[self.operation];
        let command = self.command(operation);
        if command == Command::Create {
            self.content = number;
        }
        let block = match self.step {
            Step::Block(start) => self.block(start),
            Step::Begin | Step::End => 0..self.size(),
        };
        let header = Header {
            command,
            number,
            file: self.file,
            offset: block.start,
            octets: block.len() as u32,
            digest: Digest(0),
        };
        self.pending = Some(header);
        self.advance(operation);
        let turn = self.requests;
        self.requests = turn.wrapping_add(1);
        let written = if command == Command::Write {
            content::content_octets(self.content, block)
        } else {
            Bytes::new()
        };
        (turn, header.followed_by(&written))
    }

    fn reply(&mut self, _: Time, payload: &Bytes) -> Result<RepliedRequest, &'static str> {
        let (replied, block) = Header::read(payload)?;
        let pending = self.pending.take().ok_or("the peer sent a reply without a request")?;
        self.check(pending, replied, block)?;
        Ok(RepliedRequest::Message(pending.number))
    }
}

#[cfg(test)]
mod tests {
    use hol_base::ByteCount;
    use proptest::prelude::*;

    use super::*;
    use crate::ConnectionId;
    use crate::files::store::FileServer;
    use crate::receiver::ReplySource;

    const ALL: [FileOperation; 3] = [FileOperation::Put, FileOperation::Get, FileOperation::Remove];

    fn script(files: u32, size: u64, block: u64, operations: &[FileOperation]) -> FileClient {
        let (size, block) = (ByteCount(size), ByteCount(block));
        FileClient::new(
            Files { files, size, block, operations: operations.to_vec() },
            Batch { messages: 1, octets: 0 },
        )
    }

    /// A server for tests: a correct one, or one with a deliberate fault.
    type Server = fn(&mut FileServer, Header, Bytes) -> Result<Bytes, &'static str>;

    fn answer(store: &mut FileServer, _: Header, request: Bytes) -> Result<Bytes, &'static str> {
        store
            .answer(Time::ZERO, ConnectionId(0), request)
            .map(|reply| reply.expect("the server answers every request"))
    }

    /// Sends `requests` requests to a server. Returns their commands and the server, or the error for the first wrong
    /// reply.
    fn play(
        mut script: FileClient,
        requests: u32,
        server: Server,
    ) -> Result<(Vec<Command>, FileServer), &'static str> {
        let (mut store, mut pending) = (FileServer::default(), Vec::new());
        for number in 0..requests {
            let (_, request) = script.next(Time::ZERO, number);
            let (header, _) = Header::read(&request)?;
            let reply = server(&mut store, header, request)?;
            assert_eq!(script.reply(Time::ZERO, &reply)?, RepliedRequest::Message(number));
            pending.push(header.command);
        }
        Ok((pending, store))
    }

    #[test]
    fn files_are_processed_one_after_another_block_by_block() {
        use Command::{Close, Create, Open, Read, Remove, Store, Write};
        let one = [Create, Write, Write, Store, Open, Read, Read, Close, Remove];
        let (pending, store) = play(script(2, 100, 64, &ALL), 27, answer).unwrap();
        assert_eq!((pending, store.files.len()), (one.repeat(3), 0));
        let (pending, store) = play(script(2, 0, 64, &[FileOperation::Put]), 4, answer).unwrap();
        assert_eq!((pending, store.files.len()), ([Create, Store].repeat(2), 2));
    }

    #[test]
    fn every_put_has_new_content() {
        let (_, first) = play(script(1, 100, 64, &[FileOperation::Put]), 4, answer).unwrap();
        let (_, second) = play(script(1, 100, 64, &[FileOperation::Put]), 8, answer).unwrap();
        assert_ne!(first.files[&0], second.files[&0]);
    }

    #[test]
    fn server_that_stores_a_wrong_octet_is_detected_by_the_digest() {
        let mutant: Server = |store, pending, request| {
            let reply = answer(store, pending, request)?;
            if let (Command::Write, Some(file)) = (pending.command, store.files.get_mut(&1)) {
                *file.last_mut().expect("a block was written") ^= 1;
            }
            // The reply has the correct digest of the wrong content.
            Ok(reply)
        };
        assert!(play(script(2, 100, 64, &ALL), 9 + 3, mutant).is_ok());
        let problem = play(script(2, 100, 64, &ALL), 9 + 4, mutant).unwrap_err();
        assert_eq!(problem, "the stored file differs from the one that was sent");
    }

    #[test]
    fn server_that_returns_wrong_octets_or_a_wrong_digest_is_detected() {
        let forgetful: Server = |store, pending, request| {
            if pending.command == Command::Open {
                store.files.get_mut(&0).expect("it was put")[64] ^= 0x80;
            }
            answer(store, pending, request)
        };
        assert!(play(script(1, 100, 64, &ALL), 6, forgetful).is_ok(), "the first block is as it was");
        let problem = play(script(1, 100, 64, &ALL), 7, forgetful).unwrap_err();
        assert_eq!(problem, "the returned file differs from the one that was sent");
        let liar: Server = |_, pending, _| Ok(pending.followed_by(&[]));
        assert!(play(script(1, 100, 64, &ALL), 3, liar).is_ok());
        assert!(play(script(1, 100, 64, &ALL), 4, liar).is_err());
    }

    #[test]
    fn reply_to_another_request_is_refused() {
        let mut script = script(1, 100, 64, &ALL);
        let (_, request) = script.next(Time::ZERO, 0);
        let (pending, _) = Header::read(&request).unwrap();
        let other = Header { number: 1, ..pending }.followed_by(&[]);
        assert_eq!(script.reply(Time::ZERO, &other), Err("the peer replied to another request"));
        assert_eq!(script.reply(Time::ZERO, &request), Err("the peer sent a reply without a request"));
    }

    proptest! {
        #[test]
        fn files_of_any_size_arrive_intact(
            files in 1_u32..4,
            size in 0_u64..300,
            block in 1_u64..300,
            operations in prop::sample::select(vec![&ALL[..1], &ALL[..2], &ALL, &[FileOperation::Put, FileOperation::Put, FileOperation::Remove]]),
        ) {
            let script = script(files, size, block, operations);
            let requests = script.files.request_count() as u32;
            let (pending, store) = play(script, 2 * requests, answer).unwrap();
            prop_assert_eq!(&pending[..requests as usize], &pending[requests as usize..], "a batch is like the next");
            let kept = if operations.contains(&FileOperation::Remove) { 0 } else { files };
            prop_assert_eq!(store.files.len(), kept as usize);
            prop_assert!(store.files.values().all(|file| file.len() as u64 == size));
        }
    }
}
