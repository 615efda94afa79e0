//! The mean and the distribution of response times that the closed form of [`hol_theory`] predicts for measured points.

use hol_base::{Duration, Frequency, Ratio};
use hol_stack::{Protocol, ProtocolKind, TransportSpec};
use hol_theory::{Arrivals, Recovery, Transfer, check_applicability};

use crate::data::{Cell, Conditions};

/// The number of points of a curve.
const CURVE_POINTS: i32 = 48;

/// Returns the mean response time of the closed form, in ms; `None` if it does not apply.
pub fn mean(cell: &Cell) -> Option<f64> {
    let transfer = applicable(cell).ok()?;
    Some(transfer.mean_response())
}

/// Returns the distribution of the closed form as (response time in ms, share of messages that take longer);
/// empty if it does not apply.
pub fn ccdf(cell: &Cell) -> Vec<(f64, f64)> {
    let (Ok(transfer), Some(max)) = (applicable(cell), cell.latency.max()) else { return Vec::new() };
    let rtt = cell.conditions.rtt_ms();
    let step = (max.as_millis_f64() / rtt).max(1.001).powf(1.0 / f64::from(CURVE_POINTS));
    let at = |ms: f64| (ms, transfer.ccdf(Duration::from_secs_f64(ms / 1000.0)));
    (0..=CURVE_POINTS).map(|index| at(rtt * step.powi(index))).filter(|(_, share)| *share > 0.0).collect()
}

/// Returns the transfer of a point, or why the closed form does not apply to it.
pub fn applicable(cell: &Cell) -> Result<Transfer, String> {
    if cell.flows.is_some() {
        return Err("the closed form applies only to transactions without competing flows".to_owned());
    }
    if !cell.conditions.is_plain {
        return Err("the closed form applies only to a single FIFO link with independent loss and constant delay, at up to 30 % load, with messages of one packet".to_owned());
    }
    let transfer = transfer(cell).ok_or("no closed form for this transport")?;
    check_applicability(&transfer).map_err(|limit| limit.to_string())?;
    Ok(transfer)
}

fn transfer(cell: &Cell) -> Option<Transfer> {
    let spec: TransportSpec = cell.spec.parse().ok()?;
    let Conditions { loss, rate, delay_ms, is_poisson, .. } = cell.conditions;
    Some(Transfer {
        rate: Frequency::new(rate)?,
        one_way_delay: Duration::from_secs_f64(delay_ms / 1000.0),
        loss: Ratio::new(loss / 100.0)?,
        streams: u32::from(cell.streams),
        arrivals: if is_poisson { Arrivals::Poisson } else { Arrivals::Periodic },
        recovery: recovery(&spec)?,
    })
}

fn recovery(spec: &TransportSpec) -> Option<Recovery> {
    // Unordered messages do not wait for a lost one.
    if let Protocol::Sctp { unordered: true, .. } = spec.protocol() {
        return None;
    }
    if spec.may_lose_messages() {
        return None;
    }
    let behaviour = spec.option_values();
    let time = |key: &str| -> Option<Duration> { behaviour.get(key)?.as_str()?.parse().ok() };
    match spec.kind() {
        ProtocolKind::Sctp => {
            // The closed form assumes three missing reports (RFC 9260 section 7.2.4).
            (behaviour.get("missing_reports")?.as_integer()? == 3).then_some(())?;
            let again = behaviour.get("fast_retransmit_again")?.as_bool()?;
            Some(Recovery::Sctp { rto_min: time("rto_min")?, again })
        }
        ProtocolKind::Tcp => {
            let rto_min = time("rto_variance_floor")?.max(time("rto_min")?);
            match behaviour.get("recovery")?.as_str()? {
                "rack" => Some(Recovery::TcpRack { rto_min }),
                _ => Some(Recovery::TcpDupThresh { rto_min }),
            }
        }
        ProtocolKind::Quic | ProtocolKind::Mptcp | ProtocolKind::Udp | ProtocolKind::Unix => None,
    }
}
