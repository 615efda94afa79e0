//! The model world: endpoints and workloads on simulated links under a virtual clock.
//!
//! [`Model`] builds a simulation from a [`Scenario`] and runs it to its end: hosts with endpoints, the
//! measured flow, background and onward flows, and the network between the hosts. An application acts when it
//! has read a message (`wakeup` after the arrival) and its host has spent the `service` time, if it has one.
//! Processing packets takes no time, which is a limit of the model.

mod build;
mod closed_port;
mod connection;
mod demux;
mod endpoints;
mod flow_side;
mod host_addresses;
mod record_sink;
mod running_flow;
mod sampling;
mod simulation;
mod unsupported;
mod wake_ups;

use hol_base::{Seed, Time};
use hol_network::{PacketInTransit, Tap, TapEvent, TapPoint};
use hol_scenario::{
    BackgroundRun, Cost, HopObserver, Observer, Packet, PacketEvent, PacketObserver, Run, RunError,
    RunSummary, Scenario, Side, World,
};
use serde_json::{Value, json};

use crate::running_flow::RunningFlow;

/// The model world, in which everything is simulated.
#[derive(Debug, Clone, Copy, Default)]
pub struct Model;

impl World for Model {
    fn name(&self) -> String {
        "model".to_owned()
    }

    /// Returns an empty string, because results depend only on the version of hol, which is recorded with every
    /// result.
    fn provenance(&self) -> Result<String, RunError> {
        Ok(String::new())
    }

    fn recorded_settings(&self, scenario: &Scenario) -> Value {
        let transport = &scenario.transport;
        json!({ "spec": transport.to_string(), "stack": transport.stack(), "behaviour": transport.option_values() })
    }

    fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        unsupported::check(scenario).map_err(RunError::Refused)
    }

    fn cost(&self) -> Cost {
        Cost { run: 0, message: 5 }
    }

    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError> {
        run_with_observer(scenario, seed, None, observer)
    }

    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        witness: &mut dyn PacketObserver,
    ) -> Result<Run, RunError> {
        run(scenario, seed, Some(&mut ObserverTap(witness)))
    }

    fn hops(&self) -> Option<&dyn HopObserver> {
        Some(self)
    }
}

impl HopObserver for Model {
    fn tap(&self, scenario: &Scenario, seed: Seed, tap: &mut dyn Tap) -> Result<Run, RunError> {
        run(scenario, seed, Some(tap))
    }
}

/// Passes packets to an observer as a capture on the host would show them: at the time when the host sends them, not
/// when they leave the queue.
struct ObserverTap<'w>(&'w mut dyn PacketObserver);

impl Tap for ObserverTap<'_> {
    fn packet(&mut self, time: Time, point: TapPoint<'_>, transit: &PacketInTransit, event: TapEvent) {
        if event != TapEvent::Dequeued {
            self.0.observe(&PacketEvent { time, point, event, packet: Packet::Value(&transit.packet) });
        }
    }
}

/// Runs `scenario` in the model world. The same scenario and seed give the same run.
pub fn run(scenario: &Scenario, seed: Seed, tap: Option<&mut dyn Tap>) -> Result<Run, RunError> {
    Run::collect(|observer| run_with_observer(scenario, seed, tap, observer))
}

/// Runs `scenario` in the model world, and passes the records to an observer.
pub fn run_with_observer(
    scenario: &Scenario,
    seed: Seed,
    tap: Option<&mut dyn Tap>,
    observer: &mut dyn Observer,
) -> Result<RunSummary, RunError> {
    scenario.check().map_err(|problem| RunError::Refused(problem.to_string()))?;
    unsupported::check(scenario).map_err(RunError::Refused)?;
    let simulation = build::simulation(scenario, seed, tap);
    let mut simulation = simulation.map_err(|problem| RunError::Refused(problem.to_string()))?;
    let mut record_sink = simulation.record_sink(observer);
    let ended = simulation.run(&mut record_sink)?;
    simulation.pass_on_rest(&mut record_sink)?;
    let count = scenario.background_flows(seed).count();
    let background_flows =
        simulation.unmeasured_flows().iter().take(count).zip(record_sink.background_octets());
    let background =
        background_flows.map(|(running_flow, octets)| background(running_flow, octets)).collect();
    let onward: Vec<_> =
        simulation.unmeasured_flows().iter().skip(count).map(|other| other.flow.run_end().cloned()).collect();
    let connect_time = simulation.measured().connect_time();
    let flow = &simulation.measured().flow;
    let run_end = flow.run_end().expect("a run ends when its flow has ended").clone();
    let run_end = scenario.measured_flow_end(run_end, onward);
    let is_finished = flow.is_finished();
    // Drops are counted before the close, because packets retransmitted to a closed endpoint are not lost by
    // the flow.
    let (drops, marked) = (simulation.drops(), simulation.marked_packets());
    let closed = if is_finished { simulation.close() } else { None };
    Ok(RunSummary {
        has_delivery_times: true,
        packets: simulation.packets(),
        drops: Some(drops),
        marked: Some(marked),
        endpoints: Some([Side::Client, Side::Server].map(|role| simulation.statistics(role))),
        connect_time,
        ended,
        closed,
        run_end,
        background,
        world_report: None,
        files: Vec::new(),
    })
}

/// Returns the result of a background flow that has delivered `octets`. If the measured flow ended first, the
/// background flow was aborted then.
fn background(running_flow: &RunningFlow, octets: u64) -> BackgroundRun {
    let run_end = running_flow.flow.run_end().cloned();
    BackgroundRun { connect_time: running_flow.connect_time(), octets, run_end }
}
