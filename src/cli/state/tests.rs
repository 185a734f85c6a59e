use super::*;

fn sealed(digit: char, subject: &str, verdict: SignatureVerdict, adopts: bool) -> Sealed {
    let commit = digit.to_string().repeat(40).parse().unwrap();
    let time = "2026-01-31T10:05:00Z".parse().unwrap();
    Sealed { commit, subject: subject.to_owned(), time, verdict, adopts }
}

#[test]
fn people_see_what_is_not_ours_first_and_programs_the_same() {
    let key = SigningKey::parse(include_bytes!("../../../crates/controller/src/sign/fixtures/ed25519"))
        .unwrap()
        .public()
        .clone();
    let other = SigningKey::parse(include_bytes!("../../../crates/controller/src/sign/fixtures/second"))
        .unwrap()
        .public()
        .clone();
    let good = |digit, subject| sealed(digit, subject, SignatureVerdict::Trusted(key.clone()), false);
    let all = [
        good('5', "shop/podinfo: testers → tenth (weight 10)"),
        sealed('4', "go on", SignatureVerdict::Foreign(other), false),
        sealed('3', "Update state.yaml", SignatureVerdict::Unsigned, false),
        sealed('2', "Merge", SignatureVerdict::Void("an OpenPGP signature, which is not read"), false),
        sealed('1', "the record is accepted as it stands", SignatureVerdict::Trusted(key.clone()), true),
    ];
    let shown = |sealed: &[Sealed], all: bool| {
        let view = view("tidegate/prod/state".to_owned(), sealed[0].commit.clone(), sealed, all);
        (text(&view, Ink::Plain), serde_json::to_string_pretty(&view).unwrap())
    };
    let (people, programs) = shown(&all, false);
    let texts = [people, shown(&all, true).0, shown(&all[..1], false).0, programs];
    insta::assert_snapshot!(texts.join("\n"));
}
