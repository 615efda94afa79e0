//! Before a run: can the kernel do what is asked? After it: did the machine do what was asked?

use hol_base::Ratio;
use hol_model::Scenario;

use crate::job::{Facts, LineFacts};
use crate::{KernelError, netem};

/// The floor may be off by this: what namespaces and interfaces cost, in ns.
const FLOOR_SLACK: u64 = 500_000;
/// Losses may differ from what is expected by so many standard deviations.
const DEVIATIONS: f64 = 6.0;

/// Refuses by name what the kernel cannot do.
pub fn possible(scenario: &Scenario) -> Result<(), KernelError> {
    let unsupported = |what: &str, why: String| KernelError::Unsupported { what: what.to_owned(), why };
    scenario.check().map_err(|problem| unsupported("scenario", problem.to_string()))?;
    netem::plan(&scenario.network)?;
    let transport = hol_sockets::sysctls(&scenario.transport);
    transport.map(drop).map_err(|problem| unsupported("transport", problem.to_string()))
}

/// Refuses a run whose own measurements say that its conditions were not those that were asked for.
pub(crate) fn valid(scenario: &Scenario, facts: &Facts) -> Result<(), KernelError> {
    let jitter = 2 * scenario.network.settings().jitter.as_nanos();
    for (floor, link) in facts.floor.iter().zip(1..) {
        let within = floor.expected.saturating_sub(jitter)..=floor.expected + jitter + FLOOR_SLACK;
        if !within.contains(&floor.measured) {
            return Err(KernelError::Invalid(format!(
                "a probe of link {link} took {} ns where {} to {} were due",
                floor.measured,
                within.start(),
                within.end()
            )));
        }
    }
    let plan = netem::plan(&scenario.network)?;
    let lines = plan.links.iter().flat_map(|link| [&link.up, &link.down]);
    for (line, counted) in lines.zip(&facts.lines) {
        let loss = line.stages.iter().find_map(|stage| match stage.loss {
            netem::Loss::Independent(ratio) => Some(ratio),
            netem::Loss::None | netem::Loss::Bursts(_) => None,
        });
        lossy_enough(counted, loss.unwrap_or(Ratio::ZERO))?;
    }
    Ok(())
}

/// Too few losses are as bad as none; too many may be the queue's, and no fault of the machine.
fn lossy_enough(line: &LineFacts, loss: Ratio) -> Result<(), KernelError> {
    let (sent, loss) = (line.sent as f64, loss.value());
    let (expected, deviation) = (sent * loss, (sent * loss * (1.0 - loss)).sqrt());
    if (line.dropped as f64) < expected - DEVIATIONS * deviation - 1.0 {
        let LineFacts { name, sent, dropped } = line;
        return Err(KernelError::Invalid(format!(
            "{name} lost {dropped} of {sent} packets, about {expected:.0} were due"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(sent: u64, dropped: u64) -> LineFacts {
        LineFacts { name: "link/1/up".to_owned(), sent, dropped }
    }

    #[test]
    fn a_line_that_loses_nothing_where_it_should_is_not_valid() {
        let loss = Ratio::new(0.01).unwrap();
        assert!(lossy_enough(&line(20_000, 190), loss).is_ok());
        let error = lossy_enough(&line(20_000, 0), loss).unwrap_err().to_string();
        assert!(error.contains("link/1/up lost 0 of 20000"), "{error}");
        assert!(lossy_enough(&line(100, 0), loss).is_ok());
    }
}
