use super::super::super::testing::{DECISIONS, STATE, World, id, manifest, moved, steady};
use super::super::{GitView, LoadedRecords, Poll, Source};
use crate::git::CommitSigning;
use crate::manifest::ids::CommitId;
use crate::record::store::print_state;
use crate::sign::SigningKey;
use crate::sign::openpgp::testing::Owner;
use std::sync::Arc;

const OURS: &[u8] = include_bytes!("../../../sign/fixtures/ed25519");
const OTHER: &[u8] = include_bytes!("../../../sign/fixtures/second");

fn key(text: &[u8]) -> Arc<SigningKey> {
    Arc::new(SigningKey::parse(text).unwrap())
}

fn ours() -> CommitSigning {
    CommitSigning::new(key(OURS), [])
}

fn signed(world: &World, cache: &str, signing: CommitSigning) -> Source {
    world.source_with(cache, |config| config.signing = Some(signing))
}

fn why(view: &GitView) -> Option<&str> {
    match &view.records {
        LoadedRecords::Unreadable(why) => Some(why),
        LoadedRecords::Read(_) => None,
    }
}

#[tokio::test]
async fn attack_98_every_new_commit_of_the_record_has_to_be_signed() {
    let world = World::new().await;
    let mut source = signed(&world, "c", ours());
    assert_eq!(why(&*moved(&mut source, None).await), None, "no record at all is no foreign one");
    let first = world.commit_signed(STATE, &[("README.md", Some("1"))], &key(OURS)).await;
    assert_eq!(why(&*moved(&mut source, None).await), None);

    // Unsigned, by another key, and a good one on top of it: none of them is acted upon.
    let unsigned = world.commit(STATE, &[("README.md", Some("2"))]).await;
    let view = moved(&mut source, Some(&first)).await;
    let found = why(&view).unwrap();
    assert!(
        found.starts_with("ForeignState: ") && found.contains(&format!("commit {unsigned} there is not signed")),
        "{found}"
    );
    world.commit_signed(STATE, &[("README.md", Some("3"))], &key(OTHER)).await;
    assert!(why(&*moved(&mut source, Some(&first)).await).unwrap().contains("a key that is not trusted"));
    world.commit_signed(STATE, &[("README.md", Some("4"))], &key(OURS)).await;
    assert!(why(&*moved(&mut source, Some(&first)).await).is_some(), "what lies below it is not ours");
    // Nor after a restart, whether or not the Lease is still there.
    for anchor in [None, Some(&first)] {
        assert!(why(&*moved(&mut signed(&world, "again", ours()), anchor).await).is_some());
    }
    // Whoever does not sign believes as before.
    assert_eq!(why(&*moved(&mut world.source("plain"), Some(&first)).await), None);

    // A person with the key accepts what is there; then it goes on, also without the Lease.
    world.vouch(STATE, None, &key(OURS)).await;
    for (source, anchor) in [(&mut source, Some(&first)), (&mut signed(&world, "d", ours()), None)] {
        assert_eq!(why(&*moved(source, anchor).await), None);
    }
}

#[tokio::test]
async fn a_tip_that_was_believed_without_a_key_is_not_believed_with_one() {
    let world = World::new().await;
    let tip = world.commit(STATE, &[("README.md", Some("1"))]).await;
    let view = moved(&mut signed(&world, "c", ours()), Some(&tip)).await;
    assert!(why(&view).unwrap().contains("is not signed"));
    // A key that was taken back is one that is not trusted; one that is still listed is.
    world.vouch(STATE, None, &key(OTHER)).await;
    assert!(why(&*moved(&mut signed(&world, "d", ours()), Some(&tip)).await).is_some());
    let both = CommitSigning::new(key(OURS), [key(OTHER).public().clone()]);
    assert_eq!(why(&*moved(&mut signed(&world, "e", both), Some(&tip)).await), None);
}

#[tokio::test]
async fn attack_20_a_replaced_branch_leads_on_from_where_it_was() {
    let world = World::new().await;
    let mut source = signed(&world, "c", ours());
    let view = moved(&mut source, None).await;
    let (state, _) = steady(&view, "a", 5);
    let (record, text) = (format!("rollouts/{}/state.yaml", id("a")), print_state(&state));
    let good = world.commit_signed(STATE, &[(&record, Some(&text))], &key(OURS)).await;
    assert_eq!(why(&*moved(&mut source, None).await), None);
    // Somebody forces the branch to a history of theirs, and the way back needs no force.
    world.commit_on(STATE, None, &[(&record, Some(&manifest("a", "a:9")))]).await;
    assert!(why(&*moved(&mut source, Some(&good)).await).unwrap().starts_with("HistoryRewritten: "));
    world.vouch(STATE, Some(&good), &key(OURS)).await;
    let view = moved(&mut signed(&world, "d", ours()), Some(&good)).await;
    assert_eq!(view.records.get(&id("a")).unwrap().state.as_ref(), Ok(&state));
}

#[tokio::test]
async fn attack_87_92_main_is_followed_only_if_someone_who_may_has_signed_its_tip() {
    let world = World::new().await;
    let list = world.dir.path().join("allowed");
    let allow = |signers: &[&[u8]]| {
        let line = |signer: &&[u8]| format!("ana@example.com {}\n", key(signer).public());
        std::fs::write(&list, signers.iter().map(line).collect::<String>()).unwrap();
    };
    let mut source = world.source_with("c", |config| config.signers_file = Some(list.clone()));
    let unread = |view: &GitView| view.main.why_unreadable().map(str::to_owned);
    let missing = unread(&*moved(&mut source, None).await).unwrap();
    assert!(missing.starts_with("UnverifiedSource: the list of signers ") && missing.contains("allowed"), "{missing}");
    assert!(matches!(source.look_up(None).await, Poll::Unchanged), "what is held is not looked at again and again");
    allow(&[OURS]);
    assert!(matches!(source.look_up(None).await, Poll::Unchanged), "nobody has signed it");

    // A signed tip vouches for all that lies behind it, and what it shows is the last good state from then on.
    world.commit_signed("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:2")))], &key(OURS)).await;
    let good = moved(&mut source, None).await;
    assert_eq!((unread(&good), good.main.rollouts().count()), (None, 2));
    let evil = manifest("a", "a:evil");
    for signer in [None, Some(key(OTHER))] {
        let files: [(&str, Option<&str>); 1] = [("teams/shop/a/app.yaml", Some(&evil))];
        match signer {
            None => drop(world.commit("main", &files).await),
            Some(key) => drop(world.commit_signed("main", &files, &key).await),
        }
        let view = moved(&mut source, None).await;
        let why = unread(&view).unwrap();
        assert!(why.starts_with("UnverifiedSource: commit ") && why.contains("lists who may sign it"), "{why}");
        assert_eq!(view.main.commit, good.main.commit);
        assert!(view.main.policies().is_some(), "the last good policy");
    }
    // The list is read anew: who is on it now counts now.
    allow(&[OURS, OTHER]);
    assert_eq!(unread(&*moved(&mut source, None).await), None);
}

#[tokio::test]
async fn attack_87_a_tip_that_is_not_believed_is_not_read_again_because_another_one_has_lost_its_key() {
    let world = World::new().await;
    let list = world.dir.path().join("allowed");
    let allow = |signers: &[&[u8]]| {
        let line = |signer: &&[u8]| format!("ana@example.com {}\n", key(signer).public());
        std::fs::write(&list, signers.iter().map(line).collect::<String>()).unwrap();
    };
    allow(&[OURS]);
    world.commit_signed("main", &[("README.md", Some("1"))], &key(OURS)).await;
    let mut source = world.source_with("c", |config| config.signers_file = Some(list.clone()));
    assert_eq!(moved(&mut source, None).await.main.why_unreadable(), None);
    world.commit_on("main", None, &[("README.md", Some("2"))]).await;
    let view = moved(&mut source, None).await;
    assert!(view.main.why_unreadable().unwrap().starts_with("history rewritten"));
    allow(&[]);
    for _ in 0..3 {
        assert!(matches!(source.look_up(None).await, Poll::Unchanged));
    }
}

#[tokio::test]
async fn attack_89_a_key_whose_time_is_over_decides_nothing_whatever_time_its_commit_gives() {
    let world = World::new().await;
    let list = world.dir.path().join("allowed");
    let line = format!("ana@example.com valid-before=\"20261126\" {}\n", key(OURS).public());
    std::fs::write(&list, line).unwrap();
    // What it says is of the day before.
    let word = world.commit_signed(DECISIONS, &[("shop/a/x.yaml", Some("x"))], &key(OURS)).await;
    let mut source = world.source_with("c", |config| config.signers_file = Some(list));
    moved(&mut source, None).await;
    for (now, lapsed) in [("2026-11-25T13:00:00Z", false), ("2026-11-27T00:00:00Z", true)] {
        let told =
            source.store().signatories(vec![word.clone()], now.parse().unwrap()).await.unwrap().remove(0).unwrap();
        assert!(told.names.contains("ana@example.com"), "who made it stays who did");
        assert_eq!(told.lapsed.is_some_and(|why| why.contains("is not valid now")), lapsed, "{now}");
    }
}

/// Commits to main, signed with OpenPGP as Git does it.
async fn commit_by(world: &World, owner: &Owner, image: &str) -> CommitId {
    let unsigned = world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", image)))]).await;
    let origin = git2::Repository::open(world.dir.path().join("origin.git")).unwrap();
    let objects = origin.odb().unwrap();
    let content = objects.read(git2::Oid::from_str(unsigned.as_str()).unwrap()).unwrap();
    let content = std::str::from_utf8(content.data()).unwrap();
    let signed = origin.commit_signed(content, &owner.sign(content.as_bytes()), None).unwrap();
    origin.reference("refs/heads/main", signed, true, "signed").unwrap();
    signed.to_string().parse().unwrap()
}

#[tokio::test]
async fn attack_87_88_with_a_keyring_main_is_followed_if_a_key_in_it_has_signed_its_tip() {
    let world = World::new().await;
    let (ana, eve) = (Owner::new(1), Owner::new(2));
    let [keyring, list] = ["keyring.asc", "allowed"].map(|name| world.dir.path().join(name));
    let fresh = |cache| world.source_with(cache, |config| config.keyring_file = Some(keyring.clone()));
    let mut source = fresh("c");
    let unread = |view: &GitView| view.main.why_unreadable().map(str::to_owned);
    let told = |view: &GitView| unread(view).unwrap();
    let missing = told(&*moved(&mut source, None).await);
    assert!(missing.starts_with("UnverifiedSource: the keyring ") && missing.contains("keyring.asc"), "{missing}");
    std::fs::write(&keyring, "ssh-ed25519 AAAA ana\n").unwrap();
    let wrong = told(&*moved(&mut fresh("a"), None).await);
    assert!(wrong.contains("line 1: this is neither armour nor a comment"), "{wrong}");
    std::fs::write(&keyring, ana.keyring()).unwrap();
    let unsigned = told(&*moved(&mut fresh("b"), None).await);
    assert!(
        unsigned.contains("is not signed; ") && unsigned.ends_with("keyring.asc lists who may sign it"),
        "{unsigned}"
    );

    let good = commit_by(&world, &ana, "a:2").await;
    let view = moved(&mut source, None).await;
    assert_eq!((unread(&view), view.main.rollouts().count()), (None, 2));
    commit_by(&world, &eve, "a:evil").await;
    let foreign = moved(&mut source, None).await;
    let wanted = format!("carries an OpenPGP signature by {}, which is not in the keyring; ", eve.fingerprint());
    assert!(told(&foreign).contains(&wanted), "{}", told(&foreign));
    assert_eq!(foreign.main.commit, Some(good), "the last good state");
    // A key of SSH counts where a list is named too, and whoever is in neither counts nowhere.
    std::fs::write(&list, format!("ben@example.test {}\n", key(OURS).public())).unwrap();
    let files: [(&str, Option<&str>); 1] = [("README.md", Some("1"))];
    world.commit_signed("main", &files, &key(OURS)).await;
    let ssh = told(&*moved(&mut source, None).await);
    assert!(ssh.contains("is signed by SHA256:") && ssh.contains("a key that is not trusted; "), "{ssh}");
    let mut both = world.source_with("d", |config| {
        (config.signers_file, config.keyring_file) = (Some(list.clone()), Some(keyring.clone()));
    });
    assert_eq!(unread(&*moved(&mut both, None).await), None);
    commit_by(&world, &ana, "a:3").await;
    assert_eq!(unread(&*moved(&mut both, None).await), None);
    // OpenPGP without a keyring says what to name; a list that cannot be read holds whoever has signed.
    let mut listed = world.source_with("e", |config| config.signers_file = Some(list.clone()));
    let unnamed = told(&*moved(&mut listed, None).await);
    assert!(unnamed.contains("no keyring is named (repository.keyringFile)"), "{unnamed}");
    std::fs::remove_file(&list).unwrap();
    let broken = told(&*moved(&mut both, None).await);
    assert!(broken.contains("the list of signers "), "{broken}");
}
