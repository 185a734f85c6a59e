//! What is tracked live: only what the layout can hold back from stable's pods, and what those pods read.

use super::Case;
use crate::manifest::desired::{Layout, TargetKind};
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::reference::{self, Referent};
use crate::manifest::set::Item;
use crate::manifest::tracked;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn check(case: &Case<'_>, target: &Item) -> Vec<Diagnostic> {
    let target_of = &case.spec.target;
    if target_of.track.is_empty() {
        return Vec::new();
    }
    if target_of.layout != Layout::Primary || target_of.kind != TargetKind::Deployment {
        let what =
            "the pods of the stable version read the same live objects, so that nothing of a change could be held back";
        let expected = "layout: primary, where each version has copies of its own; or no track";
        let help =
            "or write a digest of the data into an annotation of the pod template: that makes its change a version";
        return vec![case.error("/spec/target/track", Code::LayoutLimit, what, expected).help(help)];
    }
    let template = target.object.at("/spec/template").unwrap_or(&Value::Null);
    let read: BTreeSet<(Referent, String)> =
        reference::references(template).into_iter().map(|found| (found.to, found.name)).collect();
    let mut found = Vec::new();
    for (kind, name, place) in target_of.track.placed() {
        let mut error = |what: String, expected: String| {
            found.push(case.error(&format!("/spec/target/track/{place}"), Code::LayoutLimit, what, expected));
        };
        if kind.kind().is_some_and(|kind| case.item(kind, name).is_some()) {
            let what = format!("{kind} {name} is among the manifests: a change of it is a version already");
            error(what, "the name of an object that is live alone".to_owned());
        } else if !read.contains(&(kind, name.to_string())) {
            let there = read.iter().filter(|(of, name)| *of == kind && !is_there(case, kind, name));
            let there: Vec<&str> = there.map(|(_, name)| name.as_str()).collect();
            let expected =
                if there.is_empty() { "no such name".to_owned() } else { format!("one of {}", there.join(", ")) };
            error(format!("the pods of {} do not read {kind} {name}", target_of.name), expected);
        } else if name.as_str().len() > tracked::longest() {
            let what = format!("the name of a copy of {kind} {name} would be too long");
            error(what, format!("a name of at most {} characters", tracked::longest()));
        }
    }
    found
}

fn is_there(case: &Case<'_>, kind: Referent, name: &str) -> bool {
    kind.kind().zip(name.parse().ok()).is_some_and(|(kind, name)| case.item(kind, &name).is_some())
}
