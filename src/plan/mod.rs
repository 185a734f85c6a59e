//! Decides: from what was observed to what shall be done. Pure.

pub mod action;
