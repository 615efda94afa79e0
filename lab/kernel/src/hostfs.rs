//! The files in the directory of a run of User-Mode Linux, which the host and the guest share by hostfs.

/// The file in the run's directory with the job.
pub(crate) const JOB_FILE: &str = "job.json";
/// The link in the run's directory that leads to the read-only directory with the root image, if the run has
/// programs.
pub(crate) const READ_ONLY_LINK: &str = "given";
/// The file name of the root image in its read-only directory.
pub(crate) const ROOT_IMAGE: &str = "root";
/// The file in the run's directory to which the guest writes its result (`MailboxContent`).
pub(crate) const MAIL_FILE: &str = "mail";
/// The file with the current message of an interactive guest.
pub(crate) const MESSAGE_FILE: &str = "message";
/// The file whose length is the number of messages that the guest has sent.
pub(crate) const MESSAGE_COUNT_FILE: &str = "message-count";
/// The file with the step that the guest is to perform next.
pub(crate) const STEP_FILE: &str = "step";
/// The file whose length is the number of the guest's turns: messages that the host has read plus steps that it
/// has written.
pub(crate) const TURN_COUNT_FILE: &str = "turn-count";
/// The file whose length is the number of interrupts.
pub(crate) const INTERRUPT_COUNT_FILE: &str = "interrupt-count";
