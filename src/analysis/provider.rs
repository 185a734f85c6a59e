//! Whoever answers the questions of checks.

use super::judge::{Range, Reading};
use futures::future::BoxFuture;

/// A source of measurements, such as a Prometheus.
pub trait Provider: Send + Sync {
    /// Asks once. Whoever calls limits the time; a failure is a [`Reading`] too.
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading>;
}
