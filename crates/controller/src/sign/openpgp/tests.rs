use super::packet::{SIGNATURE, SUBKEY};
use super::testing::{NEW, Owner, SIGNS, Word, armoured, packet, signed, subpacket};
use super::*;

/// What `make` there has made with GnuPG.
macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/openpgp/", $name))
    };
}

const CONTENT: &[u8] = include_bytes!("../fixtures/content");

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

fn now() -> DateTime<Utc> {
    at("2026-01-01T00:00:00Z")
}

/// What the judge says, as people read it.
fn judged(keys: &str, signature: &str, content: &[u8], now: DateTime<Utc>) -> Result<String, String> {
    let name = Keyring::parse(keys).unwrap().judge(signature.as_bytes(), content, now);
    name.map(|name| name.to_string()).map_err(|refused| refused.to_string())
}

#[test]
fn what_gpg_signs_with_each_kind_of_key_counts_for_what_was_signed_alone() {
    let all = [
        (fixture!("ed25519.asc"), fixture!("ed25519.sig")),
        (fixture!("rsa3072.asc"), fixture!("rsa3072.sig")),
        (fixture!("nistp256.asc"), fixture!("nistp256.sig")),
        (fixture!("nistp256.asc"), fixture!("nistp256-sha512.sig")),
        (fixture!("nistp384.asc"), fixture!("nistp384.sig")),
        (fixture!("nistp521.asc"), fixture!("nistp521.sig")),
        (fixture!("subkey.asc"), fixture!("subkey.sig")),
        (fixture!("extended.asc"), fixture!("expired.sig")),
    ];
    let everybody: String = all.iter().map(|(key, _)| format!("# a key\n\n{key}")).collect();
    for (number, (key, signature)) in all.iter().enumerate() {
        let name = judged(key, signature, CONTENT, now()).unwrap();
        assert_eq!(judged(&everybody, signature, CONTENT, now()).as_ref(), Ok(&name), "{number}");
        let refused = |keys, content| judged(keys, signature, content, now()).unwrap_err();
        assert_eq!(
            refused(key, b"tree 2\n"),
            format!("an OpenPGP signature that is not {name}'s, or of something else")
        );
        let unlisted = format!("an OpenPGP signature by {name}, which is not in the keyring");
        assert_eq!(refused(fixture!("revoked.asc"), CONTENT), unlisted);
        assert_eq!(refused("", CONTENT), unlisted);
    }
}

#[test]
fn attack_87_what_gpg_would_warn_of_does_not_count() {
    let ed25519 = fixture!("ed25519.asc");
    for (keys, signature, wanted) in [
        (fixture!("expired.asc"), fixture!("expired.sig"), "which expired on 2025-07-01"),
        (fixture!("revoked.asc"), fixture!("revoked.sig"), "which was revoked"),
        (fixture!("lost.asc"), fixture!("lost.sig"), "which was revoked"),
        (fixture!("rsa1024.asc"), fixture!("rsa1024.sig"), "which is RSA of 1024 bits, where 2048 is the least"),
        (ed25519, fixture!("sha1.sig"), "made with SHA-1, where SHA-256"),
        (ed25519, fixture!("text.sig"), "of type 0x01, where one of binary data (0x00) is expected"),
        (ed25519, fixture!("short.sig"), "that expired on 2025-06-02 12:00:00 UTC"),
        (ed25519, fixture!("message.sig"), "OpenPGP armour that holds no detached signature"),
        (ed25519, fixture!("cleartext.sig"), "OpenPGP armour that holds no detached signature"),
        (ed25519, fixture!("both.sig"), "several OpenPGP signatures"),
        (ed25519, ed25519, "OpenPGP armour that holds no detached signature"),
    ] {
        let refused = judged(keys, signature, CONTENT, now()).unwrap_err();
        assert!(refused.contains(wanted), "{refused}");
    }
    // Whoever looks while a key counts sees that it does; one that has more time later counts for what it signed before.
    let early = |keys, signature, time| judged(keys, signature, CONTENT, at(time)).is_ok();
    assert!(early(fixture!("expired.asc"), fixture!("expired.sig"), "2025-06-30T23:59:59Z"));
    assert!(early(ed25519, fixture!("short.sig"), "2025-06-02T11:59:59Z"));
    assert!(!early(fixture!("extended.asc"), fixture!("expired.sig"), "2030-01-01T12:00:00Z"));
}

#[test]
fn attack_87_every_byte_of_a_signature_counts_but_those_that_say_nothing() {
    let owner = Owner::new(1);
    let keyring = Keyring::parse(&owner.keyring()).unwrap();
    let bytes = packet(SIGNATURE, &owner.signature(0x00, CONTENT, &[]));
    let counts = |bytes: &[u8]| keyring.judge(armoured("SIGNATURE", bytes).as_bytes(), CONTENT, now());
    assert_eq!(counts(&bytes), Ok(owner.fingerprint()));
    // Six bytes before the signature begins, and six of it, before the signed part; then come none that are not signed, and the hash's beginning.
    let hash = 6 + 6 + 6 + 23 + 2;
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(counts(&changed).is_ok(), (hash..hash + 2).contains(&at), "byte {at}: {:?}", counts(&changed));
        assert!(counts(&bytes[..at]).is_err());
    }
    let text = signed(&owner.signature(0x00, CONTENT, &[]));
    let refused = |text: &str| keyring.judge(text.as_bytes(), CONTENT, now()).unwrap_err();
    assert_eq!(refused(&text.repeat(2)), KeyRefused::Several);
    assert_eq!(refused(&armoured("SIGNATURE", &bytes.repeat(2))), KeyRefused::Several);
    assert_eq!(refused(&armoured("SIGNATURE", &[bytes, owner.packet()].concat())), KeyRefused::Attached);
    assert_eq!(refused(&format!("{text}more")), KeyRefused::Damaged("this is neither armour nor a comment"));
    assert_eq!(refused(&format!("\n{text}")), KeyRefused::Attached);
    assert_eq!(refused(&text.replace("-----END", "--END")), KeyRefused::Damaged("armour that does not end"));
    assert_eq!(refused(&format!("{text}{}", " ".repeat(16 << 10))), KeyRefused::Damaged("it is longer than 16 KiB"));
    assert_eq!(refused(&armoured("SIGNATURE", &[])), KeyRefused::Damaged("it is empty"));
}

#[test]
fn attack_87_signatures_that_say_too_little_or_too_much_do_not_count() {
    let owner = Owner::new(1);
    let keyring = Keyring::parse(&owner.keyring()).unwrap();
    let refused = |body: &[u8]| keyring.judge(signed(body).as_bytes(), CONTENT, now()).unwrap_err();
    let with = |words: &[Word<'_>]| refused(&owner.signature(0x00, CONTENT, words));
    assert_eq!(with(&[(0x80 | 20, b"notation")]), KeyRefused::Critical(20));
    assert_eq!(with(&[(0x80 | 100, b"")]), KeyRefused::Critical(100));
    assert_eq!(with(&[(3, b"\0\0\x01")]), KeyRefused::Damaged("a time in it has not four octets"));
    let said = |words: &[Word<'_>]| -> Vec<u8> {
        let said: Vec<u8> = words.iter().flat_map(|word| subpacket(*word)).collect();
        [&u16::try_from(said.len()).unwrap().to_be_bytes()[..], &said].concat()
    };
    let made = SIGNS.to_be_bytes();
    let of = |begin, words: &[Word<'_>]| refused(&owner.over(begin, CONTENT, &said(words)));
    assert_eq!(of([4, 0, 22, 8], &[(2, &made)]), KeyRefused::Nameless);
    assert_eq!(of([4, 0, 22, 8], &[]), KeyRefused::Damaged("it does not say when it was made"));
    assert_eq!(of([6, 0, 22, 8], &[(2, &made)]), KeyRefused::Version(6));
    assert_eq!(of([4, 0, 22, 1], &[(2, &made)]), KeyRefused::Hash("MD5"));
    assert_eq!(of([4, 0x10, 22, 8], &[(2, &made)]), KeyRefused::Kind(0x10));
    // An algorithm that is not the key's, and a time before there was the key.
    let issuer = [&[4], owner.fingerprint().octets()].concat();
    let else_ = KeyRefused::Else(Issuer::Key(owner.fingerprint()));
    assert_eq!(of([4, 0, 1, 8], &[(2, &made), (33, &issuer)]), else_);
    let early = of([4, 0, 22, 8], &[(2, &(NEW - 1).to_be_bytes()), (33, &issuer)]);
    assert_eq!(early, KeyRefused::Key(owner.fingerprint(), Whose::Own, KeyFlaw::Younger(at("2025-01-01T00:00:00Z"))));
    // The short name is enough to find a key by; a nearly right one finds none.
    let short = |id: &[u8]| owner.over([4, 0, 22, 8], CONTENT, &said(&[(2, &made), (16, id)]));
    let id = owner.fingerprint().id().to_vec();
    assert_eq!(keyring.judge(signed(&short(&id)).as_bytes(), CONTENT, now()), Ok(owner.fingerprint()));
    assert!(matches!(refused(&short(&[id[0] ^ 1, 1, 2, 3, 4, 5, 6, 7])), KeyRefused::Unlisted(Issuer::Id(_))));
}

#[test]
fn attack_87_a_signature_from_the_future_counts_no_longer_than_its_key() {
    let owner = Owner::new(1);
    let judge = |words: &[Word<'_>]| {
        let keys = armoured("PUBLIC KEY BLOCK", &[owner.packet(), owner.named("Ana", words)].concat());
        judged(&keys, &owner.sign(CONTENT), CONTENT, at("2025-02-01T00:00:00Z"))
    };
    let until_march = 5_097_600_u32.to_be_bytes();
    assert!(judge(&[SIGNING, HALF_A_YEAR]).is_ok());
    assert!(judge(&[SIGNING, (9, &until_march)]).unwrap_err().contains("which expired on 2025-03-01"));
}

/// What becomes of a signature by `signer` where these packets are the keyring.
fn standing(signer: &Owner, packets: &[&[u8]]) -> Result<Fingerprint, (Whose, KeyFlaw)> {
    let keyring = Keyring::parse(&armoured("PUBLIC KEY BLOCK", &packets.concat())).unwrap();
    keyring.judge(signer.sign(CONTENT).as_bytes(), CONTENT, now()).map_err(|refused| {
        let KeyRefused::Key(_, whose, flaw) = refused else { panic!("{refused}") };
        (whose, flaw)
    })
}

const SIGNING: Word<'_> = (27, &[0x02]);
/// Until 2025-07-01, as seconds of a key that was made in [`NEW`].
const HALF_A_YEAR: Word<'_> = (9, &15_638_400_u32.to_be_bytes());

#[test]
fn attack_87_90_what_counts_of_a_key_is_what_its_owner_has_said_last() {
    let (ana, eve) = (Owner::new(1), Owner::new(2));
    let (key, name) = (ana.packet(), ana.named("Ana", &[SIGNING]));
    let says = |packets: &[&[u8]]| standing(&ana, &[&[&key[..]], packets].concat());
    let flaw = |packets: &[&[u8]]| says(packets).unwrap_err();
    let packet_of = |body: Vec<u8>| packet(SIGNATURE, &body);
    assert_eq!(says(&[&name]), Ok(ana.fingerprint()));
    assert_eq!(flaw(&[]), (Whose::Own, KeyFlaw::Unbound));
    assert_eq!(flaw(&[&ana.named("Ana", &[])]), (Whose::Own, KeyFlaw::NotForSigning));
    assert_eq!(flaw(&[&ana.named("Ana", &[(27, &[0x01])])]), (Whose::Own, KeyFlaw::NotForSigning));
    // What somebody else says of her, or she of somebody else.
    let hers = eve.signature(0x13, &ana.with_name("Ana"), &[SIGNING]);
    assert_eq!(flaw(&[&packet(USER, b"Ana"), &packet_of(hers)]), (Whose::Own, KeyFlaw::Unbound));
    let other = ana.signature(0x13, &ana.with_name("Eve"), &[SIGNING]);
    assert_eq!(flaw(&[&packet(USER, b"Ana"), &packet_of(other)]), (Whose::Own, KeyFlaw::Unbound));
    let else_said = ana.signature(0x1f, &ana.with_name("Ana"), &[SIGNING]);
    assert_eq!(flaw(&[&packet(USER, b"Ana"), &packet_of(else_said)]), (Whose::Own, KeyFlaw::Unbound));
    // What she has said with an old hash, or for a time that is over.
    let mut weak = ana.signature(0x13, &ana.with_name("Ana"), &[SIGNING]);
    weak[3] = 2;
    assert_eq!(flaw(&[&packet(USER, b"Ana"), &packet_of(weak)]), (Whose::Own, KeyFlaw::Unbound));
    assert_eq!(flaw(&[&ana.named("Ana", &[SIGNING, (3, &[0, 0, 0, 1])])]), (Whose::Own, KeyFlaw::Unbound));
    // A name that she has taken back; that somebody else does so means nothing.
    let taken = packet_of(ana.signature(0x30, &ana.with_name("Ana"), &[]));
    assert_eq!(flaw(&[&name, &taken]), (Whose::Own, KeyFlaw::Unbound));
    let theirs = packet_of(eve.signature(0x30, &ana.with_name("Ana"), &[]));
    assert!(says(&[&name, &theirs]).is_ok());
    // A word on the key itself that says nothing of its end does not lift what a name says of it.
    let end = KeyFlaw::Expired(at("2025-07-01T00:00:00Z"));
    let ends = ana.named("Ana", &[SIGNING, HALF_A_YEAR]);
    let later = (2, &(SIGNS + 1).to_be_bytes()[..]);
    let on_key = packet_of(ana.signature(0x1f, &ana.key_framed(), &[later]));
    assert_eq!(flaw(&[&on_key, &ends]), (Whose::Own, end));
    let long = packet_of(ana.signature(0x1f, &ana.key_framed(), &[later, (9, &[9, 0, 0, 0])]));
    assert!(says(&[&long, &ends]).is_ok());
    // Of two words in the same second the stricter one.
    assert_eq!(flaw(&[&ends, &name]), (Whose::Own, end));
    assert_eq!(flaw(&[&name, &ana.named("Ana again", &[SIGNING, HALF_A_YEAR])]), (Whose::Own, end));
    // One that is listed twice is one: the old copy does not save what the new one takes back.
    let revoked = packet_of(ana.signature(0x20, &ana.key_framed(), &[]));
    assert_eq!(flaw(&[&revoked, &name, &key, &name]), (Whose::Own, KeyFlaw::Revoked));
    assert_eq!(flaw(&[&name, &revoked]), (Whose::Own, KeyFlaw::Revoked));
    // It may be by a key that may revoke this one, which is not asked: it counts.
    let foreign = packet_of(eve.signature(0x20, &ana.key_framed(), &[]));
    assert_eq!(flaw(&[&foreign, &name]), (Whose::Own, KeyFlaw::Revoked));
}

#[test]
fn attack_87_a_subkey_signs_only_if_both_say_so() {
    let (ana, sub, eve) = (Owner::new(1), Owner::new(2), Owner::new(3));
    let name = ana.named("Ana", &[(27, &[0x01])]);
    let says = |packets: &[&[u8]]| standing(&sub, &[&[&ana.packet()[..], &name], packets].concat());
    let flaw = |packets: &[&[u8]]| says(packets).unwrap_err();
    let bound = |back: &[u8]| ana.with_subkey(&sub, &[SIGNING, (32, back)]);
    let back = sub.signature(0x19, &ana.both(&sub), &[]);
    assert_eq!(says(&[&bound(&back)]), Ok(sub.fingerprint()));
    // Nobody takes over somebody else's key by listing it below their own.
    assert_eq!(flaw(&[&ana.with_subkey(&sub, &[SIGNING])]), (Whose::Own, KeyFlaw::OneSided));
    assert_eq!(flaw(&[&bound(&ana.signature(0x19, &ana.both(&sub), &[]))]), (Whose::Own, KeyFlaw::OneSided));
    assert_eq!(flaw(&[&bound(&sub.signature(0x19, &eve.both(&sub), &[]))]), (Whose::Own, KeyFlaw::OneSided));
    assert_eq!(flaw(&[&bound(&sub.signature(0x18, &ana.both(&sub), &[]))]), (Whose::Own, KeyFlaw::OneSided));
    let stranger = packet(SIGNATURE, &eve.signature(0x18, &ana.both(&sub), &[SIGNING, (32, &back)]));
    assert_eq!(flaw(&[&packet(SUBKEY, &sub.body), &stranger]), (Whose::Own, KeyFlaw::Unbound));
    let else_said = packet(SIGNATURE, &ana.signature(0x10, &ana.both(&sub), &[SIGNING, (32, &back)]));
    assert_eq!(flaw(&[&packet(SUBKEY, &sub.body), &else_said]), (Whose::Own, KeyFlaw::Unbound));
    assert_eq!(flaw(&[&ana.with_subkey(&sub, &[(27, &[0x0c]), (32, &back)])]), (Whose::Own, KeyFlaw::NotForSigning));
    let ends = ana.with_subkey(&sub, &[SIGNING, (32, &back), HALF_A_YEAR]);
    assert!(matches!(flaw(&[&ends]), (Whose::Own, KeyFlaw::Expired(_))));
    let revoked = packet(SIGNATURE, &ana.signature(0x28, &ana.both(&sub), &[]));
    assert_eq!(flaw(&[&bound(&back), &revoked]), (Whose::Own, KeyFlaw::Revoked));
    let other = packet(SIGNATURE, &ana.signature(0x28, &ana.both(&eve), &[]));
    assert!(says(&[&bound(&back), &packet(SUBKEY, &eve.body), &other]).is_ok(), "another subkey was revoked");
    // A subkey counts no longer than its primary key, whatever it is for itself.
    let primary = |name: &[u8]| standing(&sub, &[&ana.packet(), name, &bound(&back)]).unwrap_err();
    assert!(matches!(primary(&ana.named("Ana", &[HALF_A_YEAR])), (Whose::Primary, KeyFlaw::Expired(_))));
    assert_eq!(primary(&[]), (Whose::Primary, KeyFlaw::Unbound));
    assert_eq!(
        primary(&packet(SIGNATURE, &ana.signature(0x20, &ana.key_framed(), &[]))),
        (Whose::Primary, KeyFlaw::Revoked)
    );
    let told = KeyRefused::Key(sub.fingerprint(), Whose::Primary, KeyFlaw::Revoked).to_string();
    assert_eq!(told, format!("an OpenPGP signature by {}, whose primary key was revoked", sub.fingerprint()));
}

#[test]
fn keyrings_that_cannot_be_read_say_where_and_why() {
    let owner = Owner::new(1);
    let block = |bytes: &[u8]| armoured("PUBLIC KEY BLOCK", bytes);
    let newer = [&[6], &owner.body[1..]].concat();
    for (text, wanted) in [
        ("ssh-ed25519 AAAA ana".to_owned(), "line 1: this is neither armour nor a comment"),
        (format!("# people\n\n{}", armoured("PRIVATE KEY BLOCK", b"")), "line 3: this is a private key"),
        (block(&packet(5, &owner.body)), "line 1: this is a private key"),
        (armoured("MESSAGE", b""), "line 1: this armour holds no public keys"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\nAAAA\n".to_owned(), "without a blank line before its content"),
        ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n".to_owned(), "line 1: armour that does not end"),
        (block(b"").replace("\n\n\n", "\n\n%\n"), "what is in the armour is not base64"),
        (block(&owner.packet()[..20]), "what is in the armour is cut off"),
        (block(&packet(USER, b"Ana")), "what is in the armour begins with no key"),
        (block(&packet(KEY, &owner.body[..20])), "a key that is damaged"),
        (block(&packet(KEY, &[4; 9000])), "a key of more than 8 KiB"),
        (block(&packet(KEY, &newer)), "a key of another version than 4"),
        (block(&[owner.packet(), packet(11, b"text")].concat()), "something else in the armour"),
        (block(&[owner.packet(), packet(SIGNATURE, &[4])].concat()), "a signature that is cut off"),
    ] {
        let error = Keyring::parse(&text).err().unwrap().to_string();
        assert!(error.contains(wanted) && error.contains("; expected armoured public keys"), "{error}");
    }
    // Keys for encryption and of old algorithms may stand there; what they sign is told.
    let mut dsa = owner.body.clone();
    dsa[5] = 17;
    let keys = block(&[owner.packet(), packet(SUBKEY, &dsa), owner.named("Ana", &[SIGNING])].concat());
    assert!(judged(&keys, &owner.sign(CONTENT), CONTENT, now()).is_ok());
    let issuer = [&[4], Key::read(&dsa).unwrap().fingerprint().octets()].concat();
    let said = [subpacket((2, &SIGNS.to_be_bytes())), subpacket((33, &issuer))].concat();
    let said = [&u16::try_from(said.len()).unwrap().to_be_bytes()[..], &said].concat();
    let refused = judged(&keys, &signed(&owner.over([4, 0, 17, 8], CONTENT, &said)), CONTENT, now()).unwrap_err();
    assert!(refused.contains("which is of an algorithm that is not read (17)"), "{refused}");
}
