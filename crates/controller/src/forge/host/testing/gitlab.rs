//! The same host as GitLab describes its API.

use super::{REPOSITORY, Server, USER, ordered};
use axum::http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PROJECT: &str = "/api/v4/projects/acme%2Fshop";

impl Server {
    pub(super) fn as_gitlab(
        &self,
        method: &Method,
        path: &str,
        query: &BTreeMap<String, String>,
        sent: Value,
    ) -> (u16, Value, bool) {
        let text = |name: &str| sent[name].as_str().unwrap_or_default().to_owned();
        if path == "/api/graphql" {
            return self.there("/graphql", query);
        }
        let Some(below) = path.strip_prefix(PROJECT) else {
            return match path.strip_prefix("/api/v4") {
                Some("/user") => (200, json!({"id": USER, "username": "bot"}), false),
                Some(path) => self.there(path, query),
                None => (404, json!({"error": "404 Not Found"}), false),
            };
        };
        match (method.as_str(), below.trim_start_matches('/').split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", [""]) => (200, json!({"id": REPOSITORY, "name": "shop"}), false),
            ("GET", ["merge_requests"]) => {
                let (value, more) = self.requests(query);
                (200, value, more)
            }
            ("POST", ["merge_requests"]) => {
                let branch = text("source_branch");
                let taken = self.state().pulls.iter().any(|p| p["state"] == "open" && p["head"]["ref"] == *branch);
                if taken {
                    let why = "Another open merge request already exists for this source branch: !1";
                    return (409, json!({"message": [why]}), false);
                }
                let number = self.open(USER, &branch, &text("target_branch"), &text("description"));
                self.change(number, json!({"title": text("title")}));
                (201, self.state().pulls.last().map(as_request).unwrap(), false)
            }
            (method @ ("GET" | "PUT"), ["merge_requests", number]) => {
                let number: u64 = number.parse().unwrap();
                if let Some(labels) = sent["add_labels"].as_str() {
                    self.label(number, &labels.split(',').collect());
                } else if method == "PUT" {
                    self.change(number, as_pull(&sent));
                }
                (200, self.state().pulls.iter().find(|pull| pull["number"] == number).map(as_request).unwrap(), false)
            }
            ("GET", ["merge_requests", _, "notes"]) if self.state().there.contains_key(&below[1..]) => {
                self.there(&below[1..], query)
            }
            (method, ["merge_requests", number, "notes", rest @ ..]) => {
                self.notes((method, rest), number, query, &text("body"))
            }
            ("POST", ["statuses", commit]) => {
                let mut state = self.state();
                let last = state.comments.last().map(|(_, sent)| sent.clone()).unwrap_or_default();
                if sent["state"] == "pending" && last.contains("\"pending\"") {
                    let why = "Cannot transition status via :enqueue from :pending";
                    return (400, json!({"message": why}), false);
                }
                state.comments.push(((*commit).to_owned(), sent.to_string()));
                (201, json!({"id": 1}), false)
            }
            ("GET", rest) => self.there(&rest.join("/"), query),
            _ => (404, json!({"error": "404 Not Found"}), false),
        }
    }

    fn notes(
        &self,
        asked: (&str, &[&str]),
        number: &str,
        query: &BTreeMap<String, String>,
        text: &str,
    ) -> (u16, Value, bool) {
        match asked {
            ("GET", []) => {
                let all = self.said(number).into_iter().map(|mut note| {
                    let user = note.as_object_mut().unwrap().remove("user");
                    note["author"] = user.unwrap_or_default();
                    note
                });
                let (value, more) = self.paged(&all.collect::<Vec<_>>(), query);
                (200, value, more)
            }
            ("POST", []) => {
                self.state().comments.push((number.to_owned(), text.to_owned()));
                (201, json!({"id": 1}), false)
            }
            ("PUT", [id]) => {
                let id: usize = id.parse().unwrap();
                let said = &mut self.state().comments[id - 1];
                assert_eq!(said.0, number);
                text.clone_into(&mut said.1);
                (200, json!({"id": id}), false)
            }
            _ => (404, json!({"error": "404 Not Found"}), false),
        }
    }

    fn requests(&self, query: &BTreeMap<String, String>) -> (Value, bool) {
        let all: Vec<Value> = self.state().pulls.iter().map(as_request).collect();
        let wanted = |request: &&Value| {
            let asked = |name: &str, has: &Value| {
                let word = has.as_str().map_or_else(|| has.to_string(), str::to_owned);
                query.get(name).is_none_or(|asked| asked == "all" || *asked == word)
            };
            asked("state", &request["state"])
                && asked("source_branch", &request["source_branch"])
                && asked("target_branch", &request["target_branch"])
                && asked("author_id", &request["author"]["id"])
        };
        let wanted = all.iter().filter(wanted).cloned().collect();
        self.paged(&ordered(wanted, query.get("order_by").map(String::as_str)), query)
    }
}

/// A pull request in GitLab's words.
pub(super) fn as_request(pull: &Value) -> Value {
    let state = match (&pull["merged_at"], pull["state"].as_str()) {
        (Value::Null, Some("open")) => "opened",
        (Value::Null, _) => "closed",
        _ => "merged",
    };
    json!({
        "iid": pull["number"], "state": state, "merged_at": pull["merged_at"], "title": pull["title"],
        "description": pull["body"], "author": {"id": pull["user"]["id"], "username": pull["user"]["login"]},
        "source_project_id": pull["head"]["repo"]["id"], "source_branch": pull["head"]["ref"], "target_branch": pull["base"]["ref"],
        "sha": pull["head"]["sha"], "updated_at": pull["updated_at"],
    })
}

/// What is said of a merge request in GitHub's words.
fn as_pull(sent: &Value) -> Value {
    let mut fields = serde_json::Map::new();
    for (name, value) in sent.as_object().unwrap() {
        let (name, value) = match (name.as_str(), value.as_str()) {
            ("description", _) => ("body", value.clone()),
            ("state_event", Some("close")) => ("state", json!("closed")),
            ("state_event", Some("reopen")) => ("state", json!("open")),
            (name, _) => (name, value.clone()),
        };
        fields.insert(name.to_owned(), value);
    }
    fields.into()
}
