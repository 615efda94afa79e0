//! The regions in which transports meet a requirement.

use crate::plot::escape;
use crate::region::Region;
use crate::report::Report;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    report.regions.iter().map(region_html).collect()
}

fn region_html(region: &Region) -> String {
    let Region { id, caption, .. } = region;
    let svg = region.draw().inline();
    format!(
        "<figure id=\"{id}\">{svg}<figcaption>{}. Full colour: the requirement is met significantly (95 %); pale: it is met by the mean only; grey: it \
         is not met. The number next to a transport is the share of the points at which it meets the requirement. <span class=\"soft\"><a href=\"figures/{id}.svg\">SVG</a> · <a href=\"figures/{id}.csv\">CSV</a></span>\
         </figcaption></figure>",
        escape(caption)
    )
}
