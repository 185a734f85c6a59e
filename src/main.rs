//! The binary: hands the command line to the library.

fn main() -> std::process::ExitCode {
    tidegate::cli::main()
}
