//! Tips of main that nobody who may has signed (attacks 16, 87 to 90 and 92): none of them is followed. At last one is signed as it should
//! be, and is.

use super::world::{NAME, Story, manifests, run};
use super::{Row, Told, row};
use futures::FutureExt as _;

pub(super) const ROWS: &[Row] = &[
    row(87, "a tip that is not signed", "is not signed", unsigned),
    row(87, "a tip that is signed by a key which is not listed", "a key that is not trusted", unlisted),
    row(87, "a tip that is signed by a key whose time is over", "a key that is not trusted", expired),
    row(87, "a tip that is signed by a key which was taken off the list", "a key that is not trusted", revoked),
    row(88, "a signature without a certificate", "carries ", certificate),
    row(89, "a good signature of another commit", "carries ", transplanted),
    row(90, "a key with the name of one that is listed", "a key that is not trusted", named),
    row(16, "two signatures, the second of which is good", "several signatures", twice),
    row(16, "a good signature in the message", "is not signed", message),
    row(92, "the list of who may sign is gone", "list of signers", unlistable),
];

/// Makes the commit of a version, signed with a key of [`keys`] if one is named.
fn made(story: &Story, version: u8, key: Option<&str>) -> String {
    let (origin, tip) = (&story.origin, story.origin.tip("main").unwrap());
    origin.git(&["update-ref", "refs/heads/scratch", &tip]);
    let held = origin.commit("scratch", &[("shop/web.yaml", Some(manifests(version).as_bytes()))], "version");
    origin.git(&["update-ref", "-d", "refs/heads/scratch"]);
    let tree = origin.git(&["rev-parse", &format!("{held}^{{tree}}")]);
    let Some(key) = key else { return origin.git(&["commit-tree", "-p", &tip, "-m", "version", &tree]) };
    let key = format!("user.signingKey={}", story.path(key).display());
    origin.git(&["-c", "gpg.format=ssh", "-c", &key, "commit-tree", "-S", "-p", &tip, "-m", "version", &tree])
}

/// The bytes of a commit: its headers without a signature, that signature, and its message.
fn parts(story: &Story, commit: &str) -> [String; 3] {
    let text = String::from_utf8(story.origin.git_with(&["cat-file", "commit", commit], b"")).unwrap();
    let (head, message) = text.split_once("\n\n").unwrap();
    let Some((before, signature)) = head.split_once("\ngpgsig ") else {
        return [format!("{head}\n"), String::new(), message.to_owned()];
    };
    [format!("{before}\n"), format!("gpgsig {signature}\n"), message.to_owned()]
}

/// Lets main be there, and waits until it is refused; why.
async fn offered(story: &mut Story, commit: &str) -> String {
    story.origin.git(&["update-ref", "refs/heads/main", commit]);
    story.held("SourceUnreadable", &["UnverifiedSource: ", commit]).await
}

fn unsigned(story: &mut Story) -> Told<'_> {
    async {
        let commit = made(story, 9, None);
        offered(story, &commit).await
    }
    .boxed()
}

fn by<'a>(story: &'a mut Story, key: &'static str) -> Told<'a> {
    async move {
        let commit = made(story, 9, Some(key));
        offered(story, &commit).await
    }
    .boxed()
}

fn unlisted(story: &mut Story) -> Told<'_> {
    by(story, "mallory")
}

fn expired(story: &mut Story) -> Told<'_> {
    by(story, "old")
}

/// Of the keys of SSH a list says which count: one that was revoked is on it no more. The same tip would be followed with it.
fn revoked(story: &mut Story) -> Told<'_> {
    async {
        let (good, before) = (story.path("signers"), story.origin.tip("main").unwrap());
        let listed = std::fs::read_to_string(&good).unwrap();
        let (_, others) = listed.split_once('\n').unwrap();
        assert!(!others.contains("ana@") && others.contains("old@"), "{others}");
        std::fs::write(&good, others).unwrap();
        let commit = made(story, 9, Some("listed"));
        let told = offered(story, &commit).await;
        story.origin.git(&["update-ref", "refs/heads/main", &before]);
        let looks = story.looks().await;
        story.soon("looks", async || (story.looks().await >= looks + 2).then_some(())).await;
        std::fs::write(&good, listed).unwrap();
        told
    }
    .boxed()
}

fn named(story: &mut Story) -> Told<'_> {
    by(story, "alike")
}

/// Lets main be a commit of these headers and that message.
async fn written(story: &mut Story, headers: &str, message: &str) -> String {
    let commit = story.origin.object("commit", format!("{headers}\n{message}").as_bytes());
    offered(story, &commit).await
}

fn certificate(story: &mut Story) -> Told<'_> {
    async {
        let [headers, _, message] = parts(story, &made(story, 9, None));
        let empty = "gpgsig -----BEGIN SIGNED MESSAGE-----\n \n MAsGCSqGSIb3DQEHAg==\n -----END SIGNED MESSAGE-----\n";
        written(story, &format!("{headers}{empty}"), &message).await
    }
    .boxed()
}

fn transplanted(story: &mut Story) -> Told<'_> {
    async {
        let [_, signature, _] = parts(story, &made(story, 8, Some("listed")));
        let [headers, _, message] = parts(story, &made(story, 9, None));
        written(story, &format!("{headers}{signature}"), &message).await
    }
    .boxed()
}

fn twice(story: &mut Story) -> Told<'_> {
    async {
        let [headers, good, message] = parts(story, &made(story, 9, Some("listed")));
        let [_, bad, _] = parts(story, &made(story, 9, Some("mallory")));
        written(story, &format!("{headers}{bad}{good}"), &message).await
    }
    .boxed()
}

fn message(story: &mut Story) -> Told<'_> {
    async {
        let [headers, signature, message] = parts(story, &made(story, 9, Some("listed")));
        written(story, &headers, &format!("{signature}\n{message}")).await
    }
    .boxed()
}

fn unlistable(story: &mut Story) -> Told<'_> {
    async {
        std::fs::rename(story.path("signers"), story.path("signers.kept")).unwrap();
        let commit = made(story, 9, Some("listed"));
        story.origin.git(&["update-ref", "refs/heads/main", &commit]);
        story.held("SourceUnreadable", &["UnverifiedSource: ", "list of signers"]).await
    }
    .boxed()
}

/// A world in which who signs main's tip is on a list.
pub(super) async fn begin() -> Story {
    let mut story = Story::new("").await;
    let mut listed = String::new();
    for (key, name) in
        [("listed", "ana@example.test"), ("old", "old"), ("mallory", "mallory"), ("alike", "ana@example.test")]
    {
        let file = story.path(key).display().to_string();
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", &file]).await;
        let public = std::fs::read_to_string(format!("{file}.pub")).unwrap();
        match key {
            "listed" => listed += &format!("ana@example.test namespaces=\"git\" {public}"),
            "old" => listed += &format!("old@example.test valid-before=\"20200101\" {public}"),
            _ => {}
        }
    }
    std::fs::write(story.path("signers"), listed).unwrap();
    story.repository += &format!(", allowedSignersFile: {}", story.path("signers").display());
    let commit = made(&story, 1, Some("listed"));
    story.origin.git(&["update-ref", "refs/heads/main", &commit]);
    story.start("one").await;
    story.rest().await;
    story
}

/// With the list, the tip that was refused for want of it is followed.
pub(super) async fn end(story: &mut Story) {
    std::fs::rename(story.path("signers.kept"), story.path("signers")).unwrap();
    let (pull, before) = (story.asked().await, story.recorded());
    story.site.merge(NAME, &pull).await;
    story.entered(&before).await;
    story.rest().await;
    assert_eq!(story.api.reached(), ("web:9".to_owned(), 0));
}
