//! The room `cluster` against a real API server, as a user who has the rights that the chart grants and no others; and what
//! does not need a real one also against the world in a process, which must not make a difference.

use futures::future::{LocalBoxFuture, join_all};

/// Makes of functions that take a [`world::World`] parts of what is asked of a real cluster, and a test of each in the process; what
/// takes none is only asked of a real one.
macro_rules! on_both {
    ($($test:ident),* $(,)?; $($real:ident),* $(,)?) => {
        pub(super) fn really() -> Vec<futures::future::LocalBoxFuture<'static, ()>> {
            vec![
                $(Box::pin(async { $test(World::new().await).await }),)*
                $(Box::pin($real()),)*
            ]
        }

        mod in_the_process {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::World::in_process().await).await;
            })*
        }
    };
}

mod lease;
mod secrets;
pub(crate) mod watch;
pub(crate) mod world;
mod writes;

/// All at once, in a namespace for each.
#[tokio::test]
async fn on_a_real_cluster() {
    let all: Vec<LocalBoxFuture<'static, ()>> =
        [lease::really(), secrets::really(), watch::really(), writes::really()].into_iter().flatten().collect();
    join_all(all).await;
}
