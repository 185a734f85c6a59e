//! Hearing what is said in one thread of a program whose other threads listen to nothing.

use std::sync::LazyLock;
use tracing::subscriber::{DefaultGuard, set_default};
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::Registry;

/// With one subscriber alone, `tracing` asks the default of the thread that comes to a place in the code first whether anybody is interested
/// in it, and believes that for all threads: one that listens to nothing would silence it for good. With two it asks them all.
static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Registry::default()));

/// That subscriber hears all that is said in this thread while the guard lives.
pub(crate) fn listen(subscriber: impl Subscriber + Send + Sync + 'static) -> DefaultGuard {
    LazyLock::force(&ANOTHER);
    set_default(subscriber)
}

#[test]
fn what_another_thread_comes_to_first_is_heard_all_the_same() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    struct Count(Arc<AtomicUsize>);
    impl<S: Subscriber> Layer<S> for Count {
        fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn say() {
        tracing::info!("said");
    }
    let count = Arc::new(AtomicUsize::new(0));
    let _guard = listen(Registry::default().with(Count(Arc::clone(&count))));
    std::thread::spawn(say).join().unwrap();
    say();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
