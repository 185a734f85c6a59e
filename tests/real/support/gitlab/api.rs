//! What the stand-in answers.

use super::{MergeRequest, Origin, Project, State, USERS, faults, now, teams, user};
use axum::http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl State {
    pub(super) fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        sent: &Value,
    ) -> (u16, Value) {
        let nothing = || (404, json!({"message": "404 Not Found"}));
        if path == "/api/graphql" {
            return self.author(sent);
        }
        let Some(path) = path.strip_prefix("/api/v4/") else { return nothing() };
        let parts: Vec<&str> = path.split('/').collect();
        let Some((project, below)) = parts.strip_prefix(&["projects"]).and_then(<[&str]>::split_first) else {
            return match parts.as_slice() {
                ["user"] => (200, user("bot")),
                ["users"] => {
                    let named = |(_, name): &&(u64, &str)| query["search"] == format!("{name}@example.test");
                    let shown = |(_, name): &(u64, &str)| {
                        let mut user = user(name);
                        user["public_email"] = json!(format!("{name}@example.test"));
                        user
                    };
                    (200, USERS.iter().filter(named).map(shown).collect())
                }
                ["users", id] => (200, profile(id)),
                ["groups", group, below @ ..] => teams::answer(&self.groups.lock().unwrap(), group, below),
                _ => nothing(),
            };
        };
        let Some(name) = project.strip_prefix("acme%2Fshops%2F") else { return nothing() };
        if !self.lock().contains_key(name) {
            return nothing();
        }
        self.with(name, |project, origin| in_project(project, origin, (method.as_str(), below), query, sent))
    }

    /// Whose address the author of a commit has.
    fn author(&self, sent: &Value) -> (u16, Value) {
        let path = sent["variables"]["path"].as_str().unwrap();
        let origin = Origin::at(&self.root.join(format!("{path}.git")));
        let address = origin.git(&["show", "-s", "--format=%ae", sent["variables"]["sha"].as_str().unwrap()]);
        let name = address.strip_suffix("@example.test").unwrap_or_default();
        let found = USERS.iter().find(|(_, known)| *known == name);
        let author = found.map(|(id, name)| json!({"id": format!("gid://gitlab/User/{id}"), "username": name}));
        (200, json!({"data": {"project": {"repository": {"commit": {"author": author}}}}}))
    }
}

fn profile(id: &str) -> Value {
    let (_, name) = USERS.iter().find(|(known, _)| known.to_string() == id).unwrap();
    let mut profile = user(name);
    profile["bot"] = json!(matches!(*name, "robot" | "bot"));
    profile
}

fn in_project(
    project: &mut Project,
    origin: &Origin,
    asked: (&str, &[&str]),
    query: &BTreeMap<String, String>,
    sent: &Value,
) -> (u16, Value) {
    match asked {
        ("GET", []) => (200, json!({"id": project.number.unwrap_or(7)})),
        ("GET", ["merge_requests"]) => {
            let wanted = |one: &&Value| {
                let asked = |name: &str, has: &Value| {
                    let word = has.as_str().map_or_else(|| has.to_string(), str::to_owned);
                    query.get(name).is_none_or(|asked| asked == "all" || *asked == word)
                };
                asked("state", &one["state"])
                    && asked("source_branch", &one["source_branch"])
                    && asked("target_branch", &one["target_branch"])
                    && asked("author_id", &one["author"]["id"])
            };
            let mut all: Vec<&Value> = project.requests.iter().rev().map(|one| &one.shown).filter(wanted).collect();
            if query.get("order_by").is_some_and(|by| by == "updated_at") {
                all.sort_by(|a, b| b["updated_at"].as_str().cmp(&a["updated_at"].as_str()));
            }
            (200, json!(all))
        }
        ("POST", ["merge_requests"]) => match project.open("bot", sent) {
            Some(shown) => (201, shown),
            None => (409, json!({"message": ["Another open merge request already exists for this source branch: !1"]})),
        },
        (method, ["merge_requests", number, rest @ ..]) => {
            let number = number.parse().unwrap();
            in_request(project, origin, number, (method, rest), sent)
        }
        ("GET", ["repository", "commits", commit, "merge_requests"]) => {
            let fields = ["merge_commit_sha", "squash_commit_sha", "sha"];
            let is_it = |one: &&MergeRequest| fields.iter().any(|field| one.shown[field] == **commit);
            (200, project.requests.iter().filter(is_it).map(|one| one.shown.clone()).collect())
        }
        (_, ["protected_branches", ..] | ["repository", "branches", ..]) => of_branches(project, origin, asked, sent),
        ("GET", ["repository", "commits", commit]) => (200, commit_of(origin, commit)),
        ("GET", ["repository", "files", path]) => {
            let found = origin.git(&["ls-tree", &query["ref"], "--", &path.replace("%2F", "/")]);
            match found.split_whitespace().nth(2) {
                Some(blob) => (200, json!({"blob_id": blob, "file_path": path})),
                None => (404, json!({"message": "404 File Not Found"})),
            }
        }
        ("POST", ["statuses", commit]) => {
            let is_it = |status: &&Value| status["sha"] == **commit && status["name"] == sent["name"];
            let last = project.statuses.iter().rfind(is_it).map(|status| status["state"].clone());
            if sent["state"] == "pending" && last == Some(json!("pending")) {
                return (400, json!({"message": "Cannot transition status via :enqueue from :pending"}));
            }
            let mut status = sent.clone();
            status["sha"] = json!(commit);
            project.statuses.push(status.clone());
            (201, status)
        }
        ("GET", ["members", "all", id]) => {
            let (_, name) = USERS.iter().find(|(known, _)| known.to_string() == *id).unwrap();
            (200, json!({"access_level": faults::level(&project.levels, name), "state": "active"}))
        }
        _ => (404, json!({"message": "404 Not Found"})),
    }
}

/// Rules of branches, and what they come to.
fn of_branches(project: &mut Project, origin: &Origin, asked: (&str, &[&str]), sent: &Value) -> (u16, Value) {
    match asked {
        ("DELETE", ["protected_branches", branch]) => {
            let branch = branch.replace("%2F", "/");
            if project.kept.remove(&branch).is_none() {
                return (404, json!({"message": "404 Not Found"}));
            }
            if project.rules(&branch).is_empty() && origin.tip(&branch).is_some() {
                project.bared.push(branch);
            }
            (204, json!(null))
        }
        ("GET", ["protected_branches", name]) => match project.kept.get(&name.replace("%2F", "/")) {
            Some(_) => (200, json!({"name": name})),
            None => (404, json!({"message": "404 Not Found"})),
        },
        ("POST", ["protected_branches"]) if project.refuses => (422, json!({"message": "no"})),
        ("POST", ["protected_branches"]) => {
            let name = sent["name"].as_str().unwrap().to_owned();
            if project.kept.contains_key(&name) {
                return (409, json!({"message": format!("Protected branch '{name}' already exists")}));
            }
            let level = |field: &str| sent[field].as_u64().unwrap();
            project.kept.insert(name, [level("push_access_level"), level("merge_access_level")]);
            (201, sent.clone())
        }
        ("GET", ["repository", "branches", branch]) => {
            let branch = branch.replace("%2F", "/");
            let rules = project.rules(&branch);
            // Tidegate's account is a Developer.
            let [push, merge] = [0, 1].map(|of| rules.is_empty() || rules.iter().any(|levels| levels[of] == 30));
            let shown = json!({
                "name": branch, "protected": !rules.is_empty(), "can_push": push, "developers_can_push": push,
                "developers_can_merge": merge,
            });
            origin.tip(&branch).map_or((404, json!({"message": "404 Branch Not Found"})), |_| (200, shown))
        }
        _ => (404, json!({"message": "404 Not Found"})),
    }
}

fn in_request(
    project: &mut Project,
    origin: &Origin,
    number: u64,
    asked: (&str, &[&str]),
    sent: &Value,
) -> (u16, Value) {
    let request = project.request(number);
    match asked {
        ("GET", []) => (200, request.shown.clone()),
        ("PUT", []) => (200, project.change(number, "bot", sent)),
        ("POST", ["notes"]) => {
            let id = project.note(number, "bot", sent["body"].as_str().unwrap(), false);
            (201, json!({"id": id}))
        }
        ("GET", ["notes"]) => (200, json!(request.notes)),
        ("PUT", ["notes", id]) => match request.notes.iter_mut().find(|note| note["id"].as_u64() == id.parse().ok()) {
            Some(note) => {
                (note["body"], note["updated_at"]) = (sent["body"].clone(), json!(now()));
                (200, note.clone())
            }
            None => (404, json!({"message": "404 Not found"})),
        },
        ("GET", ["versions"]) => (200, json!(request.versions)),
        ("GET", ["reviewers"]) => (200, json!([])),
        ("GET", ["resource_state_events"]) => (200, json!(request.events)),
        ("GET", ["approvals"]) => {
            (200, json!({"approved": true, "approved_by": request.approvals.values().collect::<Vec<_>>()}))
        }
        ("GET", ["commits"]) => {
            let head = request.shown["sha"].as_str().unwrap();
            let (target, merged) = (&request.shown["target_branch"], &request.shown["merge_commit_sha"]);
            let base = merged.as_str().map_or(target.as_str().unwrap().to_owned(), |merged| format!("{merged}^1"));
            let all = origin.git(&["rev-list", head, &format!("^{base}")]);
            (200, all.lines().map(|commit| commit_of(origin, commit)).collect())
        }
        _ => (404, json!({"message": "404 Not Found"})),
    }
}

fn commit_of(origin: &Origin, commit: &str) -> Value {
    let shown = origin.git(&["show", "-s", "--format=%H|%P|%ae|%ce", commit]);
    let [id, parents, author, committer] = shown.split('|').collect::<Vec<_>>().try_into().unwrap();
    let parents: Vec<&str> = parents.split_whitespace().collect();
    json!({"id": id, "parent_ids": parents, "author_email": author, "committer_email": committer})
}
