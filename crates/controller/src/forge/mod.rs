//! Requests for a person's decision: on any Git host as branches, and on those with an API as pull requests too. I/O, except for
//! [`branch`] and [`pull`], which say what a request says, [`budget`], which says how much may be asked, and [`settings`], which
//! says what to set there.

pub mod branch;
pub mod budget;
pub mod host;
pub mod pull;
pub mod receiver;
pub mod request;
pub mod settings;
