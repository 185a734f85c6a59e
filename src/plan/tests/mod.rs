//! The planner's tests: stories in a small world. Each ends settled, with an empty second plan.

mod affinity;
mod behaviour;
mod blind;
mod checks;
mod cluster;
mod corners;
mod crashes;
mod effect;
mod failures;
mod governed;
mod hooks;
mod jobs;
mod journeys;
mod late;
mod manifests;
mod primary;
mod promise;
mod proven;
mod references;
mod scaled;
mod service;
mod takeover;
mod tracked;
mod versioned;
mod words;
mod world;
