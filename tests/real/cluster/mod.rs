//! The room `cluster` against a real API server, as a user who has the rights that the chart grants and no others; and what
//! does not need a real one also against the world in a process, which must not make a difference.

/// Makes tests of functions that take a [`world::World`]: one on a real cluster, one in the process.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod on_a_real_cluster {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::World::new().await).await;
            })*
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
mod watch;
pub(crate) mod world;
mod writes;
