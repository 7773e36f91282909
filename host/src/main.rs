//! The `focus-host` executable: hands the command line to the library.

fn main() -> std::process::ExitCode {
    focus_host::cli::main()
}
