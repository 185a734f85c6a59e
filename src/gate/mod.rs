//! What must be open before a step is entered; evidence comes in as values. Pure.

pub mod brake;
