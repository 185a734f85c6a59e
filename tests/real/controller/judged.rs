//! Checks that a webhook answers.

use super::app::{App, ungated};
use super::world::World;
use aws_lc_rs::hmac;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest};

const CHECKED: &str = "  checks:\n    smoke: {webhook: {provider: tester, metadata: {suite: smoke}}, interval: 1s}\n";
const KEY: &str = "a key that both know";

/// A webhook that lets nobody ask who cannot sign and has no token.
#[derive(Clone, Default)]
struct Tester {
    /// What it says: fields of the answer, laid over a right one.
    says: Arc<Mutex<Value>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Tester {
    async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = axum::Router::new().route("/check", axum::routing::post(answer)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        address
    }

    fn say(&self, says: Value) {
        *self.says.lock().unwrap() = says;
    }
}

async fn answer(State(tester): State<Tester>, headers: HeaderMap, body: String) -> Result<String, StatusCode> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let signature = header("x-tidegate-signature").and_then(|text| text.strip_prefix("sha256=")).unwrap_or_default();
    let digit = |i: usize| u8::from_str_radix(signature.get(2 * i..2 * i + 2)?, 16).ok();
    let signature: Vec<u8> = (0..signature.len() / 2).filter_map(digit).collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
    let signed = hmac::verify(&key, body.as_bytes(), &signature).is_ok();
    if !signed || header("authorization") != Some("Bearer a-token") {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let asked: Value = serde_json::from_str(&body).unwrap();
    let mut said = json!({"run": asked["run"], "step": asked["step"], "verdict": "good"});
    for (field, value) in tester.says.lock().unwrap().as_object().into_iter().flatten() {
        said[field] = value.clone();
    }
    tester.asked.lock().unwrap().push(asked);
    Ok(said.to_string())
}

/// Requirement C-34: a webhook that says nothing of this version holds it, good lets it on, and bad takes it back.
#[tokio::test(flavor = "multi_thread")]
async fn c_34_a_webhook_judges_the_candidate() {
    let checked = ungated().replacen("soak: 1s}", "soak: 2s, checks: [smoke]}", 1) + CHECKED;
    let mut world = World::new("judged", &checked).await;
    let (tester, files) = (Tester::default(), tempfile::tempdir().unwrap());
    let [token, key] = ["token", "key"].map(|name| files.path().join(name));
    std::fs::write(&token, "a-token\n").unwrap();
    std::fs::write(&key, "another\n").unwrap();
    world.providers = format!(
        "  providers:\n    tester: {{webhook: {{url: \"http://{}/check\", credentialsFile: {}, hmacKeyFile: {}}}}}\n",
        tester.listen().await,
        token.display(),
        key.display(),
    );
    world.start();
    world.until_steady(Rest::Initialized).await;

    // A wrong key, which is put right without a restart; then an answer about another run.
    tester.say(json!({"run": "1-00000000"}));
    world.release(&App::new("web", 2));
    let why = world.until_condition(Reason::Inconclusive).await;
    let wanted = format!(
        "tenth: smoke has no result: provider tester is away: HTTP 401 Unauthorized; check the credentials in {}",
        token.display()
    );
    assert_eq!(why, wanted);
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    eventually_asked(&tester).await;
    let promoted = world.record().unwrap().promoted.unwrap();
    assert_eq!(promoted.run.as_str(), "0", "an answer to something else says nothing");
    tester.say(json!({}));
    let promoted = world.until_steady(Rest::Succeeded).await.promoted.unwrap();
    let asked = tester.asked.lock().unwrap().pop().unwrap();
    let name = json!({"namespace": world.space.name, "name": "web"});
    assert_eq!((&asked["rollout"], &asked["step"], &asked["check"]), (&name, &json!("tenth"), &json!("smoke")));
    assert_eq!((&asked["run"], &asked["revision"]), (&json!(promoted.run), &json!(promoted.revision)));
    assert_eq!(asked["metadata"], json!({"suite": "smoke"}));

    tester.say(json!({"verdict": "bad", "reason": "3 of 9\ntests fail"}));
    world.release(&App::new("web", 3));
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    assert_eq!(why, "tenth: smoke: 3 of 9 tests fail");
    world.settled(&[Reason::Refused]).await;
}

/// Waits until it was asked by somebody whom it let in.
async fn eventually_asked(tester: &Tester) {
    let asked = async || (!tester.asked.lock().unwrap().is_empty()).then_some(());
    crate::support::cluster::eventually("a signed question", asked).await;
}
