//! Teams of the stand-in's organisation.

use super::{Github, nothing};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Who is in each.
pub(super) type Teams = BTreeMap<String, BTreeSet<String>>;

impl Github {
    /// Makes a team of these people, or lets them alone stay in it.
    pub(crate) fn team(&self, name: &str, people: &[&str]) {
        let people = people.iter().map(|name| (*name).to_owned()).collect();
        self.state.teams.lock().unwrap().insert(name.to_owned(), people);
    }
}

pub(super) fn answer(teams: &Teams, below: &[&str]) -> (u16, Value) {
    let Some((name, people)) = below.first().and_then(|name| teams.get_key_value(*name)) else {
        return nothing("Not Found");
    };
    match &below[1..] {
        // The repository has its name.
        ["repos", "acme", repository] if repository == name => (204, Value::Null),
        ["memberships", login] if people.contains(*login) => (200, json!({"role": "member", "state": "active"})),
        _ => nothing("Not Found"),
    }
}
