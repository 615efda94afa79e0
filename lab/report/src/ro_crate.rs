//! An RO-Crate of a result directory: metadata that repositories of research data read (RO-Crate 1.1, Process Run Crate 0.5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hol_base::percent_encoded;
use hol_lab::{Origin, Results, sha256_of_file};
use serde_json::{Value, json};

/// The name of the metadata file, as RO-Crate prescribes it.
pub const FILE: &str = "ro-crate-metadata.json";

/// The media types of a result directory's files, by their ending.
const MEDIA_TYPES: [(&str, &str); 8] = [
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pcapng", "application/x-pcapng"),
    ("py", "text/x-python"),
    ("svg", "image/svg+xml"),
];

/// Details of a publication that the result directory does not contain.
#[derive(Debug, Clone, Copy)]
pub struct PublicationDetails<'a> {
    /// The bibliographic reference of the publication that the study repeats; empty if there is none.
    pub repeats: &'a str,
    /// The date of the publication (ISO 8601).
    pub date: &'a str,
    /// The address of the licence of the results, if the user gave one.
    pub license: Option<&'a str>,
}

/// Writes the metadata of `results` into their directory `dir`. Returns the path of the file.
pub fn write_crate(results: &Results, dir: &Path, details: PublicationDetails<'_>) -> io::Result<PathBuf> {
    let mut files = Vec::new();
    collect(dir, Path::new(""), &mut files)?;
    files.retain(|file| file != Path::new(FILE));
    files.sort();
    let entities = files.iter().map(|file| entity(dir, file)).collect::<io::Result<Vec<Value>>>()?;
    let text = serde_json::to_string_pretty(&metadata(results, &entities, details))?;
    let path = dir.join(FILE);
    fs::write(&path, text)?;
    Ok(path)
}

/// Collects the files below `dir`, relative to it.
fn collect(dir: &Path, below: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() => collect(dir, &path, files)?,
            kind if kind.is_file() => files.push(path),
            _ => (),
        }
    }
    Ok(())
}

/// Returns the File entity of a file of the directory.
fn entity(dir: &Path, file: &Path) -> io::Result<Value> {
    let (hash, octets) = sha256_of_file(&dir.join(file))?;
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == ending);
    Ok(json!({
        "@id": percent_encoded(&file.to_string_lossy()),
        "@type": "File",
        "name": file.to_string_lossy(),
        "contentSize": octets.to_string(),
        "encodingFormat": known.map_or("application/octet-stream", |(_, kind)| kind),
        "sha256": hash,
    }))
}

/// Returns the whole JSON-LD document.
fn metadata(results: &Results, files: &[Value], details: PublicationDetails<'_>) -> Value {
    let PublicationDetails { repeats, date, license } = details;
    let manifest = &results.manifest;
    let Origin { commit, program, files: inputs } = &manifest.origin;
    // JSON-LD of RO-Crate writes a single reference without a list.
    let references = |entities: &[Value]| match entities {
        [one] => json!({"@id": one["@id"]}),
        all => all.iter().map(|file| json!({"@id": file["@id"]})).collect(),
    };
    let input = |(name, hash): (&String, &String)| json!({"@id": format!("#input-{}", percent_encoded(name)), "@type": "CreativeWork", "name": name, "sha256": hash});
    let inputs: Vec<Value> = inputs.iter().map(input).collect();
    let version =
        if commit.is_empty() { manifest.version.clone() } else { format!("{} ({commit})", manifest.version) };
    let profile = "https://w3id.org/ro/wfrun/process/0.5";

    let mut root = json!({
        "@id": "./",
        "@type": "Dataset",
        "name": manifest.title,
        "description": format!(
            "Results of headofline in the {} world: {} runs of {} points; digest of all runs {}.",
            manifest.world,
            results.needed - results.missing,
            results.points.len(),
            results.digest()
        ),
        "datePublished": date,
        "conformsTo": {"@id": profile},
        "hasPart": references(files),
        "mentions": {"@id": "#run"},
    });
    let mut run = json!({
        "@id": "#run",
        "@type": "CreateAction",
        "name": manifest.command.join(" "),
        "description": format!("Runs of {}", manifest.title),
        "instrument": {"@id": "#headofline"},
        "object": references(&inputs),
        "result": references(files),
    });
    let mut instrument = json!({
        "@id": "#headofline",
        "@type": "SoftwareApplication",
        "name": "headofline",
        "softwareVersion": version,
    });
    if !program.is_empty() {
        instrument["sha256"] = json!(program);
    }
    let mut graph = vec![json!({
        "@id": FILE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    })];
    if let Some(license) = license {
        root["license"] = json!({"@id": license});
        graph.push(json!({"@id": license, "@type": "CreativeWork", "name": license, "description": "The licence of the results"}));
    }
    if !repeats.is_empty() {
        root["citation"] = json!({"@id": "#publication"});
        run["description"] = json!(format!("Repeats the experiments of {repeats}"));
        graph.push(json!({"@id": "#publication", "@type": "ScholarlyArticle", "name": repeats}));
    }
    graph.extend([root, run, instrument]);
    graph.push(
        json!({"@id": profile, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"}),
    );
    graph.extend(inputs);
    graph.extend_from_slice(files);
    json!({"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_path_is_percent_encoded_as_a_reference() {
        assert_eq!(percent_encoded("figures/fig01.svg"), "figures/fig01.svg");
        assert_eq!(percent_encoded("out/a b#1/é"), "out/a%20b%231/%C3%A9");
    }
}
