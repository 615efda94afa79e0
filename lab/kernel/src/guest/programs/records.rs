//! Records of how the programs of a run ended.

use std::time::Duration as StdDuration;

use hol_base::Time;
use hol_measure::{Outcome, Record, RecordKind, TransferTimes};
use hol_scenario::RunEnd;
use hol_sockets::{FlowRun, SocketCounters};

use super::process::Process;
use super::run_state::{Programs, describe};

impl Programs<'_> {
    /// Returns a flow with one record for each program that has to end before the run ends.
    pub(super) fn flow_run(
        &self,
        epoch: u64,
        ended: StdDuration,
        limit: StdDuration,
        was_stopped: bool,
    ) -> FlowRun {
        let records =
            self.awaited_programs().enumerate().map(|(id, index)| self.record(id as u64, index, epoch));
        let all = || self.scenario.programs.iter().zip(&self.processes).enumerate();
        let failed = all().find_map(|(_, (program, process))| {
            let process = process.as_ref()?;
            Some((program, process, process.status()?.problem()?))
        });
        let late = || {
            let (_, (program, process)) = all().find(|(index, _)| self.overdue.contains(index))?;
            let problem = format!(
                "still ran after {} s (workload.limit) and was ended; raise the limit",
                limit.as_secs()
            );
            Some((program, process.as_ref()?, problem))
        };
        let problem = failed.or_else(|| late().filter(|_| !was_stopped));
        let problem = problem.map(|(program, process, problem)| {
            format!("{} {problem}{}", describe(program), process.last_lines())
        });
        FlowRun {
            records: records.collect(),
            epoch,
            connected: Some(Time::ZERO),
            ended: time_since_epoch(ended),
            run_end: problem.map_or(RunEnd::Finished, |problem| RunEnd::Program { problem }),
            was_stopped,
            client: SocketCounters::default(),
            server: SocketCounters::default(),
            waits: [None; 2],
            secrets: String::new(),
            paths: Vec::new(),
            filter: None,
            samples: Vec::new(),
        }
    }

    fn record(&self, id: u64, index: usize, epoch: u64) -> Record {
        let process = self.processes[index].as_ref();
        let started = Time::from_nanos(process.map_or(0, |process| process.started_at.saturating_sub(epoch)));
        let status = process.and_then(Process::status).filter(|_| !self.overdue.contains(&index));
        let ended = status.map(|status| Time::from_nanos(status.ended_at.saturating_sub(epoch)));
        let leg = |time| TransferTimes {
            written: time,
            first_sent: time,
            last_sent: time,
            arrived: time,
            delivered: time,
        };
        let outcome = match status {
            Some(status) if status.problem().is_none() => Outcome::Completed,
            Some(_) => Outcome::Refused,
            None => Outcome::Unfinished,
        };
        Record {
            id,
            kind: RecordKind::Program,
            parent: None,
            stream: 0,
            size: 0,
            reply_size: 0,
            scheduled: started,
            request: process.map(|_| leg(started)),
            reply: ended.map(leg),
            outcome,
        }
    }
}

fn time_since_epoch(since: StdDuration) -> Time {
    Time::from_nanos(since.as_nanos() as u64)
}
