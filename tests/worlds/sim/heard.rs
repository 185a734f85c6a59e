//! What the receiver of webhooks keeps of them.

use crate::heap;
use axum::body::Body;
use axum::http::Request;
use tidegate::forge::receiver::{PATH, Receiver};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// A tenth of all that comes. What this thread asks for and another one gives back is counted, too: some ten bytes for each.
const ROOM: usize = 1 << 20;

/// It holds one word however many come.
#[test]
fn attack_72_ten_thousand_webhooks_take_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let secret_file = dir.path().join("secret");
    std::fs::write(&secret_file, "known").unwrap();
    let (told, hears) = watch::channel(());
    let router = Receiver { secret_file, told, count: Box::new(|_| {}) }.router();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let send = |count: usize| {
        runtime.block_on(async {
            for _ in 0..count {
                let request = Request::post(PATH)
                    .header("x-gitlab-token", "known")
                    .body(Body::from(vec![b' '; 1 << 10]))
                    .unwrap();
                assert_eq!(router.clone().oneshot(request).await.unwrap().status(), 202);
            }
        });
    };
    // What is taken once is taken now.
    send(100);
    let ((), most) = heap::peak(|| send(10_000));
    assert!(most < ROOM, "{most} bytes");
    assert!(hears.has_changed().unwrap(), "whoever looks is told");
}
