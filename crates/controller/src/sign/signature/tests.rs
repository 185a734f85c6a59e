use super::*;
use crate::sign::Signers;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../fixtures/", $name))
    };
}

const CONTENT: &[u8] = fixture!("content");

fn key() -> SigningKey {
    SigningKey::parse(fixture!("ed25519")).unwrap()
}

fn public(text: &[u8]) -> PublicKey {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

#[test]
fn we_sign_as_ssh_keygen_does() {
    let key = key();
    assert_eq!(*key.public(), public(fixture!("ed25519.pub")));
    // Such signatures have no chance in them.
    assert_eq!(format!("{}\n", key.sign(CONTENT)).as_bytes(), fixture!("ed25519.sig"));
    assert_eq!(key.public().to_string().parse(), Ok(key.public().clone()));
    assert!(key.public().fingerprint().starts_with("SHA256:"));
}

#[test]
fn attack_89_signatures_of_each_kind_of_key_hold_for_what_was_signed_alone() {
    let all: [(&[u8], &[u8]); 6] = [
        (fixture!("ed25519.pub"), fixture!("ed25519.sig")),
        (fixture!("ed25519.pub"), fixture!("sha256.sig")),
        (fixture!("ecdsa-256.pub"), fixture!("ecdsa-256.sig")),
        (fixture!("ecdsa-384.pub"), fixture!("ecdsa-384.sig")),
        (fixture!("ecdsa-521.pub"), fixture!("ecdsa-521.sig")),
        (fixture!("rsa.pub"), fixture!("rsa.sig")),
    ];
    for (key, signature) in all {
        let key = public(key);
        assert_eq!(signed_by(Some(signature), CONTENT), SignedBy::By(key.clone()), "{key:?}");
        assert_eq!(signed_by(Some(signature), b"tree 2\n"), SignedBy::Void("a signature of something else"), "{key:?}");
    }
}

#[test]
fn attack_87_88_what_proves_nothing_is_told_apart() {
    assert_eq!(signed_by(None, CONTENT), SignedBy::None);
    let void = |signature: &[u8]| match signed_by(Some(signature), CONTENT) {
        SignedBy::Void(why) => why,
        other @ (SignedBy::By(_) | SignedBy::None) => panic!("{other:?}"),
    };
    assert!(void(b"-----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----").contains("OpenPGP"));
    assert!(void(b"").contains("cannot be read"));
    assert!(void(b"-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----").contains("none of SSH for Git"));
    // A signature of a file is none of a commit.
    assert!(void(fixture!("other-namespace.sig")).contains("none of SSH for Git"));
    // Every byte counts: of whatever is changed, nothing holds.
    let bytes = unarmoured(fixture!("ed25519.sig"), KIND).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let signed_by = signed_by(Some(armoured(&changed, KIND).as_bytes()), CONTENT);
        assert!(matches!(signed_by, SignedBy::Void(_)), "byte {at}: {signed_by:?}");
        let cut = armoured(&bytes[..at], KIND);
        assert!(!void(cut.as_bytes()).is_empty());
    }
}

#[test]
fn keys_that_cannot_be_used_say_why_and_never_what_they_hold() {
    let why = |text: &[u8]| SigningKey::parse(text).err().unwrap().to_string();
    assert!(why(fixture!("locked")).contains("has a passphrase"));
    assert!(why(fixture!("ed25519.pub")).contains("no private key of OpenSSH"));
    let text = std::str::from_utf8(fixture!("ed25519")).unwrap();
    let swapped = text.replacen("AAAA", "AAAB", 2);
    assert!(why(swapped.as_bytes()).contains("damaged"));
    for bad in ["", "ssh-ed25519", "ssh-ed25519 %%%", "ssh-rsa AAAAC3NzaC1lZDI1NTE5", "ssh-dss AAAAB3NzaC1kc3M="] {
        let error = bad.parse::<PublicKey>().unwrap_err().to_string();
        assert!(error.contains("expected a line as in a *.pub file"), "{error}");
    }
}

#[test]
fn attack_90_allowed_signers_are_exact() {
    let line = |options: &str| {
        let key = key().public().to_string();
        Signers::parse(&format!("# people\n\nana@example.com {options}{key} laptop\n"))
    };
    let at = |time: &str| time.parse().unwrap();
    let name = |options: &str, time: &str| line(options).unwrap().name(key().public(), at(time)).map(str::to_owned);
    let noon = "2026-01-31T12:00:00Z";
    assert_eq!(name("", noon).as_deref(), Some("ana@example.com"));
    assert_eq!(name("namespaces=\"file,git\" ", noon).as_deref(), Some("ana@example.com"));
    assert_eq!(name("namespaces=\"file\" ", noon), None);
    assert_eq!(name("valid-before=\"20260131\" ", noon), None);
    assert_eq!(name("valid-before=\"202601311201Z\" ", noon).as_deref(), Some("ana@example.com"));
    assert_eq!(name("valid-after=20260201 ", noon), None);
    // As ssh-keygen reads and writes them: one word, divided by commas.
    assert_eq!(name("namespaces=\"git\",valid-before=\"20250101\" ", noon), None);
    assert_eq!(name("valid-after=\"20250101\",namespaces=\"git,file\" ", noon).as_deref(), Some("ana@example.com"));
    let other = public(fixture!("rsa.pub"));
    assert_eq!(line("").unwrap().name(&other, at(noon)), None);
    // A person may have several names, on one line or on several; each line counts for its own time.
    let key_line = include_str!("../fixtures/ed25519.pub").trim();
    let list =
        format!("ana@example.com,ana@home.example {key_line}\nroot valid-before=20260101 {key_line}\n*@x {key_line}\n");
    let names = Signers::parse(&list).unwrap();
    assert_eq!(names.names(key().public(), at(noon)), ["*@x", "ana@example.com", "ana@home.example"].into());
    assert_eq!(names.names(&other, at(noon)), [].into());
    for (bad, why) in [
        ("cert-authority ", "certificate authorities"),
        ("namespaces=\"git\",cert-authority ", "certificate authorities"),
        ("namespaces=\"*,!git\" ", "namespaces that are left out"),
        ("valid-after=soon ", "is no time"),
        ("\"", "a quote is not closed"),
        ("whatever ", "neither an option nor the kind of a key"),
    ] {
        let error = line(bad).unwrap_err().to_string();
        assert!(error.starts_with("line 3: ") && error.contains(why), "{error}");
    }
}
