//! A GitHub App as GitHub knows it: its key, and the tokens that it was given, by GitHub's own clock.
#![allow(dead_code, reason = "the unit tests and the stories ask for different parts of it")]

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};

/// The number of its user.
pub(crate) const BOT: u64 = 42;
/// What its user is called.
pub(crate) const LOGIN: &str = "tidegate-acme[bot]";
/// Where it is installed.
pub(crate) const INSTALLATION: u64 = 789;
/// What all its tokens begin with.
pub(crate) const CANARY: &str = "ghs_canary";

/// The App.
pub(crate) struct Registered {
    id: String,
    pair: KeyPair,
    /// Those that were handed out, each with its end.
    tokens: Vec<(String, DateTime<Utc>)>,
    /// What it may do.
    pub(crate) granted: Value,
    /// What the tokens were asked for with.
    pub(crate) wanted: Vec<Value>,
}

impl Registered {
    /// With a new key.
    pub(crate) fn new(id: &str) -> Self {
        let granted = json!({
            "contents": "write", "pull_requests": "write", "statuses": "write", "checks": "write", "metadata": "read",
        });
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        Self { id: id.to_owned(), pair, tokens: Vec::new(), granted, wanted: Vec::new() }
    }

    /// The key as GitHub hands it out.
    pub(crate) fn pkcs1(&self) -> String {
        // What stands before it in the other form: a version, the kind of the key, and lengths.
        pem(&self.der()[26..], "RSA PRIVATE KEY")
    }

    /// The key as `openssl pkcs8` writes it.
    pub(crate) fn pkcs8(&self) -> String {
        pem(&self.der(), "PRIVATE KEY")
    }

    fn der(&self) -> Vec<u8> {
        let der: Pkcs8V1Der<'static> = self.pair.as_der().unwrap();
        der.as_ref().to_vec()
    }

    /// What an assertion says, if it is signed with its key.
    pub(crate) fn claims(&self, assertion: &str) -> Option<Value> {
        let (said, signature) = assertion.rsplit_once('.')?;
        let (head, claims) = said.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, self.pair.public_key().as_ref());
        key.verify(said.as_bytes(), &signature).ok()?;
        let read = |part| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
        (read(head)? == json!({"alg": "RS256", "typ": "JWT"})).then(|| read(claims))?
    }

    /// Whether a token lets in now.
    pub(crate) fn lets_in(&self, token: &str, now: DateTime<Utc>) -> bool {
        self.tokens.iter().any(|(known, end)| known == token && now < *end)
    }

    /// Whether it is the one that asks: by an assertion of its own, or by a token that it was given once.
    pub(crate) fn is(&self, bearer: &str) -> bool {
        self.claims(bearer).is_some() || self.tokens.iter().any(|(known, _)| known == bearer)
    }

    /// How many tokens were handed out.
    pub(crate) fn handed_out(&self) -> usize {
        self.tokens.len()
    }

    /// From now on no token lets in that was handed out before.
    pub(crate) fn revoke(&mut self) {
        self.tokens.iter_mut().for_each(|(_, end)| *end = DateTime::UNIX_EPOCH);
    }

    /// What is answered to a call, by its path below the API: nothing if the call is let in, and about something else than the App.
    pub(crate) fn answer(
        &mut self,
        method: &str,
        path: &str,
        authorization: &str,
        body: &Value,
        now: DateTime<Utc>,
    ) -> Option<(u16, Value)> {
        let bearer = authorization.strip_prefix("Bearer ").unwrap_or_default();
        let user = LOGIN.replace('[', "%5B").replace(']', "%5D");
        let as_app =
            |said: (u16, Value)| Some(self.wrong(bearer, now).map_or(said, |why| (401, json!({"message": why}))));
        match (method, path.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["app"]) => {
                let slug = LOGIN.trim_end_matches("[bot]");
                let page = format!("https://github.com/apps/{slug}");
                as_app((200, json!({"id": 1, "slug": slug, "html_url": page})))
            }
            ("GET", ["repos", _, _, "installation"]) => as_app((200, json!({"id": INSTALLATION}))),
            ("POST", ["app", "installations", id, "access_tokens"]) => {
                if *id != INSTALLATION.to_string() {
                    return as_app((404, json!({"message": "Not Found"})));
                }
                let (token, end) = (format!("{CANARY}{}_{}", self.id, self.tokens.len()), now + TimeDelta::hours(1));
                let until = end.to_rfc3339_opts(SecondsFormat::Secs, true);
                let said = as_app((201, json!({"token": token, "expires_at": until, "permissions": self.granted})));
                if said.as_ref().is_some_and(|(status, _)| *status == 201) {
                    self.tokens.push((token, end));
                    self.wanted.push(body.clone());
                }
                said
            }
            _ if !self.lets_in(bearer, now) => Some((401, json!({"message": "Bad credentials"}))),
            // A token of an App is no user's.
            ("GET", ["user"]) => Some((403, json!({"message": "Resource not accessible by integration"}))),
            ("GET", ["users", name]) if *name == user => Some((200, json!({"id": BOT, "login": LOGIN, "type": "Bot"}))),
            _ => None,
        }
    }

    /// What is wrong with an assertion, in GitHub's words.
    fn wrong(&self, assertion: &str, now: DateTime<Utc>) -> Option<&'static str> {
        let Some(claims) = self.claims(assertion) else { return Some("A JSON web token could not be decoded") };
        let (now, time) = (now.timestamp(), |name: &str| claims[name].as_i64().unwrap());
        if claims["iss"] != *self.id {
            return Some("Integration not found");
        }
        if time("iat") > now {
            return Some(
                "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
            );
        }
        if time("exp") <= now {
            let future = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the \
                          assertion expires";
            return Some(future);
        }
        (time("exp") > now + 600).then_some("'Expiration time' claim ('exp') is too far in the future")
    }
}

fn pem(der: &[u8], kind: &str) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}
