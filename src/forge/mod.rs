//! Requests for a person's word: on a plain Git host as branches, on others as pull requests as well. I/O, except for
//! [`branch`], which composes what a request says.

pub mod branch;
pub mod request;
