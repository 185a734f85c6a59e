//! How people see it: metrics, health, the words of Events, objects that show rollouts. It can never change a plan.

mod connections;
pub mod dashboard;
pub mod feedback;
pub mod metrics;
pub mod projection;
pub mod server;
pub mod transition;
pub mod view;
