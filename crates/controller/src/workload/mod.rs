//! What is rolled out: how its objects look in each role, how requests are split between them, and the live state that both are judged by.
//! Pure.

pub mod compare;
pub mod direct;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod inplace;
pub mod kinds;
pub mod layouts;
pub mod live;
pub mod lookup;
pub mod managers;
mod naming;
pub mod objects;
pub mod overlap;
pub mod owned;
pub mod pace;
pub mod quantity;
pub mod readiness;
pub mod routers;
pub mod selector;
pub mod tracked;
pub mod tree;
