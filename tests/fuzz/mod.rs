//! Hostile input for everything that is read: files of people, trees, our own records, what stands in the cluster.
//!
//! Each target takes so many cases, made by `arbitrary` from a seed: mostly documents of a real run with some things
//! changed in them, some made of nothing but nasty pieces, some plain bytes. No case may panic, take a time or a memory out of
//! proportion to its size, or return what breaks its promises; what is read and written again reads the same.
//!
//! The cases are the same in every run. `TIDEGATE_FUZZ=<n>` makes `n` times as many from a new seed; `TIDEGATE_FUZZ_SEED=<seed>`
//! repeats those of a seed, which every failure prints.

mod answers;
mod budget;
mod change;
mod cluster;
mod files;
mod import;
mod inside;
mod record;
mod world;
