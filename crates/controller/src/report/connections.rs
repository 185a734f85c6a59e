//! Who is connected to the process's own web servers. The one that hears webhooks may be led outside, and the kubelet asks the other
//! whether the process lives: so whoever says nothing, or half of something, keeps nobody else out (attack 72).

use axum::Router;
use axum::serve::Listener;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinSet};
use tower::ServiceExt;

/// Within this time the head of a request has to be here, counted from the connection or from the last answer on it.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many at a time, each of which costs a descriptor. A kubelet, a Prometheus and a Git host need a handful.
const MOST: usize = 256;

/// Answers all who connect, until it is dropped. Where there are too many, the oldest connection makes room for the newest: to wait
/// for one to end would keep the kubelet waiting.
pub(super) async fn answer(mut listener: impl Listener, app: Router) -> Infallible {
    let (mut talks, mut open) = (JoinSet::new(), VecDeque::<AbortHandle>::new());
    loop {
        let (io, _) = listener.accept().await;
        while talks.try_join_next().is_some() {}
        open.retain(|one| !one.is_finished());
        if open.len() >= MOST
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        open.push_back(talks.spawn(talk(io, app.clone())));
    }
}

async fn talk(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
    let service = service_fn(move |request: Request<Incoming>| app.clone().oneshot(request));
    let mut limited = http1::Builder::new();
    limited.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    if let Err(error) = limited.serve_connection(TokioIo::new(io), service).await {
        tracing::debug!(%error, "a connection to the web server broke off");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::time::timeout;

    struct Door(UnboundedReceiver<DuplexStream>);

    impl Listener for Door {
        type Io = DuplexStream;
        type Addr = ();

        async fn accept(&mut self) -> (DuplexStream, ()) {
            (self.0.recv().await.unwrap(), ())
        }

        fn local_addr(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct World {
        door: UnboundedSender<DuplexStream>,
        _serving: JoinSet<Infallible>,
    }

    impl World {
        fn new() -> Self {
            let (door, theirs) = unbounded_channel();
            let mut serving = JoinSet::new();
            serving.spawn(answer(Door(theirs), Router::new().route("/healthz", get(|| async { "ok\n" }))));
            Self { door, _serving: serving }
        }

        fn connect(&self) -> DuplexStream {
            let (ours, theirs) = duplex(1 << 12);
            self.door.send(theirs).unwrap();
            ours
        }

        /// What is answered to this, before the connection is closed.
        async fn say(&self, words: &str) -> String {
            let (mut io, mut answer) = (self.connect(), String::new());
            io.write_all(words.as_bytes()).await.unwrap();
            // The clock stands still while anything is left to do.
            timeout(2 * PATIENCE, io.read_to_string(&mut answer)).await.expect("it is closed").unwrap();
            answer
        }
    }

    #[tokio::test(start_paused = true)]
    async fn attack_72_who_says_nothing_keeps_nobody_out() {
        let world = World::new();
        let mut silent: Vec<DuplexStream> = (0..300).map(|_| world.connect()).collect();
        let answer = world.say("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
        let closed = silent.iter_mut().map(|io| matches!(io.read_u8().now_or_never(), Some(Err(_))));
        let closed: Vec<usize> = closed.enumerate().filter_map(|(at, closed)| closed.then_some(at)).collect();
        assert_eq!(closed, (0..45).collect::<Vec<_>>(), "256 are left, that which was answered among them");
    }

    #[tokio::test(start_paused = true)]
    async fn attack_72_half_a_head_is_not_waited_for() {
        assert_eq!(World::new().say("GET /healthz HTTP/1.1\r\nhost: x\r\n").await, "");
        assert_eq!(World::new().say("").await, "");
    }
}
