//! The section about the origin of the results, with the command that repeats them.

use hol_lab::Origin;

use crate::data::record_noun;
use crate::plot::{escape, number};
use crate::provenance::Provenance;
use crate::report::Report;

const REPEATABLE_NOTE: &str = "<p>The same seed gives the same digest on any machine. Verify the runs of this directory, or write this page again, with:</p>
<pre>hol verify DIR
hol report DIR</pre>";

/// The text for worlds with real time.
const REAL_TIME_NOTE: &str = "<p>This world uses a real clock, so the same command measures again, with different results. Write this page again with:</p>
<pre>hol report DIR</pre>";

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let Provenance {
        version,
        origin,
        command,
        world,
        host,
        seeds,
        digest,
        experiments,
        transports,
        transactions,
        packets,
        wall_s,
        repeatable,
        ..
    } = &report.provenance;
    let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let experiments: String = experiments
        .iter()
        .map(|(name, title, points, transactions)| {
            let (name, title, transactions) = (escape(name), escape(title), number(*transactions as f64));
            format!("<tr><td>{name}</td><td class=\"text\">{title}</td><td>{points}</td><td>{transactions}</td></tr>")
        })
        .collect();
    let transports: String = transports
        .iter()
        .map(|(label, spec)| {
            format!(
                "<tr><td>{}</td><td class=\"text\"><code>{}</code></td></tr>",
                escape(label),
                escape(spec)
            )
        })
        .collect();
    let Origin { commit, program, files } = origin;
    let commit =
        if commit.is_empty() { String::new() } else { format!(", commit <code>{}</code>", escape(commit)) };
    let program = match program.as_str() {
        "" => String::new(),
        hash => format!("<dt>SHA-256 of the program</dt><dd><code>{}</code></dd>", escape(hash)),
    };
    let repeats = match report.claims.publication.as_str() {
        "" => String::new(),
        publication => format!("<dt>repeats</dt><dd>{}</dd>", escape(publication)),
    };
    let row = |(name, hash): (&String, &String)| {
        format!("<tr><td>{}</td><td class=\"text\"><code>{}</code></td></tr>", escape(name), escape(hash))
    };
    let files = match files.iter().map(row).collect::<String>() {
        none if none.is_empty() => none,
        rows => format!(
            "<details><summary>files read</summary><table><tr><th>file</th><th class=\"text\">SHA-256</th></tr>{rows}</table></details>"
        ),
    };
    let counted = record_noun(report.data.cells.iter());
    let each = wall_s * 1e6 / (*transactions).max(1) as f64;
    let (inside, again) =
        if *repeatable { ("of simulation", REPEATABLE_NOTE) } else { ("of runs", REAL_TIME_NOTE) };
    format!(
        "<dl>{repeats}<dt>program</dt><dd>headofline {}{commit}, {} world</dd>{program}<dt>command</dt><dd><code>{}</code></dd><dt>seed</dt><dd>{seeds}</dd>
<dt>digest of all runs</dt><dd><code>{digest}</code></dd><dt>machine</dt><dd>{}</dd>
<dt>cost</dt><dd>{} {counted}, {} packets, {wall_s:.1} s {inside} ({each:.2} µs each)</dd></dl>
{again}
<p class=\"soft\"><a href=\"manifest.json\">manifest.json</a> contains every setting of every point, including defaults and stacks; <a href=\"points.csv\">points.csv</a> contains the points.</p>
<details><summary>experiments</summary><table><tr><th>name</th><th class=\"text\">title</th><th>points</th><th>{counted}</th></tr>{experiments}</table></details>
<details><summary>transports</summary><table><tr><th>label</th><th class=\"text\">specification</th></tr>{transports}</table></details>
{files}",
        escape(version),
        escape(world),
        escape(command),
        escape(host),
        number(*transactions as f64),
        number(*packets as f64),
    )
}
