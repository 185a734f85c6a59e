//! What people write: files as values, parsed and validated. Pure.
//!
//! ```text
//! files → yaml (spanned tree) → schema (structure, all errors at once) → raw (serde) → desired (checked)
//! ```

pub mod affinity;
pub mod canonical;
mod check;
pub use check::reach;
pub mod content;
pub mod cookie;
pub mod criterion;
pub mod cron;
pub mod decision;
pub mod desired;
pub mod diagnostic;
pub mod duration;
mod expand;
pub mod files;
pub mod fleet;
pub mod gathered;
pub mod gloo;
pub mod hex;
pub mod hook;
pub mod ids;
pub mod installation;
mod job;
pub mod kinds;
pub mod layer;
pub mod load;
pub mod measure;
pub mod object;
pub mod oid;
pub mod other;
pub mod policy;
pub mod promql;
pub mod proof;
pub mod raw;
pub mod reference;
pub mod rolling;
pub mod router;
pub mod scaler;
pub mod schema;
pub mod set;
pub mod ssh_url;
pub mod team;
pub mod time;
pub mod tracked;
pub mod traefik;
pub mod variant;
pub mod yaml;
