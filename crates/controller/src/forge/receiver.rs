//! Hears from the Git host that something has happened there. What a webhook says is not read: one that is signed lets the
//! next looks at the repository and at the host come at once, and nothing else. So a copy of it that is sent again, or one that is made up by who knows the secret,
//! costs one look at each.
//!
//! Signatures: [GitHub](https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries) signs with
//! `X-Hub-Signature-256`, Gitea and Forgejo with `X-Gitea-Signature` as well, GitLab sends the secret itself as `X-Gitlab-Token`.

use super::host::Token;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use futures::StreamExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Where webhooks are sent to.
pub const PATH: &str = "/webhook";
/// The longest one, in bytes (attack 69). GitHub sends 25 MB at most, and cuts what does not fit; a push of that size is found
/// by the poll.
const LONGEST: usize = 1 << 20;
/// Within this time it has to be here.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What became of a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// It wakes the poll.
    Signed,
    /// It is not signed, or not with our secret.
    Unsigned,
    /// It is too long, or came too slowly.
    CutOff,
    /// Our own secret cannot be read.
    NoSecret,
}

impl Delivery {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Signed, Self::Unsigned, Self::CutOff, Self::NoSecret];

    /// As metrics call it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Signed => "signed",
            Self::Unsigned => "unsigned",
            Self::CutOff => "cut-off",
            Self::NoSecret => "no-secret",
        }
    }
}

/// Told of each webhook.
pub type Count = Box<dyn Fn(Delivery) + Send + Sync>;

/// What webhooks are checked against, and who is told.
pub struct Receiver {
    /// The file with the secret: one line. It is read for each webhook, so that a new one counts at once.
    pub secret_file: PathBuf,
    /// Whoever looks is woken. It holds one word however many come (attack 72).
    pub told: watch::Sender<()>,
    /// Counts them.
    pub count: Count,
}

impl Receiver {
    /// The part of a web server that hears.
    pub fn router(self) -> Router {
        Router::new().route(PATH, post(receive)).with_state(Arc::new(self))
    }

    async fn judge(&self, headers: &HeaderMap, body: Body) -> Delivery {
        let Some(proof) = Proof::of(headers) else { return Delivery::Unsigned };
        let secret = match Token::read(&self.secret_file).await {
            Ok(secret) => secret,
            Err(error) => {
                tracing::warn!(%error, "webhooks are not heard");
                return Delivery::NoSecret;
            }
        };
        let secret = secret.expose().as_bytes();
        let (known, sent) = match proof {
            Proof::Secret(sent) => (secret.to_vec(), sent),
            Proof::Tag(sent) => match timeout(TIMEOUT, tag(secret, body)).await {
                Ok(Some(tag)) => (tag, sent),
                Ok(None) | Err(_) => return Delivery::CutOff,
            },
        };
        match verify_slices_are_equal(&known, &sent) {
            Ok(()) => Delivery::Signed,
            Err(_) => Delivery::Unsigned,
        }
    }
}

/// How a host shows that it knows the secret.
enum Proof {
    /// It says it.
    Secret(Vec<u8>),
    /// By the HMAC-SHA256 of the body.
    Tag(Vec<u8>),
}

impl Proof {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let header = |name: &str| headers.get(name).map(|value| value.as_bytes());
        if let Some(signed) = header("x-hub-signature-256") {
            return unhex(signed.strip_prefix(b"sha256=")?).map(Self::Tag);
        }
        if let Some(signed) = header("x-gitea-signature") {
            return unhex(signed).map(Self::Tag);
        }
        header("x-gitlab-token").map(|secret| Self::Secret(secret.to_vec()))
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |c: &u8| char::from(*c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if text.len() != 64 {
        return None;
    }
    text.chunks(2).map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.last()?)?)).collect()
}

/// The HMAC of a body, of which nothing is kept; none if it is too long or breaks off.
async fn tag(secret: &[u8], body: Body) -> Option<Vec<u8>> {
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, secret));
    let (mut chunks, mut length) = (body.into_data_stream(), 0);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        length += chunk.len();
        if length > LONGEST {
            return None;
        }
        context.update(&chunk);
    }
    Some(context.sign().as_ref().to_vec())
}

async fn receive(State(receiver): State<Arc<Receiver>>, headers: HeaderMap, body: Body) -> (StatusCode, &'static str) {
    let delivery = receiver.judge(&headers, body).await;
    (receiver.count)(delivery);
    match delivery {
        Delivery::Signed => {
            receiver.told.send_replace(());
            (StatusCode::ACCEPTED, "heard\n")
        }
        Delivery::Unsigned => (StatusCode::UNAUTHORIZED, "not signed with the webhook's secret\n"),
        Delivery::CutOff => (StatusCode::PAYLOAD_TOO_LARGE, "longer than 1 MiB, or not here within 10 s\n"),
        Delivery::NoSecret => (StatusCode::SERVICE_UNAVAILABLE, "the webhook's secret cannot be read\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::hex::hex;
    use axum::body::Bytes;
    use axum::http::Request;
    use std::io::Error;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::ServiceExt;

    const SECRET: &str = "canary-0f8d1c";

    /// A receiver with a secret, and what it has heard.
    struct World {
        router: Router,
        told: watch::Receiver<()>,
        delivery: Arc<Mutex<Vec<Delivery>>>,
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let secret_file = directory.path().join("secret");
            std::fs::write(&secret_file, format!("{SECRET}\n")).unwrap();
            let delivery: Arc<Mutex<Vec<Delivery>>> = Arc::default();
            let (tell, told) = watch::channel(());
            let counted = Arc::clone(&delivery);
            let count = Box::new(move |delivery| counted.lock().unwrap().push(delivery));
            let router = Receiver { secret_file, told: tell, count }.router();
            Self { router, told, delivery, directory }
        }

        async fn send(&self, header: (&str, &str), body: Body) -> u16 {
            let request = Request::post(PATH).header(header.0, header.1).body(body).unwrap();
            self.router.clone().oneshot(request).await.unwrap().status().as_u16()
        }

        /// Whether whoever looks was woken since this was asked last.
        fn woke(&mut self) -> bool {
            let woke = self.told.has_changed().unwrap();
            self.told.mark_unchanged();
            woke
        }
    }

    fn signed(secret: &str, body: &str) -> String {
        let tag = aws_lc_rs::hmac::sign(&Key::new(HMAC_SHA256, secret.as_bytes()), body.as_bytes());
        hex(tag.as_ref())
    }

    #[tokio::test]
    async fn attack_68_what_is_not_signed_with_the_secret_wakes_nobody() {
        let mut world = World::new();
        let body = "{\"ref\": \"refs/heads/main\"}";
        let (good, bad) = (signed(SECRET, body), signed("another", body));
        let github = format!("sha256={good}");
        let cut = &good[..62];
        for (header, value) in [
            ("x-hub-signature-256", good.as_str()),
            ("x-hub-signature-256", &format!("sha256={bad}")),
            ("x-hub-signature-256", &format!("sha256={cut}")),
            ("x-hub-signature-256", "sha256="),
            ("x-hub-signature-256", "sha256=ä"),
            ("x-hub-signature", &github),
            ("x-gitea-signature", &bad),
            ("x-gitea-signature", cut),
            ("x-gitlab-token", "another"),
            ("x-gitlab-token", ""),
            ("x-gitlab-token", &SECRET[..12]),
            ("authorization", SECRET),
        ] {
            assert_eq!(world.send((header, value), Body::from(body)).await, 401, "{header}: {value}");
        }
        assert!(!world.woke());
        for (header, value) in
            [("x-hub-signature-256", github.as_str()), ("x-gitea-signature", &good), ("x-gitlab-token", SECRET)]
        {
            // Once more is as good as once.
            for _ in 0..2 {
                assert_eq!(world.send((header, value), Body::from(body)).await, 202, "{header}");
            }
            assert!(world.woke(), "{header}");
        }
        // What is signed is the body.
        assert_eq!(world.send(("x-gitea-signature", &good), Body::from("{}")).await, 401);
        assert_eq!(world.delivery.lock().unwrap().iter().filter(|delivery| **delivery == Delivery::Signed).count(), 6);
    }

    #[tokio::test]
    async fn the_secret_is_read_each_time_and_without_it_nothing_is_heard() {
        let world = World::new();
        let file = world.directory.path().join("secret");
        std::fs::write(&file, "newer").unwrap();
        assert_eq!(world.send(("x-gitlab-token", SECRET), Body::empty()).await, 401);
        assert_eq!(world.send(("x-gitlab-token", "newer"), Body::empty()).await, 202);
        for nothing in ["", "two words"] {
            std::fs::write(&file, nothing).unwrap();
            assert_eq!(world.send(("x-gitlab-token", nothing), Body::empty()).await, 503);
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(world.send(("x-gitlab-token", "newer"), Body::empty()).await, 503);
    }

    #[tokio::test]
    async fn attack_69_a_body_without_end_is_cut_off_while_it_comes() {
        let world = World::new();
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let endless = futures::stream::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Error>(Bytes::from_static(&[b'x'; 1 << 14]))
        });
        let tag = signed(SECRET, "");
        assert_eq!(world.send(("x-gitea-signature", &tag), Body::from_stream(endless)).await, 413);
        assert!(taken.load(Ordering::Relaxed) <= 66, "{taken:?} chunks of 16 KiB were taken");
        // Without a signature nothing of it is taken.
        let untouched = futures::stream::repeat_with(|| -> Result<Bytes, Error> { panic!("it is read") });
        assert_eq!(world.send(("x-other", "x"), Body::from_stream(untouched)).await, 401);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let world = World::new();
        let never = futures::stream::pending::<Result<Bytes, Error>>();
        assert_eq!(world.send(("x-gitea-signature", &signed(SECRET, "")), Body::from_stream(never)).await, 413);
    }

    #[tokio::test]
    async fn attack_70_71_a_signed_body_is_never_read() {
        let world = World::new();
        for body in ["", "{", "[[[[", "{\"repository\": {\"url\": \"(a+)+$\"}}", "\u{0}\u{feff}", "not JSON at all"] {
            let tag = signed(SECRET, body);
            assert_eq!(world.send(("x-gitea-signature", &tag), Body::from(body)).await, 202, "{body:?}");
        }
        let get = Request::get(PATH).header("x-gitlab-token", SECRET).body(Body::empty()).unwrap();
        assert_eq!(world.router.clone().oneshot(get).await.unwrap().status().as_u16(), 405);
    }

    #[tokio::test]
    async fn attack_72_however_many_come_one_word_is_left() {
        let mut world = World::new();
        for _ in 0..10_000 {
            assert_eq!(world.send(("x-gitlab-token", SECRET), Body::empty()).await, 202);
        }
        assert!(world.woke());
        assert!(!world.woke());
    }
}
