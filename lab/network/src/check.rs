//! Checks of the network table.

use hol_base::{Duration, QueueLimit};

use crate::channel::Channel;
use crate::distribution::Distribution;
use crate::error::NetworkError;
use crate::ip::Ip;
use crate::loss::LossSpec;
use crate::policer::{PoliceSpec, TokenBucket};
use crate::spec::{NetworkSpec, Settings};
use crate::topology::LinkDirectionSettings;

/// Checks that the network table has either paths or nodes, not both.
pub(crate) fn check_form(spec: &NetworkSpec) -> Result<(), NetworkError> {
    let long = !spec.nodes.is_empty();
    let mixed = |key, cure| Err(NetworkError::MixedForms { key, cure });
    let of_paths = spec.paths.iter().filter_map(|path| path.path);
    let of_links = spec.links.iter().filter_map(|link| link.path);
    if let Some(path) = spec.path.into_iter().chain(of_paths).chain(of_links).next() {
        return Err(NetworkError::UnresolvedPathName(path));
    }
    let of_paths = spec.paths.iter().filter_map(|path| path.rtt);
    let of_links = spec.links.iter().filter_map(|link| link.rtt);
    if let Some(rtt) = spec.rtt.into_iter().chain(of_paths).chain(of_links).next() {
        return Err(NetworkError::UnresolvedRtt(rtt));
    }
    match spec {
        _ if long && !spec.paths.is_empty() => mixed("paths", "write each path as one of `links`"),
        _ if long && spec.up.is_some() => mixed("up", "move this key to a link"),
        _ if long && spec.down.is_some() => mixed("down", "move this key to a link"),
        _ if long && spec.handover.is_some() => mixed("handover", "use paths = [{}, {}] instead of `nodes`"),
        _ if !long && !spec.links.is_empty() => Err(NetworkError::NodesMissing { key: "links" }),
        _ if !long && !spec.lans.is_empty() => Err(NetworkError::NodesMissing { key: "lans" }),
        _ if spec.paths.first().is_some_and(|path| path.backup) => Err(NetworkError::FirstPathIsBackup),
        _ => Ok(()),
    }
}

/// Checks that the settings of a link do not contradict each other.
pub(crate) fn check_settings(link: &str, settings: &Settings, ip: Ip) -> Result<(), NetworkError> {
    let link = link.to_owned();
    let Settings { jitter, delay, reorder_by, .. } = *settings;
    if jitter > delay {
        return Err(NetworkError::JitterExceedsDelay { link, jitter, delay });
    }
    check_distribution(&link, settings)?;
    if !settings.reorder.is_zero() && reorder_by == Duration::ZERO {
        return Err(NetworkError::ReorderByMissing { link });
    }
    if settings.reorder.is_zero() && reorder_by > Duration::ZERO {
        return Err(NetworkError::ReorderMissing { link });
    }
    if settings.mtu.0 < ip.min_mtu() {
        return Err(NetworkError::MtuTooSmall { link, mtu: settings.mtu.0, ip });
    }
    if let PoliceSpec(Some(TokenBucket { burst, .. })) = settings.police
        && !(settings.mtu.0..=TokenBucket::MAX_OCTETS).contains(&burst.0)
    {
        return Err(NetworkError::Burst { link, burst: burst.0, mtu: settings.mtu.0 });
    }
    if let LossSpec::TimedBursts(bursts) = settings.loss
        && let Some(problem) = bursts.problem()
    {
        return Err(NetworkError::Loss { link, problem });
    }
    if let Some(problem) = settings.discipline.problem() {
        return Err(NetworkError::Discipline { link, problem });
    }
    if matches!(settings.queue, QueueLimit::Packets(0) | QueueLimit::Bytes(0)) {
        return Err(NetworkError::QueueHoldsNothing { link });
    }
    Ok(())
}

/// Checks that the distribution of a link's delay is valid.
fn check_distribution(link: &str, settings: &Settings) -> Result<(), NetworkError> {
    let link = link.to_owned();
    let Settings { jitter, jitter_correlation: correlation, jitter_distribution: distribution, .. } =
        settings;
    if let Some(problem) = distribution.problem() {
        return Err(NetworkError::Distribution { link, problem });
    }
    let is_idle = *jitter == Duration::ZERO;
    if is_idle && !correlation.is_zero() {
        return Err(NetworkError::JitterMissing { link, key: "jitter_correlation" });
    }
    if is_idle && *distribution != Distribution::Uniform {
        return Err(NetworkError::JitterMissing { link, key: "jitter_distribution" });
    }
    if !correlation.is_zero() && !matches!(distribution, Distribution::Uniform | Distribution::Normal) {
        return Err(NetworkError::JitterCorrelation { link, distribution: distribution.to_string() });
    }
    Ok(())
}

/// Checks that each channel that a link names is shared by several links.
pub(crate) fn check_channels(links: &[LinkDirectionSettings]) -> Result<(), NetworkError> {
    let lonely = Channel::from_links(links).into_iter().find(|channel| channel.members.len() == 1);
    lonely.map_or(Ok(()), |channel| {
        let LinkDirectionSettings { name, settings } = &links[channel.members[0]];
        Err(NetworkError::UnsharedChannel { link: name.clone(), channel: settings.channel.clone() })
    })
}
