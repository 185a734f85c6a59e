//! What a host knows, whatever words it has for it: pull requests with all that was said of them, how commits stand, who may do what.

use super::bare::{Bare, Way};
use super::github_checks::Checks;
use chrono::TimeDelta;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tidegate::manifest::installation::HostKind;

pub(crate) use tidegate::record::state::Time;

/// Its users, by number. The address of each is theirs at any domain; `robot` and `bot` are no persons.
const USERS: [(u64, &str); 9] = [
    (1, "owner"),
    (2, "reviewer"),
    (3, "stranger"),
    (4, "robot"),
    (5, "ana"),
    (6, "ben"),
    (7, "cleo"),
    (8, "eve"),
    (42, "bot"),
];

/// The number of a user.
pub(crate) fn id_of(user: &str) -> Option<u64> {
    USERS.iter().find(|(_, name)| *name == user).map(|(id, _)| *id)
}

/// The user with that number.
pub(crate) fn user_of(id: &str) -> Option<&'static str> {
    USERS.iter().find(|(known, _)| known.to_string() == id).map(|(_, name)| *name)
}

/// Whose address that is.
pub(crate) fn owner_of(address: &str) -> Option<&'static str> {
    let (name, domain) = address.split_once('@')?;
    let ours = domain.starts_with("example.");
    USERS.iter().find(|(_, known)| ours && *known == name).map(|(_, name)| *name)
}

pub(crate) fn is_machine(user: &str) -> bool {
    matches!(user, "robot" | "bot") || user.ends_with("[bot]")
}

/// How one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    Closed,
    Merged,
}

/// What a review says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Says {
    Approved,
    ChangesRequested,
    Dismissed,
}

pub(crate) struct Review {
    pub(crate) id: u64,
    pub(crate) by: String,
    pub(crate) says: Says,
    pub(crate) head: String,
    pub(crate) at: Time,
}

pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) by: String,
    pub(crate) text: String,
    pub(crate) at: Time,
    pub(crate) changed: Time,
    /// The host itself wrote it.
    pub(crate) system: bool,
}

/// How one ended that was merged.
pub(crate) struct Merged {
    pub(crate) by: String,
    pub(crate) at: Time,
    pub(crate) way: Way,
    /// Where its base was before.
    pub(crate) onto: String,
    pub(crate) became: String,
}

impl Merged {
    /// Whether a commit came to the base by it: as it was, or made anew.
    pub(crate) fn brought(&self, git: &Bare, head: &str, commit: &str) -> bool {
        [head, &self.became].iter().any(|to| git.since(&self.onto, to).iter().any(|one| one == commit))
    }
}

/// A pull request.
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) by: String,
    pub(crate) branch: String,
    pub(crate) head: String,
    pub(crate) base: String,
    pub(crate) draft: bool,
    pub(crate) locked: bool,
    pub(crate) standing: Standing,
    /// Its branch was deleted while it was open.
    pub(crate) gone: bool,
    pub(crate) merged: Option<Merged>,
    /// What became of it by whom, since when: `closed`, `reopened`, `merged`.
    pub(crate) turns: Vec<(String, &'static str, Time)>,
    pub(crate) reviews: Vec<Review>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) labels: Vec<String>,
    /// The heads that it had, the last one first.
    pub(crate) versions: Vec<(u64, String, Time)>,
    pub(crate) changed: Time,
}

/// How a commit was said to stand.
pub(crate) struct Status {
    pub(crate) commit: String,
    pub(crate) name: String,
    pub(crate) mark: String,
    pub(crate) text: String,
}

/// What changes of one.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) title: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) base: Option<String>,
    pub(crate) draft: Option<bool>,
    pub(crate) standing: Option<Standing>,
}

/// The repository on its host.
pub(crate) struct Site {
    pub(crate) kind: HostKind,
    /// Whom tidegate is there.
    pub(crate) account: String,
    pub(crate) pulls: Vec<Pull>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) checks: Checks,
    /// The branches with a rule: what it says.
    pub(crate) rules: BTreeMap<String, Value>,
    pub(crate) teams: BTreeMap<String, BTreeSet<String>>,
    /// The level of people where it is not as usual: 10 is a guest, 20 reads, 30 writes.
    pub(crate) levels: BTreeMap<String, u64>,
    pub(crate) now: Time,
    last: u64,
    /// What it and tidegate did since somebody asked: when, in which word, what.
    news: Vec<(Time, &'static str, String)>,
}

impl Pull {
    /// The commits that it asks for, or has brought, oldest first.
    pub(crate) fn commits(&self, git: &Bare) -> Vec<String> {
        let base = self.merged.as_ref().map(|merged| merged.onto.clone()).or_else(|| git.tip(&self.base));
        base.map(|base| git.since(&base, &self.head)).unwrap_or_default()
    }

    /// A review of each who gave one, the last that they gave.
    pub(crate) fn last_reviews(&self) -> impl Iterator<Item = &Review> {
        let last: BTreeMap<&str, &Review> = self.reviews.iter().map(|review| (review.by.as_str(), review)).collect();
        last.into_values()
    }
}

impl Site {
    pub(crate) fn new(kind: HostKind, account: &str) -> Self {
        Self {
            kind,
            account: account.to_owned(),
            pulls: Vec::new(),
            statuses: Vec::new(),
            checks: Checks::default(),
            rules: BTreeMap::new(),
            teams: BTreeMap::new(),
            levels: BTreeMap::new(),
            now: Time::UNIX_EPOCH,
            last: 0,
            news: Vec::new(),
        }
    }

    /// It is later than before, whatever the clock says.
    pub(crate) fn tick(&mut self, clock: Time) {
        self.now = clock.max(self.now + TimeDelta::milliseconds(1));
    }

    /// What it and tidegate did since the last time.
    pub(crate) fn news(&mut self) -> Vec<(Time, &'static str, String)> {
        std::mem::take(&mut self.news)
    }

    /// Takes note of what was done, unless a person did it.
    fn tell(&mut self, by: &str, word: &'static str, what: String) {
        if by == self.account || by.is_empty() {
            self.news.push((self.now, word, what));
        }
    }

    /// What one is called.
    pub(crate) fn named(&self, number: u64) -> String {
        let sign = if self.kind == HostKind::Gitlab { '!' } else { '#' };
        format!("{sign}{number}")
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The level of somebody.
    pub(crate) fn level(&self, user: &str) -> u64 {
        self.levels.get(user).copied().unwrap_or(if user == "owner" { 50 } else { 30 })
    }

    pub(crate) fn pull(&self, number: u64) -> Option<&Pull> {
        self.pulls.iter().find(|pull| pull.number == number)
    }

    fn pull_mut(&mut self, number: u64) -> &mut Pull {
        let now = self.now;
        let pull = self.pulls.iter_mut().find(|pull| pull.number == number).unwrap();
        pull.changed = now;
        pull
    }

    /// Sees what was pushed, or deleted, since it was looked at last.
    pub(crate) fn look(&mut self, git: &Bare) {
        let open = self.pulls.iter().filter(|pull| pull.standing == Standing::Open);
        let open: Vec<_> = open.map(|pull| (pull.number, git.tip(&pull.branch), pull.head.clone())).collect();
        for (number, tip, head) in open {
            match tip {
                None => {
                    let (account, now) = (self.account.clone(), self.now);
                    let pull = self.pull_mut(number);
                    (pull.standing, pull.gone) = (Standing::Closed, true);
                    pull.turns.push((account, "closed", now));
                    let what = format!("{} is closed: its branch is gone", self.named(number));
                    self.tell("", "pull", what);
                }
                Some(tip) if tip != head => self.head(git, number, tip),
                Some(_) => {}
            }
        }
    }

    fn head(&mut self, git: &Bare, number: u64, tip: String) {
        let kept = if self.kind == HostKind::Gitlab { "merge-requests" } else { "pull" };
        git.set(&format!("refs/{kept}/{number}/head"), &tip);
        let (id, now) = (self.next(), self.now);
        let pull = self.pull_mut(number);
        pull.versions.insert(0, (id, tip.clone(), now));
        pull.head = tip;
    }

    /// Opens one as a user; none if its branch has an open one to there, or there is no such branch.
    pub(crate) fn open(&mut self, git: &Bare, by: &str, text: [&str; 2], ends: [&str; 2]) -> Option<u64> {
        let ([title, body], [branch, base]) = (text, ends);
        let is_it = |one: &Pull| one.standing == Standing::Open && one.branch == branch && one.base == base;
        let tip = git.tip(branch).filter(|_| !self.pulls.iter().any(is_it))?;
        let number = self.pulls.len() as u64 + 1;
        self.pulls.push(Pull {
            number,
            title: title.to_owned(),
            body: body.to_owned(),
            by: by.to_owned(),
            branch: branch.to_owned(),
            head: String::new(),
            base: base.to_owned(),
            draft: false,
            locked: false,
            standing: Standing::Open,
            gone: false,
            merged: None,
            turns: Vec::new(),
            reviews: Vec::new(),
            comments: Vec::new(),
            labels: Vec::new(),
            versions: Vec::new(),
            changed: self.now,
        });
        self.head(git, number, tip);
        let what = format!("{} opened, to {base}: {title}", self.named(number));
        self.tell(by, "pull", what);
        Some(number)
    }

    /// Changes one as a user.
    pub(crate) fn change(&mut self, number: u64, by: &str, change: Change) {
        let (now, drafts_by_title) = (self.now, self.kind == HostKind::Gitlab);
        let pull = self.pull_mut(number);
        let mut what = Vec::new();
        if let Some(title) = change.title.filter(|title| *title != pull.title) {
            what.push(format!("its title is {title}"));
            pull.title = title;
        }
        if let Some(body) = change.body.filter(|body| *body != pull.body) {
            what.push("its text is changed".to_owned());
            pull.body = body;
        }
        if let Some(base) = change.base.filter(|base| *base != pull.base) {
            what.push(format!("it leads to {base}"));
            pull.base = base;
        }
        pull.draft =
            if drafts_by_title { pull.title.starts_with("Draft: ") } else { change.draft.unwrap_or(pull.draft) };
        if let Some(standing) = change.standing.filter(|standing| *standing != pull.standing) {
            let word = if standing == Standing::Open { "reopened" } else { "closed" };
            what.push(format!("{word} by {by}"));
            pull.standing = standing;
            pull.turns.push((by.to_owned(), word, now));
        }
        if !what.is_empty() {
            let what = format!("{}: {}", self.named(number), what.join("; "));
            self.tell(by, "pull", what);
        }
    }

    /// Says something below one as a user; the number of the comment.
    pub(crate) fn comment(&mut self, number: u64, by: &str, text: &str, system: bool) -> u64 {
        let (id, at) = (self.next(), self.now);
        let (by_owned, text_owned) = (by.to_owned(), text.to_owned());
        self.pull_mut(number).comments.push(Comment { id, by: by_owned, text: text_owned, at, changed: at, system });
        let what = format!("{} is told: {}", self.named(number), first(text));
        self.tell(by, "comment", what);
        id
    }

    /// Changes a comment, as who wrote it; none if there is no such.
    pub(crate) fn rephrase(&mut self, id: u64, by: &str, text: &str) -> Option<u64> {
        let now = self.now;
        let mut all = self.pulls.iter_mut().flat_map(|pull| pull.comments.iter_mut().map(|said| (pull.number, said)));
        let (number, said) = all.find(|(_, said)| said.id == id)?;
        (said.text, said.changed) = (text.to_owned(), now);
        let what = format!("{} is told instead: {}", self.named(number), first(text));
        self.tell(by, "comment", what);
        Some(number)
    }

    pub(crate) fn label(&mut self, number: u64, by: &str, labels: Vec<String>) {
        let what = format!("{} labelled {}", self.named(number), labels.join(", "));
        self.tell(by, "pull", what);
        let known = &mut self.pull_mut(number).labels;
        let new: Vec<String> = labels.into_iter().filter(|label| !known.contains(label)).collect();
        known.extend(new);
    }

    /// Nobody may comment on it any more.
    pub(crate) fn lock(&mut self, number: u64) {
        self.pull_mut(number).locked = true;
    }

    /// Reviews one as a user.
    pub(crate) fn review(&mut self, number: u64, by: &str, says: Says) {
        let at = self.now;
        // What GitLab notes of it, by whose number it tells reviews apart.
        let id = match (self.kind, says) {
            (HostKind::Gitlab, Says::Approved) => self.comment(number, by, "approved this merge request", true),
            _ => self.next(),
        };
        let pull = self.pull_mut(number);
        let head = pull.head.clone();
        pull.reviews.push(Review { id, by: by.to_owned(), says, head, at });
    }

    /// It was merged by a user, that way, and became that commit of its base.
    pub(crate) fn became(&mut self, git: &Bare, number: u64, by: &str, way: Way, became: String) {
        let at = self.now;
        let pull = self.pull_mut(number);
        let onto = git.tip(&pull.base).unwrap();
        git.set(&format!("refs/heads/{}", pull.base), &became);
        pull.standing = Standing::Merged;
        pull.turns.push((by.to_owned(), "merged", at));
        pull.merged = Some(Merged { by: by.to_owned(), at, way, onto, became });
    }

    /// Merges one as a user, that way.
    pub(crate) fn merge(&mut self, git: &Bare, number: u64, by: &str, way: Way) -> Result<(), String> {
        let pull = self.pull(number).filter(|pull| pull.standing == Standing::Open);
        let pull = pull.ok_or_else(|| format!("{number} is not open"))?;
        let tip = git.tip(&pull.base).ok_or_else(|| format!("there is no branch {}", pull.base))?;
        let became = git.merge(way, [by, &pull.by], &tip, &pull.head, self.now);
        self.became(git, number, by, way, became);
        Ok(())
    }
}

/// The first line for people.
fn first(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("<!--"));
    let first = lines.next().unwrap_or_default().to_owned();
    if lines.next().is_some() { format!("{first} …") } else { first }
}
