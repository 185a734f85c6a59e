//! What a Git host says of people: who they are, what they may do, what their reviews say, what keeps others from a branch. Values alone:
//! `forge` asks for them, `gate` judges what they come to. Pure.

pub mod branch;
pub mod review;
pub mod user;
