//! Groups of people beside the stand-in's projects.

use super::{Gitlab, USERS};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Who is in each, by its path in one part.
pub(super) type Groups = BTreeMap<String, BTreeSet<String>>;

impl Gitlab {
    /// Makes a group of these people, or lets them alone stay in it.
    pub(crate) fn team(&self, name: &str, people: &[&str]) {
        let people = people.iter().map(|name| (*name).to_owned()).collect();
        self.state.groups.lock().unwrap().insert(format!("acme%2F{name}"), people);
    }
}

pub(super) fn answer(groups: &Groups, group: &str, below: &[&str]) -> (u16, Value) {
    let nothing = || (404, json!({"message": "404 Not Found"}));
    let Some(people) = groups.get(group) else {
        // Nobody is in the outermost one.
        return if (group, below) == ("acme", &[]) { (200, json!({"id": 8, "full_path": group})) } else { nothing() };
    };
    let is_in = |id: &str| USERS.iter().any(|(known, name)| known.to_string() == id && people.contains(*name));
    match below {
        [] => (200, json!({"id": 9, "full_path": group.replace("%2F", "/")})),
        ["members", id] if is_in(id) => (200, json!({"id": 1, "access_level": 30, "state": "active"})),
        _ => nothing(),
    }
}
