//! The binary: hands the command line to the library.

/// Trees of JSON come and go at each look at an object, and musl's allocator is slow (docs/image.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    tidegate::cli::main()
}
