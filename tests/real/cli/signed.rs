//! A record that is signed: what Git itself says of it, and what becomes of one that somebody else has written.

use super::{Command, Story};
use std::path::Path;

/// Makes a key as people do; its public half.
async fn keygen(story: &Story, name: &str) -> String {
    let mut command = Command::new("ssh-keygen");
    story
        .spawn(command.current_dir(story.home.path()).args(["-q", "-t", "ed25519", "-N", "", "-f", name]))
        .await
        .ends(0);
    std::fs::read_to_string(story.home.path().join(format!("{name}.pub"))).unwrap()
}

/// Gives the controller a key; `trusted` are the others that it believes.
fn sign(story: &Story, key: &Path, trusted: &[&str]) {
    let file = story.home.path().join("installation.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    let plain = text.lines().filter(|line| !line.starts_with("  signing:")).collect::<Vec<_>>().join("\n");
    let signing = format!("\n  signing: {{keyFile: {}, trusted: {trusted:?}}}\n", key.display());
    std::fs::write(&file, plain + &signing).unwrap();
}

const STATE: &str = "tidegate/it/state";

/// Puts what that commit holds on top of another one, signed with a key of somebody else.
fn forge(story: &Story, onto: &str, held: &str, key: &Path) -> String {
    let key = format!("user.signingKey={}", key.display());
    let tree = story.origin.git(&["rev-parse", &format!("{held}^{{tree}}")]);
    let commit = ["commit-tree", "-S", "-p", onto, "-m", "go on", &tree];
    let forged = story.origin.git(&[&["-c", "gpg.format=ssh", "-c", &key][..], &commit].concat());
    story.origin.git(&["update-ref", &format!("refs/heads/{STATE}"), &forged]);
    forged
}

#[tokio::test(flavor = "multi_thread")]
async fn attack_16_98_a_forged_record_is_refused_until_a_person_with_the_key_decides() {
    let story = Story::new().await;
    let at = |name: &str| story.home.path().join(name);
    let ours = keygen(&story, "ours").await;
    keygen(&story, "mallory").await;
    let trusted = at("ours.pub").display().to_string();
    let verify = async || story.tidegate(&["state", "verify", "--trusted", &trusted]).await;
    let key = at("ours").display().to_string();

    // A record from before there was a key: nobody knows whose it is.
    story.controller().await.ends(0);
    sign(&story, &at("ours"), &[]);
    let said = story.controller().await;
    assert!(said.out.contains("ForeignState") && said.out.contains("is not signed"), "{}{}", said.out, said.err);
    said.ends(3);
    verify().await.ends(1);
    let said = story.tidegate(&["state", "adopt", "--key", &key]).await;
    assert!(said.err.contains("pass --yes"), "{}", said.err);
    said.ends(2);
    story.tidegate(&["state", "adopt", "--key", &key, "--yes", "--reason", "signing begins"]).await.ends(0);
    story.controller().await.ends(0);

    // From there on the controller signs, and Git says so.
    story.merge("example.test/podinfo:2").await;
    story.controller().await.ends(3);
    let good = story.origin.tip(STATE).unwrap();
    std::fs::write(at("allowed"), format!("tidegate@example.test {ours}")).unwrap();
    let allowed = format!("gpg.ssh.allowedSignersFile={}", at("allowed").display());
    let log = story.origin.git(&["-c", &allowed, "log", "--format=%G? %GS %s", STATE]);
    let signed = log.lines().take_while(|line| line.starts_with("G tidegate@example.test ")).count();
    assert!(signed >= 2 && log.lines().nth(signed - 1).unwrap().contains("accepted as it stands"), "{log}");
    let said = verify().await.ends(0);
    assert!(said.contains(&format!("all {signed} commits are signed by trusted keys; what lies before")), "{said}");

    // Somebody who can push there writes that nothing is open any more, signed with a key of theirs.
    let record = format!("rollouts/{}/podinfo/state.yaml", example_namespace(&story));
    let text = story.origin.git(&["show", &format!("{STATE}:{record}")]);
    let text = text.replace("approved: []", "approved: [tenth]");
    let unsigned = story.origin.commit(STATE, &[(&record, Some(format!("{text}\n").as_bytes()))], "go on");
    let said = story.controller().await;
    assert!(said.out.contains("ForeignState") && said.out.contains("is not signed"), "{}{}", said.out, said.err);
    assert!(said.err.contains("every rollout holds"), "{}", said.err);
    said.ends(3);
    let forged = forge(&story, &good, &unsigned, &at("mallory"));
    let said = story.controller().await;
    assert!(said.out.contains("a key that is not trusted"), "{}{}", said.out, said.err);
    said.ends(3);
    let said = verify().await;
    assert!(said.out.contains(&forged) && said.out.contains("1 of "), "{}", said.out);
    said.ends(1);
    let view = story.tidegate(&["state", "verify", "--trusted", &trusted, "-o", "json"]).await;
    let view: serde_json::Value = serde_json::from_str(&view.ends(1)).unwrap();
    assert_eq!((&view["commits"][0]["verdict"], &view["commits"][0]["subject"]), (&"foreign".into(), &"go on".into()));

    // Who has the key brings the record back, without force; the run is where it was, and waits for its word as before.
    story.tidegate(&["state", "restore", &good, "--key", &key, "--yes"]).await.ends(0);
    assert_eq!(story.origin.git(&["diff", "--stat", &good, STATE]), "");
    let said = story.controller().await;
    assert!(said.out.contains("Approval") && !said.out.contains("ForeignState"), "{}{}", said.out, said.err);
    said.ends(3);
    verify().await.ends(0);

    // Another key takes over: as long as the one before it is believed, nobody has to do anything.
    keygen(&story, "next").await;
    sign(&story, &at("next"), &[ours.trim()]);
    story.tidegate(&["approve", "podinfo"]).await.ends(0);
    story.controller().await.ends(0);
    assert_eq!(story.status().await["phase"], "Steady");
    verify().await.ends(1);
    let both = ["--trusted", &at("ours.pub").display().to_string(), "--trusted", &at("next.pub").display().to_string()];
    story.tidegate(&[&["state", "verify"][..], &both].concat()).await.ends(0);
}

fn example_namespace(story: &Story) -> String {
    let text = std::fs::read_to_string(story.clone().join("teams/shop/podinfo/rollout.yaml")).unwrap();
    let (_, rest) = text.split_once("namespace: ").unwrap();
    rest.split('}').next().unwrap().to_owned()
}

/// A commit with what another one holds, on top of main's tip, signed with this key; main is there then.
fn seal(story: &Story, held: &str, key: &str) {
    let (main, key) = (story.origin.tip("main").unwrap(), story.home.path().join(key));
    let key = format!("user.signingKey={}", key.display());
    let tree = story.origin.git(&["rev-parse", &format!("{held}^{{tree}}")]);
    let signed = ["-c", "gpg.format=ssh", "-c", &key, "commit-tree", "-S", "-p", &main, "-m", "looked at", &tree];
    story.origin.git(&["update-ref", "refs/heads/main", &story.origin.git(&signed)]);
}

/// From now on whoever decides in the clone signs with this key.
async fn signs_with(story: &Story, key: &str) {
    let key = story.home.path().join(key).display().to_string();
    for (name, value) in [("gpg.format", "ssh"), ("user.signingKey", &key)] {
        story.git(&story.clone(), &["config", name, value]).await;
    }
}

/// The controller goes on until it waits; what `why` says then.
async fn waits(story: &Story) -> String {
    story.controller().await.ends(3);
    story.tidegate(&["why", "podinfo"]).await.ends(0)
}

const IMAGE: &str = "teams/shop/podinfo/podinfo.yaml";

/// The manifests with another image, by Ben, on this branch; the commit.
fn by_ben(story: &Story, branch: &str, image: &str) -> String {
    let text = super::manifest().replace("example.test/podinfo:1", image);
    story.origin.commit_as("Ben <ben@example.org>", branch, &[(IMAGE, Some(text.as_bytes()))], "change")
}

/// Operations name who may sign; whoever does also signs main.
async fn lists_signers(story: &Story, names: &[&str]) {
    let at = |name: &str| story.home.path().join(name);
    let mut list = String::new();
    for name in names {
        list += &format!("{name}@example.org namespaces=\"git\" {}", keygen(story, name).await);
    }
    std::fs::write(at("allowed"), &list).unwrap();
    let installation = std::fs::read_to_string(at("installation.yaml")).unwrap();
    let named = format!("poll: 1s, allowedSignersFile: {}", at("allowed").display());
    std::fs::write(at("installation.yaml"), installation.replace("poll: 1s", &named)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn x_2_attack_74_82_without_a_git_host_the_signature_of_an_approver_opens_a_gate_and_nothing_else() {
    let story = Story::new().await;
    let at = |name: &str| story.home.path().join(name);
    // Nothing tells who approves: the gate says so.
    let policy = String::from_utf8(story.origin.files("main")["tidegate.yaml"].clone()).unwrap();
    let asks = "clusters: [home], approvers: [ana@example.org, ben@example.org]}";
    let policy = policy.replace("clusters: [home]}", asks);
    story.origin.commit("main", &[("tidegate.yaml", Some(policy.as_bytes()))], "approvers");
    story.controller().await.ends(0);
    by_ben(&story, "main", "example.test/podinfo:2");
    let why = waits(&story).await;
    assert!(why.contains("ProofUnavailable") && why.contains("repository.allowedSignersFile"), "{why}");
    let said = story.tidegate(&["approve", "podinfo"]).await;
    assert!(said.err.contains("nothing can prove it"), "{}", said.err);
    said.ends(1);

    lists_signers(&story, &["ana", "ben", "carol"]).await;
    seal(&story, "main", "carol");
    let why = waits(&story).await;
    assert!(why.contains("git merge --no-ff -S") && !why.contains("ProofUnavailable"), "{why}");

    // Somebody who may push puts the request on the branch.
    let request = story.origin.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/tidegate/it/propose"]);
    story.origin.merge(&request, "tidegate/it/decisions");
    let why = waits(&story).await;
    assert!(why.contains("is not signed") && why.contains("allowed lists who may sign"), "{why}");
    // A person is told what to set; Ben has made the version.
    let said = story.tidegate(&["approve", "podinfo"]).await;
    let told = "takes this word from ana@example.org, ben@example.org alone, and signed";
    assert!(said.err.contains(told) && said.err.contains("git config user.signingKey FILE"), "{}", said.err);
    said.ends(1);
    signs_with(&story, "ben").await;
    story.git(&story.clone(), &["fetch", "--quiet"]).await;
    let said = story.tidegate(&["approve", "podinfo", "--dry-run", "--author", "Ben <Ben@example.org>"]).await.ends(0);
    assert!(said.contains("Ben@example.org made commit") && said.contains("this will not count"), "{said}");
    let said = story.tidegate(&["approve", "podinfo", "--dry-run", "--author", "Eve <eve@example.org>"]).await.ends(0);
    assert!(!said.contains("will not count"), "{said}");
    story.tidegate(&["approve", "podinfo"]).await.ends(0);
    let why = waits(&story).await;
    assert!(why.contains("ben@example.org made commit") && why.contains("must be someone else"), "{why}");
    signs_with(&story, "carol").await;
    story.tidegate(&["approve", "podinfo"]).await.ends(0);
    let why = waits(&story).await;
    assert!(why.contains("carol@example.org signed it, and is none of the policy's approvers"), "{why}");

    signs_with(&story, "ana").await;
    story.tidegate(&["approve", "podinfo"]).await.ends(0);
    let allowed = format!("gpg.ssh.allowedSignersFile={}", at("allowed").display());
    let log = story.origin.git(&["-c", &allowed, "log", "-1", "--format=%G? %GS", "tidegate/it/decisions"]);
    assert_eq!(log, "G ana@example.org", "Git says the same");
    story.controller().await.ends(0);
    assert_eq!(story.status().await["phase"], "Steady");
    let record = format!("{STATE}:rollouts/{}/podinfo/state.yaml", example_namespace(&story));
    let record = story.origin.git(&["show", &record]);
    assert!(record.contains("proof: signature") && record.contains("login: ana@example.org"), "{record}");

    // Ana writes the next one under another address, and has signed it: it is hers.
    story.origin.git(&["branch", "next", "main"]);
    let next = by_ben(&story, "next", "example.test/podinfo:3");
    seal(&story, &next, "ana");
    waits(&story).await;
    story.tidegate(&["approve", "podinfo"]).await.ends(0);
    let why = waits(&story).await;
    assert!(why.contains("ana@example.org signed commit"), "{why}");
    // What takes back needs no signature.
    story.git(&story.clone(), &["config", "--unset", "gpg.format"]).await;
    story.tidegate(&["abort", "podinfo", "--yes"]).await.ends(0);
    story.controller().await;
    assert_eq!(story.status().await["phase"], "Steady");
}
