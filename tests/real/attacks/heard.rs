//! What comes to the ports that listen (attacks 68 to 73), and what is looked at beside it: the repository's number, the policy, the parts
//! that are shipped (15, 22, 91, 95, 96). The repository is looked at once an hour, and when a webhook is signed.

use super::world::{HOOK, NAME, Story, manifests, policy};
use super::{Row, Told, row};
use crate::tree::source_dir;
use aws_lc_rs::hmac;
use futures::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub(super) const ROWS: &[Row] = &[
    row(68, "a webhook without a signature", "401, 0 that wake", bare),
    row(68, "a webhook with another secret", "401, 0 that wake", wrong),
    row(68, "a webhook with half of its signature", "401, 0 that wake", truncated),
    row(68, "a webhook that is signed for another body", "401, 0 that wake", other_body),
    row(68, "a webhook that is sent again", "202, then 202: a look", replayed),
    row(69, "a signed webhook without end", "413, 0 that wake", endless),
    row(69, "a webhook without end or signature", "401, 0 that wake", endless_bare),
    row(70, "signed bodies that are malformed", "all 202", malformed),
    row(71, "a signed body with a pattern for an address", "all 202", pattern),
    row(72, "ten thousand webhooks", "all are heard, and few are looked for", flood),
    row(72, "hundreds of connections that say nothing", "ok, and a look", silent),
    row(73, "whoever reaches the port of the metrics", "3 pages, and nothing else", reached),
    row(73, "whoever reaches the port of the webhooks", "nothing", reached_hooks),
    row(15, "two objects of one SHA-1: what is shipped hashes with the check for them", "is linked", collision),
    row(22, "another repository of the same name", "another repository lies there", replaced),
    row(91, "a version that a tag names, where the policy wants digests", "PolicyFloor", tagged),
    row(95, "a secret among the chart's values: no template would hold it", "no Secret", chart),
    row(96, "a dependency in the place of another one: each is pinned by its hash", "are pinned", pinned),
];

/// The headers of a webhook as GitHub signs it.
fn tag(body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, HOOK.as_bytes());
    let tag = hmac::sign(&key, body);
    let hex = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256={hex}")
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Sends a webhook; what is answered.
async fn send(story: &Story, headers: &[(&'static str, String)], body: &[u8]) -> u16 {
    let mut request = client().post(format!("http://{}/webhook", story.hears().await)).body(body.to_vec());
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.send().await.unwrap().status().as_u16()
}

/// How many webhooks have waked whoever looks: each is counted before it is answered.
async fn waking(story: &Story) -> u64 {
    let numbers = story.get("metrics").await;
    let signed = |line: &str| line.strip_prefix("tidegate_webhooks_total{outcome=\"signed\"} ")?.parse().ok();
    numbers.lines().find_map(signed).expect("each outcome has its number")
}

/// What is answered to that, and how many webhooks wake whoever looks for it.
async fn heard(story: &Story, headers: &[(&'static str, String)], body: &[u8]) -> String {
    let before = waking(story).await;
    let status = send(story, headers, body).await;
    format!("{status}, {} that wake", waking(story).await - before)
}

const BODY: &[u8] = b"{\"ref\": \"refs/heads/main\"}";

fn bare(story: &mut Story) -> Told<'_> {
    async { heard(story, &[], BODY).await }.boxed()
}

fn wrong(story: &mut Story) -> Told<'_> {
    async { heard(story, &[("x-gitlab-token", format!("{HOOK}x"))], BODY).await }.boxed()
}

fn truncated(story: &mut Story) -> Told<'_> {
    async {
        let mut half = tag(BODY);
        half.truncate(39);
        heard(story, &[("x-hub-signature-256", half)], BODY).await
    }
    .boxed()
}

fn other_body(story: &mut Story) -> Told<'_> {
    async { heard(story, &[("x-hub-signature-256", tag(BODY))], b"{}").await }.boxed()
}

fn replayed(story: &mut Story) -> Told<'_> {
    async {
        let (before, signed) = (story.looks().await, [("x-hub-signature-256", tag(BODY))]);
        let first = send(story, &signed, BODY).await;
        story.soon("a look", async || (story.looks().await > before).then_some(())).await;
        let then = send(story, &signed, BODY).await;
        format!("{first}, then {then}: a look")
    }
    .boxed()
}

/// Sends a body until somebody answers; the answer's status.
async fn without_end(story: &Story, header: &str) -> String {
    let before = waking(story).await;
    let (mut answer, mut sender) = TcpStream::connect(story.hears().await).await.unwrap().into_split();
    let head = format!("POST /webhook HTTP/1.1\r\nhost: it\r\ntransfer-encoding: chunked\r\n{header}\r\n");
    sender.write_all(head.as_bytes()).await.unwrap();
    let sending = tokio::spawn(async move {
        let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x1_0000], b"\r\n"].concat();
        // Until nobody reads any more: the other end has answered, and gone.
        while sender.write_all(&chunk).await.is_ok() {}
    });
    let mut status = [0; 12];
    answer.read_exact(&mut status).await.unwrap();
    sending.abort();
    format!("{}, {} that wake", String::from_utf8_lossy(&status[9..]), waking(story).await - before)
}

fn endless(story: &mut Story) -> Told<'_> {
    async { without_end(story, &format!("x-hub-signature-256: {}\r\n", tag(BODY))).await }.boxed()
}

fn endless_bare(story: &mut Story) -> Told<'_> {
    async { without_end(story, "").await }.boxed()
}

async fn all_heard(story: &Story, bodies: &[Vec<u8>]) -> String {
    for body in bodies {
        for header in ["x-hub-signature-256", "x-gitea-signature"] {
            let tag = tag(body);
            let tag = if header == "x-gitea-signature" { tag.replace("sha256=", "") } else { tag };
            let status = send(story, &[(header, tag)], body).await;
            if status != 202 {
                return format!("{status} for {}", String::from_utf8_lossy(body));
            }
        }
    }
    "all 202".to_owned()
}

fn malformed(story: &mut Story) -> Told<'_> {
    async {
        let deep = vec![b'['; 500_000];
        let texts =
            ["", "{", "null", "{\"repository\": 1e999}", "{\"repository\": {\"url\": null}, \"commits\": {}}", "a=b&c"];
        let mut bodies: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        bodies.extend([deep, vec![0, 0xff, 0xfe, 0x80]]);
        all_heard(story, &bodies).await
    }
    .boxed()
}

fn pattern(story: &mut Story) -> Told<'_> {
    async {
        let urls = ["(.*)*$", "http://169.254.169.254/", "ext::sh -c id", "../../etc/passwd"];
        let bodies = urls
            .map(|url| serde_json::json!({"repository": {"clone_url": url, "html_url": url}}).to_string().into_bytes());
        all_heard(story, &bodies).await
    }
    .boxed()
}

fn flood(story: &mut Story) -> Told<'_> {
    async {
        let hook = format!("http://{}/webhook", story.hears().await);
        let (before, heard) = (story.looks().await, waking(story).await);
        let mut senders = JoinSet::new();
        for _ in 0..8 {
            let (hook, client) = (hook.clone(), client());
            senders.spawn(async move {
                for _ in 0..1_250 {
                    let sent = client.post(&hook).header("x-gitlab-token", HOOK).body(BODY).send().await;
                    assert_eq!(sent.unwrap().status().as_u16(), 202);
                }
            });
        }
        senders.join_all().await;
        story.soon("a look", async || (story.looks().await > before).then_some(())).await;
        let (looks, heard) = (story.looks().await - before, waking(story).await - heard);
        if heard == 10_000 && looks * 10 < heard {
            "all are heard, and few are looked for".to_owned()
        } else {
            format!("{looks} looks for {heard} webhooks")
        }
    }
    .boxed()
}

/// Connects so often to each port, and says nothing.
async fn mute(story: &Story) -> Vec<TcpStream> {
    let mut mute = Vec::new();
    for address in [story.address().await, story.hears().await] {
        for _ in 0..300 {
            mute.push(TcpStream::connect(&address).await.unwrap());
        }
    }
    mute
}

/// Whoever connects and says nothing keeps neither the kubelet nor the Git host out.
fn silent(story: &mut Story) -> Told<'_> {
    async {
        let (before, mute) = (story.looks().await, mute(story).await);
        let health = story.get("healthz").await;
        wake(story).await;
        story.soon("a look", async || (story.looks().await > before).then_some(())).await;
        drop(mute);
        format!("{}, and a look", health.trim())
    }
    .boxed()
}

fn reached(story: &mut Story) -> Told<'_> {
    async {
        let found = answered(story, story.address().await).await;
        if found == [("GET", "metrics", 200), ("GET", "healthz", 200), ("GET", "readyz", 200)] {
            return "3 pages, and nothing else".to_owned();
        }
        format!("{found:?}")
    }
    .boxed()
}

fn reached_hooks(story: &mut Story) -> Told<'_> {
    async {
        let found = answered(story, story.hears().await).await;
        if found.is_empty() { "nothing".to_owned() } else { format!("{found:?}") }
    }
    .boxed()
}

/// What somebody without a secret is answered at an address, beside that it is not there, or that they are not let in.
async fn answered(story: &Story, address: String) -> Vec<(&'static str, &'static str, u16)> {
    let mut found = Vec::new();
    let paths = [
        "metrics",
        "healthz",
        "readyz",
        "",
        "config",
        "debug/pprof/heap",
        "debug/vars",
        "..%2ftoken",
        "../token",
        "webhook",
    ];
    for path in paths {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let url = format!("http://{address}/{path}");
            let answer = client().request(method.parse().unwrap(), url).body("{}").send().await.unwrap();
            let status = answer.status().as_u16();
            let text = format!("{:?} {}", answer.headers().clone(), answer.text().await.unwrap());
            let secrets = story.secrets();
            assert!(secrets.iter().all(|secret| !text.contains(secret)), "{method} /{path}: {text}");
            if !matches!(status, 401 | 404 | 405) {
                found.push((method, path, status));
            }
        }
    }
    found
}

/// No input can be brought here: to make two objects of Git that have one SHA-1 takes 2^61 steps, as the published pairs are no objects.
fn collision(_: &mut Story) -> Told<'_> {
    async {
        let says = b"SHA1 collision attack detected";
        let program = std::fs::read(crate::support::PROGRAM).unwrap();
        let is = program.windows(says.len()).any(|bytes| bytes == says);
        format!("the check for collisions {}", if is { "is linked" } else { "is missing" })
    }
    .boxed()
}

/// Lets the controller look.
async fn wake(story: &Story) {
    assert_eq!(send(story, &[("x-gitlab-token", HOOK.to_owned())], BODY).await, 202);
}

fn replaced(story: &mut Story) -> Told<'_> {
    async {
        story.gitlab().renumber(NAME, 8);
        story.release("stranger", 9);
        wake(story).await;
        let told = story.held("RepositoryReplaced", &["another repository lies there"]).await;
        story.release("owner", 1);
        story.gitlab().renumber(NAME, 7);
        story
            .soon("ours again", async || {
                wake(story).await;
                (!story.get("metrics").await.contains("tidegate_waiting{reason=\"RepositoryReplaced\"} 1"))
                    .then_some(())
            })
            .await;
        told
    }
    .boxed()
}

fn tagged(story: &mut Story) -> Told<'_> {
    async {
        let files = [("tidegate.yaml", policy(", floors: {images: digest}")), ("shop/web.yaml", manifests(2))];
        story.commit("owner", &files);
        wake(story).await;
        story.waits("PolicyFloor").await
    }
    .boxed()
}

fn chart(_: &mut Story) -> Told<'_> {
    async {
        let templates = std::fs::read_dir(source_dir().join("charts/tidegate/templates")).unwrap();
        let texts = templates.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default());
        let makes = |text: &String| text.lines().any(|line| line.trim() == "kind: Secret" || line.contains("b64enc"));
        let made = texts.filter(makes).count();
        if made == 0 { "no Secret".to_owned() } else { format!("{made} templates with a Secret") }
    }
    .boxed()
}

fn pinned(_: &mut Story) -> Told<'_> {
    async {
        let lock = std::fs::read_to_string(source_dir().join("Cargo.lock")).unwrap();
        let (_, packages) = lock.split_once("\n[[package]]\n").unwrap();
        let loose: Vec<&str> = packages
            .split("\n[[package]]\n")
            .filter(|package| !package.contains("\nchecksum = ") && !package.starts_with("name = \"tidegate"))
            .collect();
        if loose.is_empty() { "all are pinned".to_owned() } else { format!("loose: {loose:#?}") }
    }
    .boxed()
}

/// A world at rest that looks when it is told to.
pub(super) async fn begin() -> Story {
    let mut story = Story::new("").await;
    let seldom = format!("poll: 1h, webhookSecretFile: {}", story.path("hook").display());
    story.repository = story.repository.replace("poll: 1s", &seldom).replace("forge: {", "forge: {repositoryId: 7, ");
    story.start("one").await;
    story.rest().await;
    story
}

/// What is right goes on beside whoever says nothing: a version is told of by a webhook, and comes to its end.
pub(super) async fn end(story: &mut Story) {
    let mute = mute(story).await;
    story.commit("owner", &[("tidegate.yaml", policy("")), ("shop/web.yaml", manifests(2))]);
    wake(story).await;
    let pull = story.asked().await;
    let before = story.recorded();
    story.site.approve("reviewer", NAME, &pull).await;
    story.site.merge(NAME, &pull).await;
    wake(story).await;
    story.entered(&before).await;
    story.rest().await;
    assert_eq!(story.api.reached(), ("web:2".to_owned(), 0));
    drop(mute);
}
