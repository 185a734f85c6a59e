//! The room `cluster` against a real API server, as a user who has the rights of `cluster::rbac` and no others.

mod lease;
mod watch;
mod world;
mod writes;
