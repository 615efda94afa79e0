//! HyperQueue: a job definition file with a task for each part, and a task that depends on these and joins their
//! results.

use serde::Serialize;

use super::cluster_job::{ClusterJob, SUBMIT_SCRIPT, Script, quote_path};

#[derive(Serialize)]
struct Job<'w> {
    name: &'w str,
    task: Vec<Task>,
}

#[derive(Serialize)]
struct Task {
    id: usize,
    command: [String; 3],
    cwd: String,
    stdout: String,
    stderr: String,
    deps: Vec<usize>,
    request: [Request; 1],
}

#[derive(Serialize)]
struct Request {
    resources: Resources,
}

#[derive(Serialize)]
struct Resources {
    cpus: usize,
}

/// Returns the job definition of HyperQueue.
pub fn scripts(job: &ClusterJob) -> Vec<Script> {
    let part =
        |&number: &usize| task(job, number, format!("n={number}\n{}", job.part_command()), vec![], job.jobs);
    let merge = task(job, job.part_count + 1, job.merge_command(), job.missing_parts.clone(), 1);
    let definition =
        Job { name: &job.name, task: job.missing_parts.iter().map(part).chain([merge]).collect() };
    let definition = toml::to_string(&definition).expect("a job is a table");
    vec![("job.toml", definition), (SUBMIT_SCRIPT, submit(job))]
}

/// Returns a task of HyperQueue. Its ID is the number of its part; the task that merges the results has the next ID.
fn task(job: &ClusterJob, id: usize, command: String, deps: Vec<usize>, cpus: usize) -> Task {
    let log = |ending| job.scripts().join(format!("task-{id}.{ending}")).to_string_lossy().into_owned();
    Task {
        id,
        command: ["/bin/sh".into(), "-c".into(), command],
        cwd: job.working_directory.to_string_lossy().into_owned(),
        stdout: log("out"),
        stderr: log("log"),
        deps,
        request: [Request { resources: Resources { cpus } }],
    }
}

fn submit(job: &ClusterJob) -> String {
    let file = quote_path(&job.scripts().join("job.toml"));
    if !job.waits {
        return format!("#!/bin/sh\nexec hq \"$@\" job submit-file {file}\n");
    }
    // With `--output-mode=quiet`, hq prints only the number of the job.
    format!(
        "#!/bin/sh\nset -e\njob=$(hq \"$@\" --output-mode=quiet job submit-file {file})\n\
         echo \"HyperQueue job $job\"\nexec hq \"$@\" job wait \"$job\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::cluster_job::tests::example_job;
    use super::*;

    #[test]
    fn each_missing_part_is_a_task_and_the_merge_depends_on_all() {
        let scripts = scripts(&example_job());
        let job: toml::Table = scripts[0].1.parse().unwrap();
        let tasks = job["task"].as_array().unwrap();
        let ids: Vec<_> = tasks.iter().map(|task| task["id"].as_integer().unwrap()).collect();
        assert_eq!(ids, [3, 7, 8, 9, 10]);
        assert_eq!(tasks[4]["deps"].as_array().unwrap().len(), 4);
        assert!(tasks[0]["command"][2].as_str().unwrap().starts_with("n=3\n/opt/hol run "));
        assert_eq!(tasks[0]["request"][0]["resources"]["cpus"].as_integer(), Some(2));
    }
}
