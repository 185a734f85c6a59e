//! The command line: one file for each subcommand, and all text that they print.

pub mod validate;
