//! Fields of Kubernetes objects that do not exist, and values of the wrong sort.
//!
//! The fields that are known here are those of one version of Kubernetes. The cluster may have a newer one, so that a field
//! that is not known is a warning: the API server tells in a dry run, before anything is made. The sort of a field never
//! changes, so that a value of another sort is an error everywhere.

use super::{Case, Findings};
use crate::manifest::diagnostic::{Code, Diagnostic, MOST, Mark, quoted};
use crate::manifest::kinds::{self, Map, Scalar, Schema, Type};
use crate::manifest::schema::nearest;
use crate::manifest::set::Item;
use crate::manifest::yaml::{Content, Key, Node};
use serde_json::Value;
use std::collections::BTreeSet;
use std::iter;

/// The most fields that are listed as what was expected.
const LISTED: usize = 12;

/// Looks at every field of every object, but for those of broken files. Where something is wrong already, nothing is
/// added.
pub(super) fn check(case: &Case<'_>, findings: &mut Findings) {
    let told: BTreeSet<_> = findings.errors.iter().map(|d| (d.path.clone(), d.line, d.column)).collect();
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let all = case.items.values().chain(case.jobs.values());
    for item in all.filter(|item| !case.broken.contains(item.source.path())) {
        let kind = item.object.reference().kind;
        let Some(schema) = Schema::of(kind.api_version(), kind.as_str()) else { continue };
        let mut look = Look { item, schema, errors: &mut errors, warnings: &mut warnings };
        look.at(schema.root(), &item.node, &At { mark: item.node.mark, name: "", above: None });
    }
    findings.errors.extend(errors.into_iter().filter(|d| !told.contains(&(d.path.clone(), d.line, d.column))));
    findings.warnings.extend(warnings);
}

/// One look through an object. Of each there are at most [`MOST`] for a rollout.
struct Look<'a> {
    item: &'a Item,
    schema: &'static Schema,
    errors: &'a mut Vec<Diagnostic>,
    warnings: &'a mut Vec<Diagnostic>,
}

/// Where a value stands.
struct At<'a> {
    mark: Mark,
    /// The name of its field; empty for the object itself.
    name: &'a str,
    /// The mapping that it stands in.
    above: Option<&'a Place<'a>>,
}

/// A mapping with known fields.
struct Place<'a> {
    map: &'a Map,
    node: &'a Node,
    at: &'a At<'a>,
}

impl Look<'_> {
    fn at(&mut self, of: &Type, node: &Node, at: &At<'_>) {
        match (&node.content, of) {
            // What is null is absent.
            (Content::Scalar(Value::Null), _) => {}
            (Content::Scalar(value), Type { scalar: Some(scalar), .. }) if takes(*scalar, value) => {}
            (Content::List(items), Type { list: Some(list), .. }) => {
                for (place, item) in items.iter().enumerate() {
                    let name = format!("{}[{place}]", at.name);
                    self.at(list.item.get(), item, &At { mark: item.mark, name: &name, above: at.above });
                }
            }
            (Content::Map(entries), Type { map: Some(map), .. }) => {
                let here = Place { map, node, at };
                for (key, child) in entries {
                    match map.at(&key.text) {
                        // The API server passes over a status that is applied with the object.
                        _ if at.above.is_none() && key.text == "status" => {}
                        Some(of) => {
                            let whole = matches!(child.content, Content::Scalar(_)) && child.mark.length > 0;
                            let mark = if whole { child.mark } else { key.mark };
                            self.at(of, child, &At { mark, name: &key.text, above: Some(&here) });
                        }
                        None => self.unknown(&here, key),
                    }
                }
            }
            (Content::Scalar(_) | Content::List(_) | Content::Map(_), _) => self.wrong(of, node, at),
        }
    }

    fn unknown(&mut self, here: &Place<'_>, key: &Key) {
        if self.warnings.len() >= MOST {
            return;
        }
        let names: Vec<&str> = here.map.fields.keys().copied().collect();
        let whose = if self.schema.is_custom() {
            "the Gateway API".to_owned()
        } else {
            format!("Kubernetes {}", kinds::version())
        };
        let found = format!("{whose} has no field {} in {}", quoted(&key.text), self.called(here));
        let expected = match names.len() {
            0 => "no field".to_owned(),
            1..=LISTED => format!("one of {}", names.join(", ")),
            many => format!("one of its {many} fields"),
        };
        let diagnostic = self.item.source.at(key.mark, Code::UnknownField, found, expected);
        let help = match self.elsewhere(here, &key.text) {
            Some(other) => Some(format!("{} is a field of {other}: look at the indentation", key.text)),
            None => nearest(&key.text, &names).map(|near| format!("did you mean {near}?")),
        };
        self.warnings.push(help.into_iter().fold(diagnostic, Diagnostic::help));
    }

    /// The mapping further out, or right inside, that has a field of that name.
    fn elsewhere(&self, here: &Place<'_>, field: &str) -> Option<String> {
        let has = |map: &Map| map.fields.contains_key(field);
        let mut out = iter::successors(here.at.above, |place| place.at.above);
        out.find(|place| has(place.map)).map(|place| self.called(place)).or_else(|| {
            let inside = |of: &Type| {
                let item = of.list.as_ref().and_then(|list| list.item.get().map.as_ref());
                of.map.as_ref().or(item).is_some_and(has)
            };
            let mut keys = here.node.entries().iter().map(|(key, _)| &key.text);
            keys.find(|key| here.map.at(key).is_some_and(inside)).map(|key| escaped(key))
        })
    }

    fn called(&self, place: &Place<'_>) -> String {
        if place.at.above.is_none() { format!("this {}", self.schema.kind()) } else { escaped(place.at.name) }
    }

    fn wrong(&mut self, of: &Type, node: &Node, at: &At<'_>) {
        if self.errors.len() >= MOST {
            return;
        }
        // No value is quoted: a file may hold what nobody should read.
        let (is, text) = match &node.content {
            Content::Scalar(Value::String(text)) => ("a text", text.as_str()),
            Content::Scalar(Value::Bool(true)) => ("true", ""),
            Content::Scalar(Value::Bool(false)) => ("false", ""),
            Content::Scalar(_) => ("a number", ""),
            Content::List(_) => ("a list", ""),
            Content::Map(_) => ("a mapping", ""),
        };
        let (expected, help) = match (of, &node.content) {
            (Type { map: Some(_), .. }, _) => ("a mapping", None),
            (Type { list: Some(_), .. }, Content::Map(_)) => ("a list", Some("begin each entry with '- '")),
            (Type { list: Some(_), .. }, _) => ("a list", None),
            (Type { scalar: Some(Scalar::Text), .. }, Content::Scalar(_)) => ("a text", Some("quote it")),
            (Type { scalar: Some(Scalar::Text), .. }, _) => ("a text", None),
            (Type { scalar: Some(Scalar::Number), .. }, _) => {
                ("a number", text.parse::<i64>().is_ok().then_some("take the quotes away"))
            }
            (Type { scalar: Some(Scalar::Truth), .. }, _) => {
                ("true or false", matches!(text, "true" | "false").then_some("take the quotes away"))
            }
            (Type { scalar: Some(Scalar::Any | Scalar::Quantity) | None, .. }, _) => ("a number or a text", None),
        };
        let found = format!("{} is {is}", escaped(at.name));
        let diagnostic = self.item.source.at(at.mark, Code::Schema, found, expected);
        self.errors.push(help.into_iter().fold(diagnostic, Diagnostic::help));
    }
}

/// Whether a scalar, which is not null, is of that sort.
fn takes(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::Text => value.is_string(),
        Scalar::Number => value.is_number(),
        Scalar::Truth => value.is_boolean(),
        Scalar::Any | Scalar::Quantity => true,
    }
}

/// A name as it is, but for what could upset a terminal.
fn escaped(name: &str) -> String {
    quoted(name).trim_matches('"').to_owned()
}
