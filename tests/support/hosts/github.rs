//! The words of GitHub, as it describes its API.

use super::bare::{Bare, OF_GITHUB, Way};
use super::github_app::{BOT, LOGIN};
use super::site::{Change, Merged, Pull, Review, Says, Site, Standing, Status, Time, id_of, is_machine, owner_of};
use super::{Asked, OWNER, REPOSITORY, text};
use chrono::SecondsFormat;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What GitHub's merge queue is called, and its number.
pub(crate) const QUEUE: (u64, &str) = (118_344_674, "github-merge-queue[bot]");

/// As whom it shows what was made on its pages.
const FLOW: (u64, &str) = (19_864_447, "web-flow");

pub(super) fn nothing() -> (u16, Value) {
    wrong(404, "Not Found")
}

pub(super) fn wrong(status: u16, why: &str) -> (u16, Value) {
    (status, json!({"message": why, "documentation_url": "https://docs.github.com/rest", "status": status.to_string()}))
}

fn invalid(resource: &str, why: &str) -> (u16, Value) {
    let errors = json!([{"resource": resource, "code": "custom", "message": why}]);
    (422, json!({"message": "Validation Failed", "errors": errors}))
}

fn user(name: &str) -> Value {
    let id = match name {
        LOGIN => BOT,
        name if name == QUEUE.1 => QUEUE.0,
        name if name == FLOW.1 => FLOW.0,
        name => id_of(name).unwrap(),
    };
    json!({"id": id, "login": name, "type": if is_machine(name) { "Bot" } else { "User" }})
}

fn at(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A pull request, as lists show it.
fn listed(pull: &Pull, git: &Bare) -> Value {
    let end = |branch: &str, sha: Option<String>| {
        let owner = json!({"id": 9, "login": OWNER, "type": "Organization"});
        json!({"label": format!("{OWNER}:{branch}"), "ref": branch, "sha": sha, "repo": {"id": REPOSITORY}, "user": owner})
    };
    let merged = pull.merged.as_ref();
    json!({
        "number": pull.number, "state": if pull.standing == Standing::Open { "open" } else { "closed" },
        "title": pull.title, "body": pull.body, "user": user(&pull.by), "draft": pull.draft, "locked": pull.locked,
        "head": end(&pull.branch, Some(pull.head.clone())),
        "base": end(&pull.base, git.tip(&pull.base).or_else(|| Some(pull.head.clone()))),
        "labels": labels(pull), "updated_at": at(pull.changed), "merged_at": merged.map(|merged| at(merged.at)),
        "merge_commit_sha": merged.map(|merged| &merged.became),
    })
}

/// The same, as it shows itself alone.
fn whole(pull: &Pull, git: &Bare) -> Value {
    let mut whole = listed(pull, git);
    whole["merged"] = json!(pull.merged.is_some());
    whole["merged_by"] = pull.merged.as_ref().map_or(Value::Null, |Merged { by, .. }| user(by));
    whole
}

fn labels(pull: &Pull) -> Value {
    pull.labels.iter().map(|name| json!({"name": name})).collect()
}

fn review(Review { id, by, says, head, at: when }: &Review) -> Value {
    let state = match says {
        Says::Approved => "APPROVED",
        Says::ChangesRequested => "CHANGES_REQUESTED",
        Says::Dismissed => "DISMISSED",
    };
    json!({"id": id, "user": user(by), "state": state, "body": "", "commit_id": head, "submitted_at": at(*when)})
}

fn comments(pull: &Pull) -> Value {
    let shown = pull.comments.iter().map(|said| {
        json!({
            "id": said.id, "user": user(&said.by), "body": said.text, "created_at": at(said.at), "updated_at": at(said.changed),
        })
    });
    shown.collect()
}

fn commit(git: &Bare, id: &str) -> Option<Value> {
    let shown = git.show(id)?;
    let parents: Vec<Value> = shown.parents.iter().map(|sha| json!({"sha": sha})).collect();
    let own = |address: &str| (address == OF_GITHUB.1).then_some(FLOW.1);
    let whose = |address: &str| owner_of(address).or_else(|| own(address)).map(user);
    Some(json!({
        "sha": shown.id, "parents": parents, "author": whose(&shown.author), "committer": whose(&shown.committer),
        "commit": {"author": {"email": shown.author}, "committer": {"email": shown.committer}},
    }))
}

/// What is answered to a request.
pub(super) fn answer(site: &mut Site, git: &Bare, asked: &Asked<'_>) -> (u16, Value) {
    match (asked.method, asked.parts) {
        ("GET", ["user"]) => (200, user(asked.by)),
        ("GET", ["orgs", OWNER, "teams", team, below @ ..]) => in_team(site, team, below),
        (_, ["repos", OWNER, name, below @ ..]) if *name == asked.name => in_repository(site, git, below, asked),
        _ => nothing(),
    }
}

fn in_team(site: &Site, team: &str, below: &[&str]) -> (u16, Value) {
    let Some(people) = site.teams.get(team) else { return nothing() };
    match below {
        ["repos", OWNER, _] => (204, Value::Null),
        ["memberships", login] if people.contains(*login) => (200, json!({"role": "member", "state": "active"})),
        _ => nothing(),
    }
}

fn in_repository(site: &mut Site, git: &Bare, below: &[&str], asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, query, sent, by, .. } = asked;
    // GitHub lets nobody else write them.
    if *by == LOGIN
        && let Some(said) = site.checks.answer(method, below, query, sent)
    {
        return said;
    }
    match (*method, below) {
        ("GET", []) => {
            let [admin, push] = [50, 30].map(|level| site.level(by) >= level);
            let may = json!({"admin": admin, "maintain": admin, "push": push, "triage": push, "pull": true});
            (200, json!({"id": REPOSITORY, "name": asked.name, "permissions": may}))
        }
        (_, ["pulls"]) => pulls(site, git, asked),
        (_, ["pulls" | "issues", number, ..]) if number.parse::<u64>().is_ok() => {
            in_pull(site, git, number.parse().unwrap(), below, asked)
        }
        ("PATCH", ["issues", "comments", id]) => {
            let id: u64 = id.parse().unwrap();
            match site.rephrase(id, by, &text(sent, "body")) {
                Some(_) => (200, json!({"id": id, "user": user(by), "body": sent["body"]})),
                None => nothing(),
            }
        }
        ("GET", ["commits", id, "pulls"]) => {
            let has_it = |pull: &&Pull| pull.merged.as_ref().is_some_and(|merged| merged.brought(git, &pull.head, id));
            (200, site.pulls.iter().filter(has_it).map(|pull| listed(pull, git)).collect())
        }
        ("GET", ["commits", id]) => commit(git, id).map_or_else(nothing, |shown| (200, shown)),
        ("GET", ["contents", path @ ..]) => {
            let path = path.join("/");
            let found = git.entry(&query["ref"], &path);
            found.map_or_else(nothing, |sha| (200, json!({"type": "file", "path": path, "sha": sha})))
        }
        ("POST", ["statuses", id]) => {
            let [name, mark, said] = ["context", "state", "description"].map(|field| text(sent, field));
            site.statuses.push(Status { commit: (*id).to_owned(), name, mark, text: said });
            let mut status = (*sent).clone();
            status["creator"] = user(by);
            (201, status)
        }
        ("GET", ["collaborators", login, "permission"]) => {
            let known = id_of(login).map(|_| match site.level(login) {
                40.. => "admin",
                30.. => "write",
                _ => "read",
            });
            known.map_or_else(nothing, |may| (200, json!({"permission": may, "role_name": may})))
        }
        _ => of_branches(site, git, below, asked),
    }
}

fn pulls(site: &mut Site, git: &Bare, asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, query, sent, by, .. } = asked;
    if *method == "POST" {
        let [title, body, head, base] = ["title", "body", "head", "base"].map(|field| text(sent, field));
        if git.tip(&head).is_none() || git.tip(&base).is_none() {
            return invalid("PullRequest", "head or base is no branch");
        }
        return match site.open(git, by, [&title, &body], [&head, &base]) {
            Some(number) => (201, whole(site.pull(number).unwrap(), git)),
            None => invalid("PullRequest", &format!("A pull request already exists for {OWNER}:{head}.")),
        };
    }
    let mut all: Vec<&Pull> = site.pulls.iter().rev().collect();
    if query.get("sort").is_some_and(|by| by == "updated") {
        all.sort_by_key(|pull| std::cmp::Reverse(pull.changed));
    }
    let shown = all.into_iter().map(|pull| listed(pull, git));
    let wanted = |one: &Value| {
        let asked = |name: &str, has: &Value| query.get(name).is_none_or(|asked| asked == "all" || *has == **asked);
        asked("state", &one["state"]) && asked("head", &one["head"]["label"]) && asked("base", &one["base"]["ref"])
    };
    (200, shown.filter(wanted).collect())
}

fn in_pull(site: &mut Site, git: &Bare, number: u64, below: &[&str], asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, sent, by, .. } = asked;
    let Some(pull) = site.pull(number) else { return nothing() };
    match (*method, below[0], &below[2..]) {
        ("GET", "pulls", []) => (200, whole(pull, git)),
        ("PATCH", "pulls", []) => {
            let standing =
                sent["state"].as_str().map(|state| if state == "open" { Standing::Open } else { Standing::Closed });
            if standing == Some(Standing::Open) && (pull.gone || git.tip(&pull.branch).is_none()) {
                return invalid("PullRequest", "state cannot be changed. The branch was force-pushed or recreated.");
            }
            let field = |name: &str| sent[name].as_str().map(str::to_owned);
            let (title, body, base) = (field("title"), field("body"), field("base"));
            let draft = sent["draft"].as_bool();
            site.change(number, by, Change { title, body, base, draft, standing });
            (200, whole(site.pull(number).unwrap(), git))
        }
        ("GET", "pulls", ["reviews"]) => (200, pull.reviews.iter().map(review).collect()),
        ("GET", "pulls", ["commits"]) => (200, pull.commits(git).iter().filter_map(|id| commit(git, id)).collect()),
        ("GET", "issues", []) => {
            let open = pull.standing == Standing::Open;
            let closer = pull.turns.last().filter(|_| !open).map(|(by, ..)| user(by));
            (200, json!({"number": number, "state": if open { "open" } else { "closed" }, "closed_by": closer}))
        }
        ("GET", "issues", ["comments"]) => (200, comments(pull)),
        ("POST", "issues", ["comments"]) if pull.locked => {
            wrong(403, "Unable to create comment because issue is locked.")
        }
        ("POST", "issues", ["comments"]) => {
            let id = site.comment(number, by, &text(sent, "body"), false);
            (201, json!({"id": id, "user": user(by), "body": sent["body"]}))
        }
        ("POST", "issues", ["labels"]) => {
            let names = sent["labels"].as_array().into_iter().flatten();
            site.label(number, by, names.map(|name| name.as_str().unwrap().to_owned()).collect());
            (200, labels(site.pull(number).unwrap()))
        }
        _ => nothing(),
    }
}

/// Rules of branches.
fn of_branches(site: &mut Site, git: &Bare, below: &[&str], asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, sent, by, .. } = asked;
    match (*method, below) {
        ("GET", ["branches", branch]) => {
            let branch = branch.replace("%2F", "/");
            let Some(tip) = git.tip(&branch) else { return wrong(404, "Branch not found") };
            let protected = site.rules.contains_key(&branch);
            (200, json!({"name": branch, "commit": {"sha": tip}, "protected": protected}))
        }
        ("GET", ["rules", "branches", branch]) => {
            let of_it = site.rules.get(&branch.replace("%2F", "/"));
            (200, of_it.cloned().unwrap_or_else(|| json!([])))
        }
        ("POST", ["rulesets"]) if site.level(by) >= 50 => {
            let branch = sent["conditions"]["ref_name"]["include"][0].as_str().unwrap();
            let branch = branch.trim_start_matches("refs/heads/").to_owned();
            site.rules.insert(branch, sent["rules"].clone());
            (201, json!({"id": 1, "name": sent["name"], "enforcement": sent["enforcement"], "rules": sent["rules"]}))
        }
        // Of a webhook, and of a classic rule, only administrators are told.
        _ => nothing(),
    }
}

/// A rule by which pull requests lead to a branch alone, with an approval.
pub(super) fn rule() -> Value {
    let reviews = json!({
        "required_approving_review_count": 1, "dismiss_stale_reviews_on_push": true, "require_code_owner_review": false,
        "require_last_push_approval": true, "required_review_thread_resolution": false,
    });
    json!([{"type": "pull_request", "parameters": reviews}, {"type": "deletion"}])
}

/// Merges a group as the merge queue does: each by a merge commit on top of the one before, and what comes of the last one becomes the
/// base, all at once. `by` is who GitHub says has merged: the queue, or who put them into it.
pub(super) fn merge_queued(site: &mut Site, git: &Bare, by: &str, numbers: &[u64]) -> Result<(), String> {
    let mut made: BTreeMap<u64, String> = BTreeMap::new();
    let mut tip = None;
    for number in numbers {
        let pull = site.pull(*number).ok_or("there is no such pull request")?;
        let onto = tip.or_else(|| git.tip(&pull.base)).ok_or("there is no base")?;
        let merge = git.queued(&pull.by, &onto, &pull.head, site.now);
        made.insert(*number, merge.clone());
        tip = Some(merge);
    }
    for number in numbers {
        site.became(git, *number, by, Way::Merge, made[number].clone());
    }
    Ok(())
}
