//! Waiting for a condition in real time.

use std::time::Duration;

/// How long a condition may take before a test gives up: many conditions are the end of a whole run, and a machine may be slow and busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1_200);

/// Waits until `look` returns something, and returns it; panics with `what` when it takes longer than [`PATIENCE`].
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "{what}: not within {} s", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
