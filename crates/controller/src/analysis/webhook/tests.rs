//! What comes of the answers that a webhook, or something else at its address, may give; and what it is sent.

use super::{ANSWER, WebhookClient, signature};
use crate::analysis::call::fixture::call;
use crate::analysis::call::{WebhookVerdict, body};
use crate::analysis::provider::Judges;
use crate::analysis::reading::Reading;
use crate::analysis::testing::Server;
use crate::record::state::Time;
use std::path::PathBuf;

const GOOD: &str = r#"{"run":"7-9ac41f02","step":"tenth","verdict":"good"}"#;

impl Server {
    /// What comes of the question at second 60.
    async fn judge(&self, credentials_file: Option<PathBuf>, key_file: Option<PathBuf>) -> Reading<WebhookVerdict> {
        let webhook = WebhookClient::new(&self.url("/check"), credentials_file, key_file).unwrap();
        webhook.call(&call(Time::from_timestamp(60, 0).unwrap())).await
    }
}

async fn away(server: &Server) -> String {
    let Reading::Away(why) = server.judge(None, None).await else { panic!("it is away") };
    why
}

/// RFC 4231, test case 2.
#[test]
fn a_signature_is_that_of_the_rfc() {
    let known = "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(signature("Jefe", "what do ya want for nothing?"), known);
}

#[tokio::test]
async fn a_question_is_signed_and_its_answer_is_a_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let [login, key] = ["login", "key"].map(|name| dir.path().join(name));
    let server = Server::saying(200, &[], GOOD).await;
    for (secret, line) in [("Jefe", "Jefe\n"), ("another", "another")] {
        std::fs::write(&login, "ana:hush\n").unwrap();
        std::fs::write(&key, line).unwrap();
        assert_eq!(server.judge(Some(login.clone()), Some(key.clone())).await, Reading::Said(WebhookVerdict::Good));
        let asked = server.asked().unwrap();
        assert_eq!((&*asked.uri, &*asked.body), ("/check", &*body(&call(Time::from_timestamp(60, 0).unwrap()))));
        assert_eq!(asked.header("x-tidegate-signature"), signature(secret, &asked.body));
        assert_eq!(asked.header("authorization"), "Basic YW5hOmh1c2g=");
        assert_eq!(asked.header("content-type"), "application/json");
    }
    assert_eq!(server.judge(None, None).await, Reading::Said(WebhookVerdict::Good));
    let asked = server.asked().unwrap();
    assert_eq!((asked.header("x-tidegate-signature"), asked.header("authorization")), ("", ""));
}

#[tokio::test]
async fn an_answer_of_no_use_says_why() {
    let other = GOOD.replace("tenth", "half");
    let large = format!("{GOOD}{}", " ".repeat(ANSWER));
    for (body, wanted) in [
        (other.as_bytes(), "the answer is about run \"7-9ac41f02\" and step \"half\", not about run 7-9ac41f02"),
        (large.as_bytes(), "the answer is larger than 64 KiB"),
        (b"<html>log in</html>", "the answer is not the JSON that is wanted: "),
        (b"\xff\xfe{}", "the answer is not the JSON that is wanted: "),
        (b"", "the answer is not the JSON that is wanted: "),
    ] {
        let server = Server::saying(200, &[], body).await;
        let Reading::Unusable(why) = server.judge(None, None).await else { panic!("{wanted}") };
        assert!(why.starts_with(wanted), "{why}");
    }
}

/// Requirements C-34 and X-13: whoever does not answer says nothing about the version, whatever stands in the answer.
#[tokio::test]
async fn c_34_whatever_else_is_there_is_away() {
    let bad = GOOD.replace("good", "bad");
    for (status, headers, wanted) in [
        (
            302,
            &[("location", "https://login.example.test/?back=1")][..],
            "a redirect to https://login.example.test/, which",
        ),
        (201, &[], "HTTP 201 Created"),
        (401, &[], "HTTP 401 Unauthorized; no credentials file is set"),
        (403, &[], "HTTP 403 Forbidden; no credentials file is set"),
        (404, &[], "HTTP 404 Not Found"),
        (429, &[], "HTTP 429 Too Many Requests"),
        (500, &[], "HTTP 500 Internal Server Error"),
        (503, &[], "HTTP 503 Service Unavailable"),
    ] {
        let why = away(&Server::saying(status, headers, bad.clone()).await).await;
        assert!(why.starts_with(wanted), "{why}");
    }
    let why = away(&Server::nobody().await).await;
    assert!(why.contains("refused"), "{why}");
}

#[tokio::test]
async fn who_cannot_sign_does_not_ask_and_tells_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let server = Server::saying(200, &[], GOOD).await;
    for (text, wanted) in [("\n", "it is empty"), ("hush\nhush", "it has more than one line")] {
        std::fs::write(&key, text).unwrap();
        let Reading::Away(why) = server.judge(None, Some(key.clone())).await else { panic!("{text}") };
        assert_eq!(why, format!("the HMAC key file {}: {wanted}", key.display()));
    }
    std::fs::write(&key, b"hush\xff").unwrap();
    let Reading::Away(why) = server.judge(None, Some(key.clone())).await else { panic!("no text") };
    assert!(!why.contains("hush"), "{why}");
    let Reading::Away(why) = server.judge(None, Some(dir.path().join("gone"))).await else { panic!("gone") };
    assert!(why.contains("gone: No such file"), "{why}");
    std::fs::write(&key, "hush").unwrap();
    let denied = Server::saying(401, &[], "hush").await;
    let Reading::Away(why) = denied.judge(Some(key.clone()), Some(key.clone())).await else { panic!("401") };
    assert_eq!(why, format!("HTTP 401 Unauthorized; check the credentials in {}", key.display()));
    assert!(server.asked().is_none(), "who cannot sign does not ask");
}
