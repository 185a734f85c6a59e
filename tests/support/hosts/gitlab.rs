//! The words of GitLab, as its documentation and its source have them.

use super::bare::{Bare, Way};
use super::site::{Change, Merged, Pull, Says, Site, Standing, Status, Time, id_of, is_machine, owner_of, user_of};
use super::{Asked, OWNER, REPOSITORY, text};
use chrono::SecondsFormat;
use serde_json::{Value, json};

pub(super) fn nothing() -> (u16, Value) {
    wrong(404, "404 Not Found")
}

pub(super) fn wrong(status: u16, why: &str) -> (u16, Value) {
    (status, json!({"message": why}))
}

fn user(name: &str) -> Value {
    json!({"id": id_of(name).unwrap(), "username": name})
}

fn profile(name: &str) -> Value {
    let mut profile = user(name);
    profile["bot"] = json!(is_machine(name));
    profile
}

fn at(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A merge request.
fn shown(pull: &Pull) -> Value {
    let state = match pull.standing {
        Standing::Open => "opened",
        Standing::Closed => "closed",
        Standing::Merged => "merged",
    };
    let merged = pull.merged.as_ref();
    let became = |ways: &[Way]| merged.filter(|merged| ways.contains(&merged.way)).map(|merged| &merged.became);
    let by = merged.map(|Merged { by, .. }| user(by));
    json!({
        "iid": pull.number, "state": state, "title": pull.title, "description": pull.body, "author": user(&pull.by),
        "source_project_id": REPOSITORY, "target_project_id": REPOSITORY, "source_branch": pull.branch,
        "target_branch": pull.base, "sha": pull.head, "draft": pull.draft, "labels": pull.labels,
        "merge_commit_sha": became(&[Way::Merge]), "squash_commit_sha": became(&[Way::Squash]), "merge_user": by,
        "merged_by": by, "merged_at": merged.map(|merged| at(merged.at)), "updated_at": at(pull.changed),
    })
}

fn commit(git: &Bare, id: &str) -> Option<Value> {
    let shown = git.show(id)?;
    Some(json!({
        "id": shown.id, "parent_ids": shown.parents, "author_email": shown.author, "committer_email": shown.committer,
    }))
}

/// What is answered to a request.
pub(super) fn answer(site: &mut Site, git: &Bare, asked: &Asked<'_>) -> (u16, Value) {
    match (asked.method, asked.parts) {
        ("POST", ["graphql"]) => author(git, asked.sent),
        ("GET", ["user"]) => (200, user(asked.by)),
        ("GET", ["users"]) => {
            let sought = asked.query["search"].as_str();
            let found = owner_of(sought).map(|name| {
                let mut user = user(name);
                user["public_email"] = json!(sought);
                user
            });
            (200, found.into_iter().collect())
        }
        ("GET", ["users", id]) => user_of(id).map_or_else(nothing, |name| (200, profile(name))),
        ("GET", ["groups", group, below @ ..]) => in_group(site, &group.replace("%2F", "/"), below),
        (_, ["projects", name, below @ ..]) if *name == format!("{OWNER}%2F{}", asked.name) => {
            in_project(site, git, below, asked)
        }
        _ => nothing(),
    }
}

/// Whose address the author of a commit has.
fn author(git: &Bare, sent: &Value) -> (u16, Value) {
    let found = git.show(sent["variables"]["sha"].as_str().unwrap());
    let author = found
        .and_then(|shown| owner_of(&shown.author))
        .map(|name| json!({"id": format!("gid://gitlab/User/{}", id_of(name).unwrap()), "username": name}));
    (200, json!({"data": {"project": {"repository": {"commit": {"author": author}}}}}))
}

fn in_group(site: &Site, group: &str, below: &[&str]) -> (u16, Value) {
    // Nobody is in the outermost one.
    if (group, below) == (OWNER, &[]) {
        return (200, json!({"id": 8, "full_path": group}));
    }
    let people = group.strip_prefix(&format!("{OWNER}/")).and_then(|team| site.teams.get(team));
    match (people, below) {
        (Some(_), []) => (200, json!({"id": 9, "full_path": group})),
        (Some(people), ["members", id]) if user_of(id).is_some_and(|name| people.contains(name)) => {
            (200, json!({"id": 1, "access_level": 30, "state": "active"}))
        }
        _ => nothing(),
    }
}

fn in_project(site: &mut Site, git: &Bare, below: &[&str], asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, query, sent, .. } = asked;
    match (*method, below) {
        ("GET", []) => (200, json!({"id": REPOSITORY})),
        (_, ["merge_requests"]) => requests(site, git, asked),
        (_, ["merge_requests", number, ..]) => in_request(site, git, number.parse().unwrap(), below, asked),
        ("GET", ["repository", "commits", id, "merge_requests"]) => {
            let has_it = |pull: &&Pull| pull.merged.as_ref().is_some_and(|merged| merged.brought(git, &pull.head, id));
            (200, site.pulls.iter().filter(has_it).map(shown).collect())
        }
        ("GET", ["repository", "commits", id]) => commit(git, id).map_or_else(nothing, |shown| (200, shown)),
        ("GET", ["repository", "files", path]) => {
            let found = git.entry(&query["ref"], &path.replace("%2F", "/"));
            found.map_or_else(nothing, |blob| (200, json!({"blob_id": blob, "file_path": path})))
        }
        ("POST", ["statuses", id]) => {
            let [name, mark, said] = ["name", "state", "description"].map(|field| text(sent, field));
            let is_it = |status: &&Status| status.commit == **id && status.name == name;
            if mark == "pending" && site.statuses.iter().rfind(is_it).is_some_and(|last| last.mark == "pending") {
                return wrong(400, "Cannot transition status via :enqueue from :pending");
            }
            site.statuses.push(Status { commit: (*id).to_owned(), name, mark, text: said });
            (201, (*sent).clone())
        }
        ("GET", ["members", "all", id]) => {
            user_of(id).map_or_else(nothing, |name| (200, json!({"access_level": site.level(name), "state": "active"})))
        }
        ("GET", ["repository", "branches", branch]) => {
            let branch = branch.replace("%2F", "/");
            let kept = site.rules.contains_key(&branch);
            let may = json!({
                "name": branch, "protected": kept, "can_push": !kept, "developers_can_push": !kept,
                "developers_can_merge": !kept,
            });
            git.tip(&branch).map_or_else(|| wrong(404, "404 Branch Not Found"), |_| (200, may))
        }
        _ => nothing(),
    }
}

fn requests(site: &mut Site, git: &Bare, asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, query, sent, by, .. } = asked;
    if *method == "POST" {
        let [title, body] = ["title", "description"].map(|field| text(sent, field));
        let [head, base] = ["source_branch", "target_branch"].map(|field| text(sent, field));
        return match site.open(git, by, [&title, &body], [&head, &base]) {
            Some(number) => (201, site.pull(number).map(shown).unwrap()),
            None => {
                let why = "Another open merge request already exists for this source branch: !1";
                (409, json!({"message": [why]}))
            }
        };
    }
    let mut all: Vec<&Pull> = site.pulls.iter().rev().collect();
    if query.get("order_by").is_some_and(|by| by == "updated_at") {
        all.sort_by_key(|pull| std::cmp::Reverse(pull.changed));
    }
    let wanted = |one: &Value| {
        let asked = |name: &str, has: &Value| {
            let word = has.as_str().map_or_else(|| has.to_string(), str::to_owned);
            query.get(name).is_none_or(|asked| asked == "all" || *asked == word)
        };
        asked("state", &one["state"])
            && asked("source_branch", &one["source_branch"])
            && asked("target_branch", &one["target_branch"])
            && asked("author_id", &one["author"]["id"])
    };
    (200, all.into_iter().map(shown).filter(wanted).collect())
}

fn in_request(site: &mut Site, git: &Bare, number: u64, below: &[&str], asked: &Asked<'_>) -> (u16, Value) {
    let Asked { method, sent, by, .. } = asked;
    let Some(pull) = site.pull(number) else { return nothing() };
    match (*method, &below[2..]) {
        ("GET", []) => (200, shown(pull)),
        ("PUT", []) => {
            let field = |name: &str| sent[name].as_str().map(str::to_owned);
            let standing = match sent["state_event"].as_str() {
                Some("close") => Some(Standing::Closed),
                Some("reopen") if git.tip(&pull.branch).is_none() => {
                    return wrong(422, "the source branch does not exist");
                }
                Some("reopen") => Some(Standing::Open),
                _ => None,
            };
            if let Some(labels) = sent["add_labels"].as_str() {
                site.label(number, by, labels.split(',').map(str::to_owned).collect());
            }
            let (title, body, base) = (field("title"), field("description"), field("target_branch"));
            site.change(number, by, Change { title, body, base, draft: None, standing });
            (200, site.pull(number).map(shown).unwrap())
        }
        ("GET", ["notes"]) => {
            let notes = pull.comments.iter().map(|said| {
                json!({
                    "id": said.id, "system": said.system, "body": said.text, "author": user(&said.by),
                    "created_at": at(said.at), "updated_at": at(said.changed),
                })
            });
            (200, notes.collect())
        }
        ("POST", ["notes"]) if pull.locked => wrong(403, "403 Forbidden"),
        ("POST", ["notes"]) => (201, json!({"id": site.comment(number, by, &text(sent, "body"), false)})),
        ("PUT", ["notes", id]) => match site.rephrase(id.parse().unwrap(), by, &text(sent, "body")) {
            Some(_) => (200, json!({"id": id.parse::<u64>().unwrap(), "body": sent["body"]})),
            None => nothing(),
        },
        ("GET", below) => told(pull, git, below),
        _ => nothing(),
    }
}

/// What is told of one beside its text and its notes.
fn told(pull: &Pull, git: &Bare, below: &[&str]) -> (u16, Value) {
    let of = |says: Says| pull.last_reviews().filter(move |review| review.says == says);
    match below {
        ["versions"] => {
            let versions = pull.versions.iter();
            let shown =
                versions.map(|(id, head, made)| json!({"id": id, "head_commit_sha": head, "created_at": at(*made)}));
            (200, shown.collect())
        }
        ["reviewers"] => {
            let asks = of(Says::ChangesRequested).map(
                |review| json!({"user": user(&review.by), "state": "requested_changes", "created_at": at(review.at)}),
            );
            (200, asks.collect())
        }
        ["approvals"] => {
            let by = of(Says::Approved).map(|review| json!({"user": user(&review.by), "approved_at": at(review.at)}));
            (200, json!({"approved": true, "approved_by": by.collect::<Vec<_>>()}))
        }
        ["resource_state_events"] => {
            // A branch that is deleted closes one without an event.
            let turns = pull.turns.iter().filter(|(by, ..)| !(pull.gone && is_machine(by)));
            let events =
                turns.map(|(by, state, when)| json!({"user": user(by), "state": state, "created_at": at(*when)}));
            (200, events.collect())
        }
        ["commits"] => {
            let all = pull.commits(git);
            (200, all.iter().rev().filter_map(|id| commit(git, id)).collect())
        }
        _ => nothing(),
    }
}
