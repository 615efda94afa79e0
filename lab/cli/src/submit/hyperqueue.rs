//! HyperQueue: a job definition file with a task for each part, and one that depends on them.

use serde::Serialize;

use super::work::{SUBMIT, Script, Work, quote_path};

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

pub fn scripts(work: &Work) -> Vec<Script> {
    let part =
        |&number: &usize| task(work, number, format!("n={number}\n{}", work.part()), vec![], work.jobs);
    let merge = task(work, work.of + 1, work.merge(), work.left.clone(), 1);
    let job = Job { name: &work.name, task: work.left.iter().map(part).chain([merge]).collect() };
    let job = toml::to_string(&job).expect("a job is a table");
    vec![("job.toml", job), (SUBMIT, submit(work))]
}

/// A task of HyperQueue; its numbers are those of the parts, and one more.
fn task(work: &Work, id: usize, command: String, deps: Vec<usize>, cpus: usize) -> Task {
    let log = |ending| work.scripts().join(format!("task-{id}.{ending}")).to_string_lossy().into_owned();
    Task {
        id,
        command: ["/bin/sh".into(), "-c".into(), command],
        cwd: work.here.to_string_lossy().into_owned(),
        stdout: log("out"),
        stderr: log("log"),
        deps,
        request: [Request { resources: Resources { cpus } }],
    }
}

fn submit(work: &Work) -> String {
    let file = quote_path(&work.scripts().join("job.toml"));
    if !work.waits {
        return format!("#!/bin/sh\nexec hq \"$@\" job submit-file {file}\n");
    }
    // Quiet, it says the job's number and nothing else.
    format!(
        "#!/bin/sh\nset -e\njob=$(hq \"$@\" --output-mode=quiet job submit-file {file})\n\
         echo \"HyperQueue job $job\"\nexec hq \"$@\" job wait \"$job\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::work;
    use super::*;

    #[test]
    fn each_part_that_is_left_is_a_task_and_the_merge_waits_for_all() {
        let scripts = scripts(&work());
        let job: toml::Table = scripts[0].1.parse().unwrap();
        let tasks = job["task"].as_array().unwrap();
        let ids: Vec<_> = tasks.iter().map(|task| task["id"].as_integer().unwrap()).collect();
        assert_eq!(ids, [3, 7, 8, 9, 10]);
        assert_eq!(tasks[4]["deps"].as_array().unwrap().len(), 4);
        assert!(tasks[0]["command"][2].as_str().unwrap().starts_with("n=3\n/opt/hol run "));
        assert_eq!(tasks[0]["request"][0]["resources"]["cpus"].as_integer(), Some(2));
    }
}
