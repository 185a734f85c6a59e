//! The controller in this process, on threads of its own: what it still does when it is killed ends before the test goes on. A push
//! that is under way on a thread would otherwise arrive after the next controller has looked.

use crate::support::cluster::PATIENCE;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// A controller that was started.
pub(super) struct Running {
    /// `None` once it was killed.
    threads: Option<Runtime>,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) fn start(work: impl Future<Output = ()> + Send + 'static) -> Self {
        let threads = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let task = threads.spawn(work);
        Self { threads: Some(threads), task }
    }

    /// Whether it has not ended by itself, which it never should.
    pub(super) fn runs(&self) -> bool {
        !self.task.is_finished()
    }

    /// Ends it without a chance to say good-bye.
    pub(super) async fn kill(mut self) {
        self.task.abort();
        let ended = (&mut self.task).await.expect_err("it only ends by being aborted");
        assert!(ended.is_cancelled(), "{ended}");
        if let Some(threads) = self.threads.take() {
            tokio::task::spawn_blocking(move || threads.shutdown_timeout(PATIENCE)).await.unwrap();
        }
    }
}

impl Drop for Running {
    /// A test that ends, or fails, waits for nothing.
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}
