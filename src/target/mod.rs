//! What is rolled out, and the live state that it is judged by. Pure.

pub mod live;
pub mod owned;
