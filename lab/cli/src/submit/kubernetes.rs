//! Kubernetes: an Indexed Job whose pods share a volume, and a job that joins their results.

use serde_json::{Value, json};

use super::cluster_job::{ClusterJob, SUBMIT_SCRIPT, Script, quote_path};

/// Mount path of the volume in the pods.
const VOLUME_PATH: &str = "/results";
/// Mount path of the experiment in the pods.
const EXPERIMENT_PATH: &str = "/experiment";

/// The image and the volume of Kubernetes pods, and the experiment that they run.
#[derive(Debug, Clone, Copy)]
pub struct PodTemplate<'w> {
    pub image: &'w str,
    /// Name of a PersistentVolumeClaim whose volume all pods can write to.
    pub volume: &'w str,
    /// Text of the experiment, which names no other files.
    pub text: &'w str,
}

/// Returns the job descriptions of Kubernetes.
pub fn scripts(job: &ClusterJob, pods: PodTemplate<'_>) -> Vec<Script> {
    let (name, file) = (to_label(&job.name), format!("{}.toml", to_label(&job.name)));
    let inside = ClusterJob {
        program: "hol".into(),
        arguments: vec![format!("{EXPERIMENT_PATH}/{file}")],
        out: format!("{VOLUME_PATH}/{name}").into(),
        ..job.clone()
    };
    let written =
        |value: &Value| serde_json::to_string_pretty(value).expect("a manifest can be serialised") + "\n";
    let experiment = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name },
        "data": { file: pods.text },
    });
    vec![
        ("experiment.json", written(&experiment)),
        ("parts.json", written(&parts(&inside, pods))),
        ("merge.json", written(&merge(&inside, pods))),
        (SUBMIT_SCRIPT, submit(job)),
    ]
}

/// Returns the Kubernetes job that has an index for each part. If one index fails, the others continue; a deleted
/// pod is replaced.
fn parts(job: &ClusterJob, pods: PodTemplate<'_>) -> Value {
    let command = format!("n=$((JOB_COMPLETION_INDEX + 1))\nexec {}", job.part_command());
    let mut manifest = manifest(job, pods, "part", &command, job.jobs);
    let spec = json!({
        "completionMode": "Indexed",
        "completions": job.part_count,
        "parallelism": job.part_count,
        "backoffLimitPerIndex": 3,
        "maxFailedIndexes": job.part_count,
    });
    let into = manifest["spec"].as_object_mut().expect("the spec of a manifest is an object");
    into.extend(spec.as_object().expect("the spec is an object").clone());
    manifest
}

fn merge(job: &ClusterJob, pods: PodTemplate<'_>) -> Value {
    let mut manifest = manifest(job, pods, "merge", &format!("exec {}", job.merge_command()), 1);
    manifest["spec"]["backoffLimit"] = 0.into();
    manifest
}

fn manifest(
    job: &ClusterJob,
    PodTemplate { image, volume, .. }: PodTemplate<'_>,
    role: &str,
    command: &str,
    cpus: usize,
) -> Value {
    let name = to_label(&job.name);
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "generateName": format!("{name}-{role}-") },
        "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "hol",
                "image": image,
                "command": ["/bin/sh", "-c", command],
                "resources": { "requests": { "cpu": cpus.to_string() } },
                "volumeMounts": [
                    { "name": "results", "mountPath": VOLUME_PATH },
                    { "name": "experiment", "mountPath": EXPERIMENT_PATH },
                ],
            }],
            "volumes": [
                { "name": "results", "persistentVolumeClaim": { "claimName": volume } },
                { "name": "experiment", "configMap": { "name": name } },
            ],
        } } },
    })
}

/// Returns the script that submits the parts. A Kubernetes job cannot depend on another. So, if `hol submit` waits,
/// the script also waits for the parts, and then submits the job that merges them. Otherwise it prints the command
/// for that.
fn submit(job: &ClusterJob) -> String {
    let files = quote_path(&job.scripts());
    let begin = format!(
        "#!/bin/sh\nset -e\nkubectl apply \"$@\" -f {files}/experiment.json\n\
         parts=$(kubectl create \"$@\" -o name -f {files}/parts.json)\necho \"$parts runs the parts\"\n"
    );
    let merge = format!("kubectl create \"$@\" -o name -f {files}/merge.json");
    if !job.waits {
        return format!("{begin}echo 'when it has ended, run: {}'\n", merge.replace("\"$@\" ", ""));
    }
    let over = |job| {
        format!(
            "until kubectl get \"$@\" \"${job}\" -o jsonpath='{{.status.conditions[*].type}}' | grep -Eq 'Complete|Failed'; do sleep 2; done\n"
        )
    };
    format!(
        "{begin}{}merge=$({merge})\n{}kubectl logs \"$@\" \"$merge\"\nkubectl wait \"$@\" --for=condition=complete --timeout=0 \"$merge\"\n",
        over("parts"),
        over("merge"),
    )
}

/// Converts a name to a label (RFC 1123 section 2.1) that leaves room for a suffix.
fn to_label(name: &str) -> String {
    const MAX_LABEL_LENGTH: usize = 40;
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let label: String = name.chars().map(allowed).take(MAX_LABEL_LENGTH).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "experiment".into() } else { label.into() }
}

#[cfg(test)]
mod tests {
    use super::super::cluster_job::tests::example_job;
    use super::*;

    const PODS: PodTemplate<'_> = PodTemplate { image: "lab/hol", volume: "claim", text: "messages = 9\n" };

    /// The JSON schema of a job does not restrict the values of completionMode and restartPolicy.
    #[test]
    fn part_is_an_index_of_the_job_with_retries() {
        let scripts = scripts(&example_job(), PODS);
        let job: Value = serde_json::from_str(&scripts[1].1).unwrap();
        assert_eq!(job["spec"]["completionMode"], "Indexed");
        assert_eq!(job["spec"]["completions"], 9);
        assert_eq!(job["spec"]["template"]["spec"]["restartPolicy"], "Never");
        let command = job["spec"]["template"]["spec"]["containers"][0]["command"][2].as_str().unwrap();
        assert_eq!(
            command,
            "n=$((JOB_COMPLETION_INDEX + 1))\nexec hol run /experiment/hello.toml --shard \"$n\"/9 \
             --out /results/hello-parts/\"$n\" --jobs 2"
        );
        assert_eq!(merge(&example_job(), PODS)["spec"]["backoffLimit"], 0);
    }

    #[test]
    fn names_become_valid_kubernetes_labels() {
        assert_eq!(to_label("My sweep_1.b"), "my-sweep-1-b");
        assert_eq!(to_label("-é-"), "experiment");
        assert_eq!(to_label(&"a".repeat(100)).len(), 40);
    }
}
