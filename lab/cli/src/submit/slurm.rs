//! SLURM: an array of jobs, and a job that runs after them.

use super::cluster_job::{ClusterJob, SUBMIT_SCRIPT, Script, quote, quote_path};

/// Shell command that writes a line to a job's log whenever the job starts, because restarts append to the same
/// log.
const START_LINE: &str = "echo \"part $n on $SLURMD_NODENAME, restarted ${SLURM_RESTART_COUNT:-0} times\"\n";

/// Requeues the job up to three times if its process was killed. SLURM itself restarts jobs only after a node failure.
/// A cancelled job does not get here, because SLURM ends this shell, too.
const REQUEUE: &str = "\
code=$?
if [ $code -eq 137 ] && [ \"${SLURM_RESTART_COUNT:-0}\" -lt 3 ]; then
    scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" && sleep 60
fi
exit $code
";

/// Returns the scripts that submit the job, run its parts and merge their results.
pub fn scripts(job: &ClusterJob) -> Vec<Script> {
    let part = format!("#!/bin/sh\nn=$SLURM_ARRAY_TASK_ID\n{START_LINE}{}\n{REQUEUE}", job.part_command());
    vec![
        ("part.sh", part),
        ("merge.sh", format!("#!/bin/sh\n{}\n", job.merge_command())),
        (SUBMIT_SCRIPT, submit(job)),
    ]
}

/// Returns the script that submits the parts and the job that merges them. The merging job runs even if parts fail, and
/// reports missing runs.
fn submit(job: &ClusterJob) -> String {
    let ClusterJob { name, jobs, waits, working_directory, .. } = job;
    let scripts = quote_path(&job.scripts());
    let sbatch = format!("sbatch --parsable --open-mode=append --chdir={}", quote_path(working_directory));
    let wait = if *waits { " --wait" } else { "" };
    let (after, parts) = if job.missing_parts.is_empty() {
        ("", String::new())
    } else {
        let array = format!(
            "parts=$({sbatch} --job-name={} --array={} --cpus-per-task={jobs} --requeue \\\n    \
             --output={scripts}/part-%a.log \"$@\" {scripts}/part.sh)\n\
             echo \"SLURM job ${{parts%%;*}} runs the parts\"\n",
            quote(name),
            job.missing_part_ranges(),
        );
        (" --dependency=afterany:\"${parts%%;*}\"", array)
    };
    let merge = quote(&format!("{name}-merge"));
    format!(
        "#!/bin/sh\nset -e\n{parts}{sbatch} --job-name={merge}{after}{wait} --output={scripts}/merge.log \\\n    \
         \"$@\" {scripts}/merge.sh >&2\n"
    )
}

#[cfg(test)]
mod tests {
    use super::super::cluster_job::tests::example_job;
    use super::*;

    #[test]
    fn missing_parts_are_an_array_and_the_merge_depends_on_it() {
        let scripts = scripts(&example_job());
        let names: Vec<_> = scripts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["part.sh", "merge.sh", "submit.sh"]);
        let submit = &scripts[2].1;
        assert!(submit.contains("--array=3,7-9 --cpus-per-task=2"), "{submit}");
        assert!(submit.contains("--dependency=afterany:\"${parts%%;*}\""), "{submit}");
        assert!(submit.contains("--output='/home/me/results/my hello-parts/submit'/part-%a.log"), "{submit}");
    }

    #[test]
    fn finished_parts_are_not_submitted_again() {
        let done = submit(&ClusterJob { missing_parts: vec![], waits: true, ..example_job() });
        assert!(
            !done.contains("--array") && !done.contains("--dependency") && done.contains("--wait"),
            "{done}"
        );
    }
}
