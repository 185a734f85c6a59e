//! The controller against a real API server and a real Git server: lives of applications, each of which ends settled.
//!
//! Every life ends with [`world::World::settled`]: the promise was kept at every instant, and a new process finds nothing
//! to do.

mod app;
mod asked;
mod canary;
mod copies;
mod credentials;
mod daemon;
mod disrupted;
mod failures;
mod faults;
mod forged;
mod hands;
mod hosted;
mod journeys;
mod kept;
mod live;
mod lives;
mod measured;
mod nodes;
mod offered;
mod other;
mod outages;
mod process;
mod projected;
mod proven;
mod renamed;
mod rest;
mod rewritten;
mod rights;
mod routers;
mod running;
mod scaling;
mod served;
mod services;
mod stateful;
mod told;
mod tracked;
mod traffic;
mod unready;
mod versions;
mod world;
