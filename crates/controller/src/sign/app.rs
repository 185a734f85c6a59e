//! The key of a GitHub App: RSA, as GitHub hands it out, and what the App says of itself with it.

use super::wire::unarmoured;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;
use serde_json::json;
use std::ops::Range;

/// A key that an App signs with. It has no `Debug`, so that nothing can print it.
pub struct AppKey(RsaKeyPair);

/// A file that holds no key of an App. The file's text is never repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected the *.pem that GitHub hands out under \"Private keys\" of the App: RSA, without a passphrase")]
pub struct BadAppKey(&'static str);

/// What stands around the two forms of an RSA key: that of PKCS#1, which GitHub hands out, and that of PKCS#8.
const PKCS1: &str = "RSA PRIVATE KEY";
const PKCS8: &str = "PRIVATE KEY";

impl AppKey {
    /// Reads a key.
    ///
    /// # Errors
    /// When it is none, or of another kind, or has a passphrase.
    pub fn parse(text: &[u8]) -> Result<Self, BadAppKey> {
        let body = |kind| unarmoured(text, kind).map(Zeroizing::new);
        let pair = match (body(PKCS1), body(PKCS8)) {
            (Some(der), _) => RsaKeyPair::from_der(&der),
            (None, Some(der)) => RsaKeyPair::from_pkcs8(&der),
            (None, None) => return Err(BadAppKey(what_it_is(text))),
        };
        pair.map(Self).map_err(|_| BadAppKey("the private key is damaged, or none of RSA with 2048 bits or more"))
    }

    /// What lets the App in for so long, in seconds since 1970: a JSON web token (RS256) in the name of `issuer`.
    #[must_use]
    pub fn assertion(&self, issuer: &str, valid: Range<i64>) -> SecretString {
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({"iat": valid.start, "exp": valid.end, "iss": issuer});
        let said = format!("{}.{}", part(json!({"alg": "RS256", "typ": "JWT"})), part(claims));
        let mut signature = vec![0; self.0.public_modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), said.as_bytes(), &mut signature)
            .expect("signs because the key was checked when it was read, and the signature is as long as its modulus");
        format!("{said}.{}", URL_SAFE_NO_PAD.encode(signature)).into()
    }
}

/// Why a text without a key that can be read is none.
fn what_it_is(text: &[u8]) -> &'static str {
    let text = std::str::from_utf8(text).unwrap_or_default().trim_start();
    let kind = text.strip_prefix("-----BEGIN ").and_then(|rest| Some(rest.split_once("-----")?.0));
    match kind {
        Some("ENCRYPTED PRIVATE KEY") => "the private key has a passphrase, and there is nobody to type it",
        Some(PKCS1) if text.contains("ENCRYPTED") => "the private key has a passphrase, and there is nobody to type it",
        Some(PKCS1 | PKCS8) => "the private key is damaged",
        Some(kind) if kind.ends_with(PKCS8) => "the private key is of another kind than RSA",
        Some(_) | None => "this is no private key in PEM",
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Registered;
    use super::super::wire::armoured;
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn both_forms_of_a_key_say_the_same() {
        let there = Registered::new("123");
        let [one, eight] = [there.pkcs1(), there.pkcs8()].map(|pem| {
            let key = AppKey::parse(format!("\n{pem}\r\n").as_bytes()).unwrap();
            key.assertion("123", 1_000..1_600).expose_secret().to_owned()
        });
        assert_eq!(one, eight);
        assert_eq!(there.claims(&one).unwrap(), json!({"iat": 1000, "exp": 1600, "iss": "123"}));
        let (said, _) = one.rsplit_once('.').unwrap();
        let forged = format!("{said}.{}", URL_SAFE_NO_PAD.encode([0; 256]));
        assert_eq!(there.claims(&forged), None);
    }

    #[test]
    fn what_is_no_key_is_told_without_being_repeated() {
        let there = Registered::new("123");
        let short = there.pkcs1().replace("\nMII", "\n+++");
        for (text, why) in [
            (String::new(), "no private key in PEM"),
            ("ghp_canary".to_owned(), "no private key in PEM"),
            (armoured(b"canary", "PUBLIC KEY"), "no private key in PEM"),
            (armoured(b"canary", "EC PRIVATE KEY"), "another kind than RSA"),
            (armoured(b"canary", "OPENSSH PRIVATE KEY"), "another kind than RSA"),
            (armoured(b"canary", "ENCRYPTED PRIVATE KEY"), "passphrase"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\ncanary\n-----END RSA PRIVATE KEY-----"
                    .to_owned(),
                "passphrase",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\\ncanary\\n-----END RSA PRIVATE KEY-----".to_owned(), "damaged"),
            (armoured(b"canary", PKCS1), "damaged"),
            (armoured(b"canary", PKCS8), "damaged"),
            (short, "damaged"),
        ] {
            let error = AppKey::parse(text.as_bytes()).err().unwrap().to_string();
            assert!(error.contains(why) && error.contains("*.pem") && !error.contains("canary"), "{why} in {error}");
        }
    }
}
