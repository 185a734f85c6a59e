//! Decides: from what was observed to what shall be done. Pure: a plan changes nothing.

pub mod action;
pub mod adopt;
pub mod adoption;
pub mod along;
pub mod back;
pub mod bootstrap;
pub mod checks;
pub mod clock;
pub mod context;
pub mod converge;
pub mod decisions;
pub mod deletions;
pub mod denial;
pub mod direct;
pub mod draft;
pub mod entry;
pub mod evidence;
pub mod exposure;
pub mod floor;
pub mod forecast;
pub mod forward;
pub mod guard;
pub mod hooks;
pub mod idle;
pub mod input;
pub mod introduce;
pub mod jobs;
pub mod joined;
pub mod missing;
pub mod outlook;
pub mod planner;
pub mod procedure;
pub mod proof;
pub mod renamed;
pub mod report;
pub mod requests;
pub mod retreat;
pub mod rollback;
pub mod terminate;
pub mod tracked;
pub mod troubled;
pub mod unread;
pub mod unready;
pub mod versions;

#[cfg(test)]
mod tests;
