//! The files in the directory of a run of User-Mode Linux, which the host and the guest share by hostfs.

/// The file with the job, in the run's directory.
pub(crate) const JOB: &str = "job.json";
/// The link to the read-only directory, if the run has programs, and the name of the root image in that
/// directory.
pub(crate) const READ_ONLY: &str = "given";
pub(crate) const ROOT: &str = "root";
/// The file in the run's directory in which the guest leaves its mail.
pub(crate) const MAIL: &str = "mail";
/// The message of an interactive guest, and a file whose length is the number of messages sent.
pub(crate) const MESSAGE: &str = "letter";
pub(crate) const MESSAGE_COUNT: &str = "said";
/// The step to perform, and a file whose length is the number of the guest's turns: messages read plus steps
/// written.
pub(crate) const STEP: &str = "step";
pub(crate) const TURN_COUNT: &str = "turn";
/// A file whose length is the number of interrupts.
pub(crate) const INTERRUPT_COUNT: &str = "interrupt";
