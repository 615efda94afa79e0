//! The `hol` command.

fn main() -> std::process::ExitCode {
    headofline::main()
}
