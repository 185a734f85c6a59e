//! What people write: files as values, parsed and validated. Pure.

pub mod decision;
pub mod desired;
pub mod duration;
pub mod files;
pub mod ids;
pub mod object;
