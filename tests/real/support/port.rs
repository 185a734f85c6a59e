//! A port that nobody else gets before the program that is told of it listens there, nor while that is away.

use std::net::SocketAddr;
use tokio::net::TcpSocket;

/// A port of 127.0.0.1. Who asks the kernel for any port is not given it, and who connects from one neither, as long as this lives: a
/// socket is bound to it. It does not listen, so that connections are refused until somebody else does, who may be bound beside it.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) address: SocketAddr,
    _held: TcpSocket,
}

impl Port {
    /// One that is free.
    pub(crate) fn held() -> Self {
        let held = TcpSocket::new_v4().unwrap();
        // Programs that listen ask for that too: so do this language's library, Go's, and sshd.
        held.set_reuseaddr(true).unwrap();
        held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self { address: held.local_addr().unwrap(), _held: held }
    }
}

#[tokio::test]
async fn a_port_that_is_held_refuses_until_a_listener_takes_it() {
    use tokio::net::{TcpListener, TcpStream};
    let port = Port::held();
    for _ in 0..2 {
        let refused = TcpStream::connect(port.address).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        let listener = TcpListener::bind(port.address).await.unwrap();
        let (from, to) = tokio::join!(TcpStream::connect(port.address), listener.accept());
        assert_eq!(from.unwrap().local_addr().unwrap(), to.unwrap().1);
    }
}
