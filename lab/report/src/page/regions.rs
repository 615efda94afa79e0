//! The regions in which transports meet a requirement.

use crate::plot::escape;
use crate::region::Region;
use crate::report::Report;

/// Returns the section.
pub fn html(report: &Report) -> String {
    report.regions.iter().map(region_html).collect()
}

fn region_html(region: &Region) -> String {
    let Region { id, caption, .. } = region;
    let svg = region.draw().inline();
    format!(
        "<figure id=\"{id}\">{svg}<figcaption>{}. Full colour: significant (95 %); pale: by the mean only; grey: not. The number next to \
         a name is its share of the points. <span class=\"soft\"><a href=\"figures/{id}.svg\">SVG</a> · <a href=\"figures/{id}.csv\">CSV</a></span>\
         </figcaption></figure>",
        escape(caption)
    )
}
