//! The files in the directory of a run of User-Mode Linux, which the host and the guest share by hostfs.

/// The file with the job, in the run's directory.
pub(crate) const JOB: &str = "job.json";
/// The way there to what it may only read, if the run has programs: the image for them.
pub(crate) const GIVEN: &str = "given";
pub(crate) const ROOT: &str = "root";
/// The file in which the guest leaves its mail there.
pub(crate) const MAIL: &str = "mail";
/// What a guest that stays says, and as many octets as it has said letters.
pub(crate) const LETTER: &str = "letter";
pub(crate) const SAID: &str = "said";
/// The step that it is to take, and as many octets as letters were heard and steps given.
pub(crate) const STEP: &str = "step";
pub(crate) const TURN: &str = "turn";
/// As many octets as it was interrupted.
pub(crate) const INTERRUPT: &str = "interrupt";
