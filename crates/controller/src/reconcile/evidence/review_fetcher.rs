//! Asking a Git host who approved a decision: each in a task of its own. What Git can tell is asked of Git.

use super::{Collector, SignatureVerifier, of_rollout};
use crate::forge::budget::Pause;
use crate::forge::host::{Host, HostError, Opened, Pulled, Shown};
use crate::gate::proof::{Author, MergedPull, ProofEvidence, ReviewEvidence};
use crate::git::{Authorship, Changed, GitError, RefName, Store};
use crate::manifest::ids::{CommitId, RolloutId, TenantName};
use crate::manifest::proof::{ApprovalRule, By};
use crate::manifest::raw::Trust;
use crate::manifest::team::Team;
use crate::people::review::{Review, Says};
use crate::people::user::{Account, Being, Permission, User};
use crate::plan::evidence::{Request, ReviewQuery, Version};
use crate::reconcile::clock::Clock;
use crate::reconcile::source::Branches;
use crate::record::state::Time;
use chrono::TimeDelta;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// How long a host has, after a push to a branch, to know the pull request that it merged: 1 + 2 + 4 + 8 + 15 + 30 = 60 s. By nobody merged,
/// and void, is what it does not know then.
const PAUSES: [u64; 6] = [1, 2, 4, 8, 15, 30];
/// Of how many people a version's commits may be: each costs a call.
const PEOPLE: usize = 50;
/// How many commits a version may be made by that are no merges: each costs one to three calls, and what a host has told of most of them is
/// kept.
const COMMITS: usize = 250;
/// How long who has asked has a share of what the host allows: it begins to count anew by then.
const SHARED: TimeDelta = TimeDelta::hours(1);
/// How many they may be with those of the pull requests that were squashed or rebased to them, whatever these are about.
const REMADE: usize = 1_000;

/// Who tells how decisions came to their branch.
pub struct ReviewFetcher {
    make: Box<dyn Fn() -> Host + Send + Sync>,
    /// The Git host for each tenant, who has a share of what it allows: one question at a time; and when they asked last.
    hosts: std::sync::Mutex<BTreeMap<Option<TenantName>, Asker>>,
    pause: Pause,
    store: Store,
    branches: Branches,
}

/// A tenant's Git host, and when they asked last.
type Asker = (Arc<Mutex<Host>>, Time);

/// Why not all was told.
#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error("{}", .0.lasting())]
    Host(#[from] HostError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{0}")]
    Odd(String),
}

impl Collector {
    /// The same, with somebody who can tell who approved.
    #[must_use]
    pub fn with(self, review_fetcher: Option<ReviewFetcher>) -> Self {
        Self { review_fetcher: review_fetcher.map(Arc::new), ..self }
    }

    /// The same, with somebody who can tell who has signed.
    #[must_use]
    pub fn reading(self, signature_verifier: Option<SignatureVerifier>) -> Self {
        Self { signature_verifier: signature_verifier.map(Arc::new), ..self }
    }

    /// Asks who approved decisions about a rollout, unless that is under way already.
    pub fn fetch_reviews(&self, rollout: &RolloutId, review_queries: &[ReviewQuery]) {
        for review_query in review_queries {
            let key = (rollout.clone(), review_query.asked.clone());
            if !self.known().attesting.insert(key.clone()) {
                continue;
            }
            let (review_fetcher, signature_verifier) = (self.review_fetcher.clone(), self.signature_verifier.clone());
            let (clock, shared) = (self.clock.clone(), Arc::clone(&self.shared));
            let review_query = review_query.clone();
            self.spawn(of_rollout(rollout), async move {
                let told = match (review_query.asked.rule.by, &review_fetcher, &signature_verifier) {
                    (By::Reviews, Some(review_fetcher), _) => {
                        let host = review_fetcher.host(review_query.tenant.as_ref(), clock.now()).await;
                        match review_fetcher.pulled(&host, &review_query.asked.commit).await {
                            Ok(Some(pulled)) => review_fetcher.tell(&host, &clock, &review_query, pulled).await,
                            Ok(None) => Ok((ProofEvidence::Pushed, clock.now())),
                            Err(silence) => Err(silence),
                        }
                    }
                    (By::Signatures, _, Some(signature_verifier)) => {
                        let at = clock.now();
                        signature_verifier
                            .tell(&review_query, at)
                            .await
                            .map(|evidence| (evidence, at))
                            .map_err(Silence::from)
                    }
                    (By::Reviews, None, _) => {
                        Err(Silence::Odd("this installation names no Git host with reviews".to_owned()))
                    }
                    (By::Signatures | By::Nothing, ..) => {
                        Err(Silence::Odd("this installation names no list of allowed signers".to_owned()))
                    }
                };
                let incomplete = |silence: Silence| (ProofEvidence::Incomplete(silence.to_string()), clock.now());
                let (evidence, at) = told.unwrap_or_else(incomplete);
                tracing::debug!(rollout = %key.0, path = %key.1.path, ?evidence, "asked who approved");
                let mut known = shared.known();
                known.attesting.remove(&key);
                known.tell([key.0.clone()].into());
                known.of(&key.0).proofs.insert(key.1, ReviewEvidence { evidence, at });
                drop(known);
                shared.woken.notify_one();
            });
        }
    }
}

impl ReviewFetcher {
    /// By a Git host made anew for each tenant that asks. Asks nothing yet.
    pub fn new(make: impl Fn() -> Host + Send + Sync + 'static, store: Store, branches: Branches) -> Self {
        Self { make: Box::new(make), hosts: std::sync::Mutex::default(), pause: Pause::default(), store, branches }
    }

    /// The Git host for a tenant: however much they ask, no other waits for that, or for what the host allows them. Who has not asked for
    /// long has no share.
    async fn host(&self, tenant: Option<&TenantName>, now: Time) -> Arc<Mutex<Host>> {
        let (host, among) = self.asker(tenant, now);
        host.lock().await.share(among);
        host
    }

    /// The same, and among how many what the host allows is shared.
    fn asker(&self, tenant: Option<&TenantName>, now: Time) -> (Arc<Mutex<Host>>, usize) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || (Arc::new(Mutex::new((self.make)().heeding(&self.pause))), now);
        let (host, asked) = hosts.entry(tenant.cloned()).or_insert_with(made);
        *asked = now;
        let host = Arc::clone(host);
        (host, hosts.values().filter(|(_, asked)| now - *asked < SHARED).count())
    }

    /// The pull request that a commit came by to its branch.
    async fn pulled(&self, host: &Mutex<Host>, commit: &CommitId) -> Result<Option<Pulled>, Silence> {
        let decisions = self.branches.decisions.short();
        let mut pulled = host.lock().await.merged_as(commit, decisions).await?;
        for pause in PAUSES {
            if pulled.is_none() {
                sleep(Duration::from_secs(pause)).await;
                pulled = host.lock().await.merged_as(commit, decisions).await?;
            }
        }
        Ok(pulled)
    }

    /// How a decision came to its branch by that pull request, and since when that can change: who made a commit stays who did, however
    /// long it took to ask, but reviews and rights do not.
    async fn tell(
        &self,
        shared: &Mutex<Host>,
        clock: &Clock,
        review_query: &ReviewQuery,
        pulled: Pulled,
    ) -> Result<(ProofEvidence, Time), Silence> {
        let Changed { merged, mut files } = self.store.changed(&review_query.asked.commit).await?;
        // Git may take long for that, so the host is not held.
        let made = match &review_query.version {
            Some(version) => made(&self.store, &self.branches.main, version).await?,
            None => Vec::new(),
        };
        let mut host = shared.lock().await;
        let (number, author) = (pulled.number, pulled.author.clone());
        let author = author.ok_or_else(|| gone(number))?;
        let commits = host.commits(number).await?;
        // Of a pull request that was opened again Gitea may list no commits, once it is merged.
        let head = match (merged, tip(&commits)) {
            (Some(merged), Some(listed)) if merged != listed => return Ok((ProofEvidence::Pushed, clock.now())),
            (Some(head), _) | (None, Some(head)) => head,
            (None, None) => return Err(Silence::Odd(format!("pull request {number} has no one head"))),
        };
        // A commit that a host takes for the merge may bring something else than what was reviewed.
        if host.blob(&head, &review_query.asked.path).await?.as_ref() != Some(&review_query.asked.blob) {
            files.insert(review_query.asked.path.clone(), None);
        }
        let own = host.ids().await?.user;
        let ours = author.id == own && is_asked(review_query, &head);
        let authors = if ours { [Author::Ourselves].into() } else { commits.iter().flat_map(authors).collect() };
        drop(host);
        let writers = self.writers(shared, made).await?;
        let mut host = shared.lock().await;
        let at = clock.now();
        let (reviews, mut machines) = host.reviews(number).await?;
        let merger = pulled.by.iter().map(|(user, _)| user);
        machines.extend(merger.filter(|_| pulled.being == Being::Machine).cloned());
        let spoke = reviews.iter().filter(|review| review.says != Says::Nothing).map(|review| review.by.clone());
        let users: BTreeSet<User> = spoke.chain(pulled.by.iter().map(|(user, _)| user.clone())).collect();
        let mut accounts = host.accounts(&users, &machines).await?;
        // Nobody speaks by our own account, whatever the host takes it for, and whatever team it is in.
        accounts.iter_mut().filter(|(user, _)| user.id == own).for_each(|(_, account)| account.being = Being::Machine);
        let (base, by, changes) = (pulled.base, pulled.by, files);
        let teams = match teams(&mut host, &review_query.asked.rule, &reviews, &accounts).await {
            Err(error @ HostError::Refused { status: 403..=405, .. }) => {
                return Ok((ProofEvidence::Unseen(error.to_string()), clock.now()));
            }
            told => told?,
        };
        let merged = MergedPull { number, base, head, author, by, authors, writers, changes, reviews, accounts, teams };
        Ok((ProofEvidence::Merged(Box::new(merged)), at))
    }

    /// Who made a version, each with one of its commits. Git tells the addresses, the host whose they are, and from whose commits it made
    /// one that it has squashed or rebased. Others ask the host in between.
    async fn writers(&self, host: &Mutex<Host>, made: Vec<Authorship>) -> Result<BTreeMap<Author, CommitId>, Silence> {
        let alone = made.iter().filter(|made| made.parents < 2);
        let alone: Vec<CommitId> = alone.map(|made| made.commit.clone()).collect();
        let (mut people, mut named) = (BTreeMap::<_, CommitId>::new(), BTreeMap::<_, CommitId>::new());
        for Authorship { commit, parents: _, by, with } in made {
            for person in with {
                named.entry(person).or_insert_with(|| commit.clone());
            }
            people.entry(by).or_insert(commit);
        }
        if people.len() > PEOPLE {
            return Err(Silence::Odd(format!("more than {PEOPLE} people made commits of this version")));
        }
        if alone.len() > COMMITS {
            return Err(too_many(COMMITS));
        }
        let mut writers = BTreeMap::new();
        for commit in people.into_values().chain(named.into_values()).collect::<BTreeSet<_>>() {
            let shown = host.lock().await.commit(&commit).await?;
            for author in authors(&shown) {
                writers.entry(author).or_insert_with(|| commit.clone());
            }
        }
        self.rewriters(host, alone, &mut writers).await?;
        Ok(writers)
    }

    /// Adds who opened the pull requests that the host made these commits of, and who made what those had. That may have been made so too:
    /// squashed to a branch that was then squashed to main.
    async fn rewriters(
        &self,
        host: &Mutex<Host>,
        alone: Vec<CommitId>,
        writers: &mut BTreeMap<Author, CommitId>,
    ) -> Result<(), Silence> {
        let mut pulls = BTreeSet::new();
        let mut known: BTreeSet<CommitId> = alone.iter().cloned().collect();
        // Each with the commit of main that it became.
        let mut next: VecDeque<_> = alone.into_iter().map(|commit| (commit.clone(), commit)).collect();
        while let Some((commit, became)) = next.pop_front() {
            let remade = host.lock().await.remade(&commit, self.branches.main.short()).await?;
            for opened in remade {
                if !pulls.insert(opened.number) {
                    continue;
                }
                let (people, had) = hands(host, opened).await?;
                for author in people {
                    writers.entry(author).or_insert_with(|| became.clone());
                }
                for commit in had {
                    if known.insert(commit.clone()) {
                        next.push_back((commit, became.clone()));
                    }
                }
            }
            if known.len() > REMADE {
                return Err(too_many(REMADE));
            }
        }
        Ok(())
    }
}

/// Who opened a pull request and who made its commits, and those of them that are no merges.
async fn hands(
    host: &Mutex<Host>,
    Opened { number, author }: Opened,
) -> Result<(BTreeSet<Author>, Vec<CommitId>), Silence> {
    let author = author.ok_or_else(|| gone(number))?;
    let commits = host.lock().await.had(number).await?;
    if commits.is_empty() {
        return Err(Silence::Odd(format!("the Git host lists no commits of pull request {number}")));
    }
    let alone = commits.iter().filter(|shown| shown.parents.len() < 2).map(|shown| shown.commit.clone());
    Ok((commits.iter().flat_map(authors).chain([Author::User(author)]).collect(), alone.collect()))
}

fn too_many(most: usize) -> Silence {
    Silence::Odd(format!("more than {most} commits made this version"))
}

fn gone(number: u64) -> Silence {
    Silence::Odd(format!("who opened pull request {number} is gone"))
}

/// Whether a decision is what we have asked, to the letter, and what was merged is the very head that we have asked it by: then
/// it does not matter who made its commits. What somebody else has pushed to our branch has been asked by nobody.
fn is_asked(review_query: &ReviewQuery, head: &CommitId) -> bool {
    let Some(Request { letters, head: asked }) = &review_query.request else { return false };
    asked.as_ref() == Some(head)
        && letters.contains(&(review_query.asked.path.clone(), review_query.asked.blob.clone()))
}

/// The commits that made a version, as Git tells.
pub(super) async fn made(store: &Store, main: &RefName, version: &Version) -> Result<Vec<Authorship>, GitError> {
    let ask = || store.authors(&version.commit, &version.stable);
    let mut made = ask().await;
    // Main is fetched without its past. Where that was more than may be fetched, commits alone may tell enough.
    if let Err(GitError::Missing(_)) = made {
        store.fetch_ancestry(main).await?;
        made = ask().await;
    }
    if let Err(GitError::Missing(_)) = made {
        store.deepen(main).await?;
        made = ask().await;
    }
    made
}

/// By which teams of the rule people are approvers. Nothing is asked about those whose decision does not count in any case.
async fn teams(
    host: &mut Host,
    rule: &ApprovalRule,
    reviews: &[Review],
    accounts: &BTreeMap<User, Account>,
) -> Result<BTreeMap<User, Team>, HostError> {
    let speaks = |user: &User| rule.trust == Trust::Merges || reviews.iter().any(|review| review.by == *user);
    let may = |account: &Account| account.being == Being::Person && account.permission >= Permission::Write;
    let people = accounts.iter().filter(|(user, account)| may(account) && speaks(user));
    let people: BTreeSet<User> = people.map(|(user, _)| user.clone()).collect();
    host.teams(rule, people).await
}

/// The commit that no other one is on top of, if it is one.
fn tip(commits: &[Shown]) -> Option<CommitId> {
    let below: BTreeSet<&CommitId> = commits.iter().flat_map(|shown| &shown.parents).collect();
    let mut tips = commits.iter().filter(|shown| !below.contains(&shown.commit));
    match (tips.next(), tips.next()) {
        (Some(tip), None) => Some(tip.commit.clone()),
        _ => None,
    }
}

fn authors(shown: &Shown) -> BTreeSet<Author> {
    let author = |by: &Result<User, String>| match by {
        Ok(user) => Author::User(user.clone()),
        Err(address) => Author::Unknown(address.clone()),
    };
    shown.by.iter().map(author).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::World;
    use super::*;
    use crate::forge::branch::approval;
    use crate::forge::host::Pass;
    use crate::forge::host::testing::github::sha;
    use crate::forge::host::testing::{Fault, Server};
    use crate::gate::proof::ProofQuestion;
    use crate::git::Person;
    use crate::manifest::installation::{Access, HostKind, PullHost};
    use crate::manifest::oid;
    use crate::record::fixture;
    use serde_json::{Value, json};

    #[test]
    fn attack_74_what_is_asked_to_the_letter_is_asked_by_one_head_alone() {
        let letter = |through: &str| {
            let rollout = "shop/a".parse().unwrap();
            let (path, text) = approval(&rollout, &fixture::run(7), &through.parse().unwrap(), 0);
            (path, oid::blob(text.as_bytes()))
        };
        let rule =
            ApprovalRule { approvers: ["ana".to_owned()].into(), approvals: 1, trust: Trust::Reviews, by: By::Reviews };
        let (path, blob) = letter("promotion");
        let asked = ProofQuestion { path, blob, commit: fixture::commit(3), rule };
        let [ours, other] = [fixture::commit(1), fixture::commit(2)];
        let is_asked = |through: &str, head: Option<&CommitId>| {
            let request = Some(Request { letters: [letter(through)].into(), head: head.cloned() });
            is_asked(&ReviewQuery { tenant: None, asked: asked.clone(), request, version: None }, &ours)
        };
        assert!(is_asked("promotion", Some(&ours)));
        assert!(!is_asked("half", Some(&ours)), "another word");
        assert!(!is_asked("promotion", Some(&other)), "somebody has pushed it to our branch");
        assert!(!is_asked("promotion", None), "nobody was asked");
    }

    /// Who tells of commits on GitHub, and the host.
    async fn review_fetcher() -> (ReviewFetcher, Server, World) {
        let (world, server) = (World::new().await, Server::start(HostKind::Github).await);
        let token_file = world.dir.path().join("token");
        std::fs::write(&token_file, "token").unwrap();
        let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
        let (owner, name) = ("acme".to_owned(), "shop".to_owned());
        let site = PullHost { kind: HostKind::Github, api: server.api(), owner, name, access };
        let now = || fixture::time("12:00:00");
        let make = move || Host::new(site.clone(), pass.clone(), Box::new(|_, _| {}), Box::new(now)).unwrap();
        let source = world.source("c");
        let (store, branches) = (source.store().clone(), source.branches().clone());
        server.state().page = Some(250);
        (ReviewFetcher::new(make, store, branches), server, world)
    }

    /// A commit of somebody, on top of another.
    fn commit(id: &str, by: &str, parents: &[&str]) -> Value {
        let parents: Vec<Value> = parents.iter().map(|parent| json!({"sha": parent})).collect();
        let who = json!({"email": format!("{by}@example.org")});
        json!({"sha": id, "commit": {"author": who, "committer": who}, "author": null, "committer": null, "parents": parents})
    }

    /// A merged pull request, and what it became.
    fn pull(number: u64, by: &str, became: &str, base: &str) -> Value {
        let by = json!({"id": number, "login": by});
        json!({"number": number, "merged_at": "2026-01-01T00:00:00Z", "merge_commit_sha": became, "user": by, "base": {"ref": base}})
    }

    fn alone(commit: &str) -> Authorship {
        Authorship { commit: commit.parse().unwrap(), parents: 1, by: BTreeSet::new(), with: BTreeSet::new() }
    }

    fn person(name: &str) -> Person {
        Person { name: name.to_owned(), email: format!("{name}@example.org") }
    }

    /// What they are called, or their address.
    fn named(authors: &BTreeMap<Author, CommitId>) -> BTreeMap<String, &str> {
        let named = |author: &Author| match author {
            Author::User(user) => user.login.clone(),
            Author::Unknown(address) => address.clone(),
            Author::Ourselves => "we".to_owned(),
        };
        authors.iter().map(|(author, commit)| (named(author), commit.as_str())).collect()
    }

    #[tokio::test]
    async fn attack_74_who_is_named_as_a_co_author_made_the_version() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let [alone_by_eve, paired, squashed, topic, below] = ["a", "b", "c", "d", "0"].map(sha);
        let with = |id: &str, trailers: &[&str]| {
            let mut commit = commit(id, "eve", &[&below]);
            let trailers: String = trailers.iter().map(|address| format!("\nco-authored-by: x <{address}>")).collect();
            commit["commit"]["message"] = json!(format!("web: 2\n{trailers}"));
            commit
        };
        let ana = ["1+ana-before@users.noreply.127.0.0.1", "tool@example.org", "5+x@users.noreply.evil.test"];
        server.state().there = [
            (format!("commits/{alone_by_eve}"), with(&alone_by_eve, &[])),
            (format!("commits/{paired}"), with(&paired, &ana)),
            (format!("commits/{squashed}/pulls"), json!([pull(10, "zoe", &squashed, "main")])),
            ("pulls/10/commits".to_owned(), json!([with(&topic, &["3+carol@users.noreply.127.0.0.1"])])),
        ]
        .into();
        for commit in [&alone_by_eve, &paired, &topic] {
            server.state().there.insert(format!("commits/{commit}/pulls"), json!([]));
        }
        let made = |commit: &str, with: &[&str]| Authorship {
            by: [person("eve")].into(),
            with: with.iter().map(|name| person(name)).collect(),
            ..alone(commit)
        };
        let made = vec![made(&alone_by_eve, &[]), made(&paired, &["ana", "tool"]), made(&squashed, &[])];
        let host = review_fetcher.host(None, fixture::time("12:00:00")).await;
        let writers = review_fetcher.writers(&host, made).await.unwrap();
        // An address that the host gave is of one number, whatever was before it; any other is nobody's.
        let expected =
            [("ana-before", &paired), ("eve@example.org", &alone_by_eve), ("zoe", &squashed), ("carol", &squashed)];
        assert_eq!(named(&writers), expected.map(|(who, commit)| (who.to_owned(), commit.as_str())).into());
        assert!(writers.contains_key(&Author::User(User { id: 1, login: "Ana".to_owned() })), "by her number");
        let asked =
            server.state().asked.iter().filter(|(what, _)| what.ends_with(&format!("commits/{paired}"))).count();
        assert_eq!(asked, 1, "of each commit once");
    }

    #[tokio::test]
    async fn attack_112_a_pause_is_kept_by_all_tenants_and_who_has_not_asked_for_long_has_no_share() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let (now, tenants) = (fixture::time("12:00:00"), ["a", "b"].map(|name| name.parse::<TenantName>().unwrap()));
        let headers = vec![("retry-after", "1800".to_owned())];
        server.state().fault = Some(Fault { at: "", status: 429, headers, body: String::new() });
        let [one, other] =
            [review_fetcher.host(Some(&tenants[0]), now).await, review_fetcher.host(Some(&tenants[1]), now).await];
        let asked = async |host: &Mutex<Host>| host.lock().await.repository().await;
        assert!(matches!(asked(&one).await, Err(HostError::Limited(1_800))));
        assert!(matches!(asked(&other).await, Err(HostError::Limited(1_800))));
        assert_eq!(server.state().asked.len(), 1, "the other one has heard of it");
        let among = |now| review_fetcher.asker(Some(&tenants[1]), now).1;
        assert_eq!((among(now), among(now + SHARED)), (2, 1));
    }

    #[tokio::test]
    async fn attack_74_who_made_what_was_squashed_twice_made_the_version() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let [main, develop, own, merge, below] = ["a", "b", "c", "d", "0"].map(sha);
        // To `develop`, and from there to main, by a squash each time.
        let (inner, outer) = (pull(10, "eve", &develop, "develop"), pull(20, "ana", &main, "main"));
        let topic = json!([commit(&own, "mallory", &[&below])]);
        let squashed = json!([commit(&develop, "host", &[&below]), commit(&merge, "carol", &[&below, &develop])]);
        server.state().there = [
            (format!("commits/{main}"), commit(&main, "host", &[&below])),
            (format!("commits/{main}/pulls"), json!([outer])),
            ("pulls/20/commits".to_owned(), squashed),
            (format!("commits/{develop}/pulls"), json!([outer, inner])),
            ("pulls/10/commits".to_owned(), topic),
            (format!("commits/{own}/pulls"), json!([inner])),
        ]
        .into();
        let host = review_fetcher.host(None, fixture::time("12:00:00")).await;
        let writers = review_fetcher.writers(&host, vec![alone(&main)]).await.unwrap();
        let who: BTreeSet<String> = named(&writers).into_keys().collect();
        let people = ["ana", "eve", "host@example.org", "mallory@example.org", "carol@example.org"];
        assert_eq!(who, people.map(str::to_owned).into());
        assert!(writers.values().all(|commit| commit.as_str() == main), "people know those of main: {writers:?}");
    }

    #[tokio::test]
    async fn what_a_host_has_told_of_commits_is_asked_once_and_again_where_somebody_has_no_account() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let host = review_fetcher.host(None, fixture::time("12:00:00")).await;
        let [squashed, topic, below] = ["a", "b", "0"].map(sha);
        let opened = json!([pull(10, "eve", &squashed, "main")]);
        for (account, again) in [(Value::Null, 2), (json!({"id": 1, "login": "ana"}), 0)] {
            let by = |id: &str| {
                let mut commit = commit(id, "ana", &[&below]);
                (commit["author"], commit["committer"]) = (account.clone(), account.clone());
                commit
            };
            server.state().there = [
                (format!("commits/{squashed}"), by(&squashed)),
                (format!("commits/{squashed}/pulls"), opened.clone()),
                ("pulls/10/commits".to_owned(), json!([by(&topic)])),
                (format!("commits/{topic}/pulls"), opened.clone()),
            ]
            .into();
            let first = review_fetcher.writers(&host, vec![alone(&squashed)]).await.unwrap();
            assert_eq!(first.len(), 2, "ana, and who opened it: {first:?}");
            server.state().asked.clear();
            assert_eq!(review_fetcher.writers(&host, vec![alone(&squashed)]).await.unwrap(), first);
            assert_eq!(server.state().asked.len(), again, "{:?}", server.state().asked);
        }
    }

    #[tokio::test]
    async fn a_version_of_too_many_squashed_commits_is_not_looked_through() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let squashed = ["a", "b", "c", "d", "e"].map(sha);
        for (number, became) in (1..).zip(&squashed) {
            let commits =
                (0..240).map(|n| commit(&format!("{:040x}", number * 1_000 + n), "eve", &["0".repeat(40).as_str()]));
            let commits = commits.collect::<Vec<_>>();
            let there = [
                (format!("commits/{became}"), commit(became, "host", &[])),
                (format!("commits/{became}/pulls"), json!([pull(number, "eve", became, "main")])),
                (format!("pulls/{number}/commits"), json!(commits)),
            ];
            server.state().there.extend(there);
        }
        let host = review_fetcher.host(None, fixture::time("12:00:00")).await;
        let made = squashed.iter().map(|commit| alone(commit)).collect();
        let error = review_fetcher.writers(&host, made).await.unwrap_err();
        assert!(error.to_string().contains("more than 1000 commits"), "{error}");
        let asked = server.state().asked.iter().filter(|(what, _)| what.contains("0000")).count();
        assert_eq!(asked, 0, "nothing is asked about any of them");
    }

    #[tokio::test]
    async fn attack_112_a_tenant_with_a_hundred_commits_keeps_no_other_waiting() {
        let (review_fetcher, server, _world) = review_fetcher().await;
        let [blog, shop]: [TenantName; 2] = ["blog", "shop"].map(|name| name.parse().unwrap());
        let now = fixture::time("12:00:00");
        let (blog, shop) = (review_fetcher.host(Some(&blog), now).await, review_fetcher.host(Some(&shop), now).await);
        let commits: Vec<String> = (1..100).map(|n| format!("{n:040x}")).collect();
        let pulls = commits.iter().map(|commit| (format!("commits/{commit}/pulls"), json!([])));
        let first = (format!("commits/{}", commits[0]), commit(&commits[0], "eve", &[]));
        server.state().there = pulls.chain([first]).collect();
        // The host allows a hundred questions.
        let told = review_fetcher.writers(&shop, commits.iter().map(|commit| alone(commit)).collect()).await;
        assert!(matches!(told, Err(Silence::Host(HostError::Limited(_)))), "{told:?}");
        assert_eq!(server.state().spent, 51);
        let told = review_fetcher.writers(&blog, vec![alone(&commits[0])]).await;
        assert_eq!(told.unwrap().len(), 1);
        // Nobody of them is held up by a question of another that the host does not answer.
        let _asked = shop.lock().await;
        assert!(blog.try_lock().is_ok());
    }
}
