//! The JSON Schemas of our files (draft 2020-12), and what they find in one.
//!
//! The schemas are made from the types of [`super::raw`], so that reading and documenting cannot drift apart. They are
//! compiled in: no schema and no reference ever comes from a repository.

use super::diagnostic::{Code, Diagnostic, MOST, SourceText, quoted};
use super::duration::Span;
use super::files::RepoPath;
use super::yaml::{Content, Node, Parsed};
use super::{ids, policy, raw};
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, PatternOptions, ValidationError, Validator};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;

/// A file of ours that has a schema.
pub trait File: JsonSchema + DeserializeOwned {
    /// Its kind, as `kind` spells it.
    const KIND: &'static str;
    /// Its schema.
    fn schema() -> &'static Value;
    /// Its schema, ready to use.
    fn validator() -> &'static Validator;
}

macro_rules! files {
    ($($type:ident),*) => {
        $(impl File for raw::$type {
            const KIND: &'static str = stringify!($type);

            fn schema() -> &'static Value {
                static SCHEMA: LazyLock<Value> = LazyLock::new(generated::<raw::$type>);
                &SCHEMA
            }

            fn validator() -> &'static Validator {
                static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compiled(raw::$type::schema()));
                &VALIDATOR
            }
        })*

        /// The schema of each kind that people write. `schemas/<kind>.schema.json` of the source tree holds the same.
        #[must_use]
        pub fn schemas() -> BTreeMap<&'static str, Value> {
            BTreeMap::from([
                $((stringify!($type), generated::<raw::$type>()),)*
            ])
        }
    };
}

files!(Rollout, Policy, Fleet, Decision, Installation);

/// The schema of a type.
#[must_use]
pub fn generated<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

/// A schema of ours, ready to use.
pub(crate) fn compiled(schema: &Value) -> Validator {
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        // The linear-time engine: no pattern can be made to backtrack.
        .with_pattern_options(PatternOptions::regex());
    let options = FORMATS
        .iter()
        .fold(options, |options, &(name, check)| options.with_format(name, move |text: &str| check(text).is_ok()));
    options.build(schema).expect("a schema made from our own types compiles, because a test compiles each")
}

type Check = fn(&str) -> Result<(), String>;

/// What `format` means in our schemas: the text parses. So the rule stands in one place.
const FORMATS: &[(&str, Check)] = &[
    ("namespace", parses::<ids::Namespace>),
    ("rollout-name", parses::<ids::RolloutName>),
    ("object-name", parses::<ids::ObjectName>),
    ("instance-name", parses::<ids::InstanceName>),
    ("cluster-name", parses::<ids::ClusterName>),
    ("tenant-name", parses::<ids::TenantName>),
    ("host-name", parses::<ids::Hostname>),
    ("schedule-name", parses::<ids::ScheduleName>),
    ("check-name", parses::<ids::CheckName>),
    ("label-name", parses::<super::measure::LabelName>),
    ("provider-name", parses::<ids::ProviderName>),
    ("step-name", parses::<ids::StepName>),
    ("wave-name", parses::<ids::WaveName>),
    ("run-id", parses::<ids::RunId>),
    ("set-id", parses::<ids::SetId>),
    ("time-span", parses::<Span>),
    ("amount", parses::<super::rolling::Amount>),
    ("repository-path", parses::<RepoPath>),
    ("approver", parses::<super::team::Approver>),
    ("target", raw::check_target),
    ("kind", parses::<super::other::GroupKind>),
    ("object-kind", parses::<super::object::Kind>),
    ("cron", policy::check_cron),
    ("time-zone", policy::check_zone),
    ("git-url", super::installation::check_url),
    ("ssh-public-key", parses::<crate::sign::PublicKey>),
    ("http-url", super::installation::check_http_url),
    ("branch", super::installation::check_branch),
    ("file-path", super::installation::check_path),
];

fn parses<T: FromStr<Err: Display>>(text: &str) -> Result<(), String> {
    text.parse::<T>().map(|_| ()).map_err(|error| error.to_string())
}

/// Reads the one document of `parsed` as a `T`.
///
/// # Errors
/// All that is wrong with it, what the YAML reader found included. Fields with a mistake of YAML get no second one.
pub fn read<T: File>(parsed: &Parsed) -> Result<T, Vec<Diagnostic>> {
    let mut found = parsed.diagnostics.clone();
    let root = parsed.documents.first().filter(|_| parsed.complete);
    if let Some(root) = root {
        let known: BTreeSet<(usize, usize)> = found.iter().map(|d| (d.line, d.column)).collect();
        let fresh = check::<T>(&parsed.source, root);
        found.extend(fresh.into_iter().filter(|d| !known.contains(&(d.line, d.column))));
    }
    match root {
        Some(root) if found.is_empty() => serde_json::from_value(root.value()).map_err(|error| {
            vec![parsed.source.at(root.locate(""), Code::Schema, error.to_string(), "the documented shape")]
        }),
        _ => Err(found),
    }
}

fn check<T: File>(source: &SourceText, root: &Node) -> Vec<Diagnostic> {
    match root.text_at("/apiVersion") {
        Some(found) if found != raw::ApiVersion::TEXT => {
            let mark = root.locate("/apiVersion");
            let expected = format!("apiVersion: {}", raw::ApiVersion::TEXT);
            let diagnostic = source.at(mark, Code::ApiVersion, format!("apiVersion is {}", quoted(found)), expected);
            return vec![diagnostic.help("this file is for another program or for a newer tidegate")];
        }
        _ => {}
    }
    let value = root.value();
    let errors: Vec<ValidationError<'_>> = T::validator().iter_errors(&value).collect();
    // At one place the wrong type says all; else a format says more than the pattern and the length beside it.
    let at = |keyword: fn(&ValidationErrorKind) -> bool| -> BTreeSet<String> {
        errors.iter().filter(|e| keyword(e.kind())).map(|e| e.instance_path().to_string()).collect()
    };
    let (types, formats) = (at(is_type), at(|kind| matches!(kind, ValidationErrorKind::Format { .. })));
    errors
        .iter()
        .filter(|error| {
            let place = error.instance_path().to_string();
            let said = types.contains(&place) || (is_shape(error.kind()) && formats.contains(&place));
            is_type(error.kind()) || !said
        })
        .flat_map(|error| describe::<T>(source, root, error))
        .take(MOST)
        .collect()
}

fn is_type(kind: &ValidationErrorKind) -> bool {
    matches!(kind, ValidationErrorKind::Type { .. })
}

fn is_shape(kind: &ValidationErrorKind) -> bool {
    use ValidationErrorKind::{MaxLength, MinLength, Pattern};
    matches!(kind, Pattern { .. } | MinLength { .. } | MaxLength { .. })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the list is the library's; what our schemas do not use is shown as is"
)]
fn describe<T: File>(source: &SourceText, root: &Node, error: &ValidationError<'_>) -> Vec<Diagnostic> {
    let pointer = error.instance_path().to_string();
    let at = |found: String, expected: String| source.at(root.locate(&pointer), Code::Schema, found, expected);
    let shown = root.at(&pointer).map(show).unwrap_or_default();
    let one = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            return unexpected_fields::<T>(source, root, &pointer, error, unexpected);
        }
        ValidationErrorKind::Required { property } => {
            let field = property.as_str().unwrap_or_default();
            at(format!("the field {field} is missing{}", inside(&pointer)), format!("{field}: …"))
        }
        ValidationErrorKind::Type { kind } => wrong_type::<T>(root, &pointer, error, kind, &at),
        ValidationErrorKind::Enum { options } => no_choice(root, &pointer, listed(options), &at),
        ValidationErrorKind::Constant { expected_value } => {
            at(format!("{shown} is not known here"), plain(expected_value))
        }
        ValidationErrorKind::OneOfNotValid { .. } => no_choice(root, &pointer, choices::<T>(error).join(" or "), &at),
        ValidationErrorKind::Format { format } => {
            let (found, expected) = reason(format, root.text_at(&pointer).unwrap_or_default());
            let mut diagnostic = at(found, expected);
            match format.as_str() {
                "git-url" | "http-url" => {
                    diagnostic.code = Code::Url;
                    // The line may hold a password.
                    diagnostic.source.clear();
                }
                "cron" | "time-zone" => diagnostic.code = Code::Schedule,
                "time-span" => {
                    let number = root.text_at(&pointer).and_then(|text| text.parse::<u32>().ok());
                    diagnostic.help = number.map(|seconds| format!("did you mean {seconds}s?"));
                }
                "repository-path" => diagnostic.code = Code::PathEscape,
                _ => {}
            }
            diagnostic
        }
        // Headers and cookies alone have names with a rule of their own, which is the same.
        ValidationErrorKind::PropertyNames { error } => {
            let name = error.instance().as_str().unwrap_or_default();
            let what = if pointer.contains("/cookies/") { "cookie" } else { "header" };
            let found = format!("{} is not the name of a {what}", quoted(name));
            source.at(root.locate_key(&pointer, name), Code::Schema, found, HEADER_NAME)
        }
        ValidationErrorKind::Pattern { pattern } => {
            at(format!("{shown} has characters that do not belong here"), format!("a text of the form {pattern}"))
        }
        ValidationErrorKind::UniqueItems => twice(source, root, &pointer),
        kind => {
            let (found, expected) = size(kind, &field_name(&pointer), &shown)
                .unwrap_or_else(|| (error.to_string(), format!("what the schema of {} says", T::KIND)));
            at(found, expected)
        }
    };
    vec![one]
}

/// What is too much or too little, and how much it may be.
#[expect(clippy::wildcard_enum_match_arm, reason = "the list is the library's; these say how much there may be")]
fn size(kind: &ValidationErrorKind, field: &str, shown: &str) -> Option<(String, String)> {
    Some(match kind {
        ValidationErrorKind::MinLength { limit: 1 } => {
            (format!("{field} is empty"), "a text of at least one character".to_owned())
        }
        ValidationErrorKind::MinLength { limit } => {
            (format!("{shown} is too short"), format!("at least {limit} characters"))
        }
        ValidationErrorKind::MaxLength { limit } => {
            (format!("{field} is too long"), format!("at most {limit} characters"))
        }
        ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MinProperties { .. } => {
            (format!("{field} is empty"), "at least one entry".to_owned())
        }
        ValidationErrorKind::MaxItems { limit } | ValidationErrorKind::MaxProperties { limit } => {
            (format!("{field} has too many entries"), format!("at most {limit}"))
        }
        ValidationErrorKind::Maximum { limit } => (format!("{shown} is too large"), format!("at most {limit}")),
        ValidationErrorKind::Minimum { limit } => (format!("{shown} is too small"), format!("at least {limit}")),
        _ => return None,
    })
}

/// The first item of a list that stands in it before.
fn twice(source: &SourceText, root: &Node, pointer: &str) -> Diagnostic {
    let values: Vec<Value> = root.at(pointer).map(Node::items).unwrap_or_default().iter().map(Node::value).collect();
    let again = (1..values.len()).find(|i| values[..*i].contains(&values[*i])).unwrap_or_default();
    let pointer = format!("{pointer}/{again}");
    let shown = root.at(&pointer).map(show).unwrap_or_default();
    source.at(root.locate(&pointer), Code::Schema, format!("{shown} stands here twice"), "each entry once")
}

fn unexpected_fields<T: File>(
    source: &SourceText,
    root: &Node,
    pointer: &str,
    error: &ValidationError<'_>,
    unexpected: &[String],
) -> Vec<Diagnostic> {
    let known = known_fields::<T>(error);
    let told = |field: &String| match &known {
        Some(known) => unknown_field(source, root, pointer, field, known),
        None => {
            let found = format!("{} is not a valid name in {}", quoted(field), field_name(pointer));
            source.at(root.locate_key(pointer, field), Code::Schema, found, "lower-case letters, digits and '-'")
        }
    };
    unexpected.iter().take(MOST).map(told).collect()
}

fn wrong_type<T: File>(
    root: &Node,
    pointer: &str,
    error: &ValidationError<'_>,
    kind: &TypeKind,
    at: &dyn Fn(String, String) -> Diagnostic,
) -> Diagnostic {
    let expected = match kind {
        TypeKind::Single(kind) => type_name(&kind.to_string()).to_owned(),
        TypeKind::Multiple(kinds) => {
            let names: Vec<String> = kinds.iter().map(|kind| type_name(&kind.to_string()).to_owned()).collect();
            names.join(" or ")
        }
    };
    let node = root.at(pointer);
    let field = field_name(pointer);
    if node.is_some_and(is_blank) {
        return at(format!("{field} has no value"), expected).help(BLANK);
    }
    let expected = if matches!(kind, TypeKind::Single(kind) if kind.to_string() == "object") {
        fields_of::<T>(error).map_or(expected, |fields| format!("a mapping such as {fields}"))
    } else {
        expected
    };
    let found = format!("{} is no value for {field}", node.map(show).unwrap_or_default());
    if schema_of::<T>(error).and_then(|schema| schema.get("format")?.as_str()) == Some("time-span") {
        let number = node.and_then(|node| node.value().as_u64());
        at(found, format!("a duration with its unit, such as {}s", number.unwrap_or(10)))
    } else if expected.starts_with("a text") && node.is_some_and(|node| matches!(node.content, Content::Scalar(_))) {
        at(found, expected).help("quote it")
    } else {
        at(found, expected)
    }
}

/// What is none of the words that may stand there.
fn no_choice(root: &Node, pointer: &str, expected: String, at: &dyn Fn(String, String) -> Diagnostic) -> Diagnostic {
    let (node, field) = (root.at(pointer), field_name(pointer));
    let shown = node.map(show).unwrap_or_default();
    match node.map(|node| &node.content) {
        Some(_) if node.is_some_and(is_blank) => at(format!("{field} has no value"), expected).help(BLANK),
        Some(Content::List(_) | Content::Map(_)) => at(format!("{shown} is no value for {field}"), expected),
        Some(Content::Scalar(_)) | None => at(format!("{shown} is not known here"), expected),
    }
}

fn is_blank(node: &Node) -> bool {
    node.content == Content::Scalar(Value::Null)
}

/// How to mend a field without a value.
const BLANK: &str = "write one, or take the field out";
const HEADER_NAME: &str = "1 to 256 letters, digits and characters of !#$%&'*+.^_`|~-";

fn inside(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!(" in {}", field_name(pointer)) }
}

/// The last part of a pointer that is a name, for people: `phases[1]`.
fn field_name(pointer: &str) -> String {
    let mut parts = pointer.rsplit('/');
    match (parts.next(), parts.next()) {
        (Some(index), Some(list)) if index.parse::<usize>().is_ok() => format!("{list}[{index}]"),
        (Some(name), _) if !name.is_empty() => name.replace("~1", "/").replace("~0", "~"),
        _ => "the document".to_owned(),
    }
}

fn show(node: &Node) -> String {
    match &node.content {
        Content::Scalar(Value::String(text)) => quoted(text),
        Content::Scalar(value) => value.to_string(),
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "a mapping".to_owned(),
    }
}

fn type_name(json: &str) -> &str {
    match json {
        "object" => "a mapping",
        "array" => "a list",
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        other => other,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn listed(options: &Value) -> String {
    options.as_array().map(|all| all.iter().map(plain).collect::<Vec<_>>().join(" or ")).unwrap_or_default()
}

/// `"x" is not a duration: whole hours, …` in two parts.
fn reason(format: &str, text: &str) -> (String, String) {
    let message = FORMATS
        .iter()
        .find(|(name, _)| *name == format)
        .and_then(|(_, check)| check(text).err())
        .unwrap_or_else(|| format!("{} is not a valid {format}", quoted(text)));
    let split = message.find(" is not ").and_then(|i| message[i..].find(": ").map(|j| i + j));
    match split {
        Some(i) => (message[..i].to_owned(), message[i + 2..].to_owned()),
        None => (message, format!("a {format}")),
    }
}

/// The schema that an error comes from.
fn schema_of<T: File>(error: &ValidationError<'_>) -> Option<&'static Value> {
    let schema = T::schema();
    let location = error.schema_path().to_string();
    let mut here = schema;
    let mut parts: Vec<&str> = location.split('/').skip(1).collect();
    parts.pop();
    for part in parts {
        let part = part.replace("~1", "/").replace("~0", "~");
        here = match here {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            Value::Object(fields) if part == "$ref" => {
                let target = fields.get("$ref")?.as_str()?;
                schema.pointer(target.trim_start_matches('#'))?
            }
            Value::Object(fields) => fields.get(&part)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(here)
}

/// The fields that there are; none if people name them.
fn known_fields<T: File>(error: &ValidationError<'_>) -> Option<Vec<String>> {
    let schema = schema_of::<T>(error).filter(|schema| schema.get("patternProperties").is_none())?;
    let fields = schema.get("properties").and_then(Value::as_object);
    Some(fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default())
}

/// The fields that a mapping must have, as they are written.
fn fields_of<T: File>(error: &ValidationError<'_>) -> Option<String> {
    let required = schema_of::<T>(error)?.get("required")?.as_array()?;
    let fields: Vec<String> = required.iter().map(|field| format!("{}: …", plain(field))).collect();
    Some(format!("{{{}}}", fields.join(", ")))
}

/// The values of an enum with documented variants, which schemars writes as `oneOf` with `const`.
fn choices<T: File>(error: &ValidationError<'_>) -> Vec<String> {
    let variants = schema_of::<T>(error).and_then(|s| s.get("oneOf")).and_then(Value::as_array);
    variants.map(|all| all.iter().filter_map(|v| v.get("const")).map(plain).collect()).unwrap_or_default()
}

fn unknown_field(source: &SourceText, root: &Node, pointer: &str, field: &str, known: &[String]) -> Diagnostic {
    let mark = root.locate_key(pointer, field);
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let expected = if names.is_empty() { "no field".to_owned() } else { format!("one of {}", names.join(", ")) };
    let found = format!("there is no field {}{}", quoted(field), inside(pointer));
    let diagnostic = source.at(mark, Code::UnknownField, found, expected);
    match nearest(field, &names) {
        Some(near) => diagnostic.help(format!("did you mean {near}?")),
        None => diagnostic,
    }
}

/// The name that was most likely meant, if one is near.
pub(super) fn nearest<'a>(name: &'a str, names: &[&'a str]) -> Option<&'a str> {
    // Nothing is near to a name far longer than any, and comparing would take its time.
    let near = (name.len() <= 100).then(|| similar::get_close_matches(name, names, 1, 0.6))?;
    near.first().copied()
}

#[cfg(test)]
mod tests {
    use super::{FORMATS, File, compiled, generated, raw, schemas};
    use serde_json::json;

    #[test]
    fn every_schema_compiles_and_every_format_is_checked() {
        for (kind, schema) in schemas() {
            compiled(&schema);
            let text = schema.to_string();
            for format in text.split("\"format\":\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let known = FORMATS.iter().any(|(name, _)| *name == format);
                // The plain numbers have no rule but their own.
                let ours = format.starts_with("uint") || format == "double";
                assert!(known || ours, "{kind}: {format}");
            }
        }
    }

    #[test]
    fn patterns_take_what_parses() {
        let schema = generated::<raw::Rollout>();
        let takes = |name: &str, text: &str| compiled(&schema["$defs"][name]).is_valid(&json!(text));
        for (name, good, bad) in [
            ("Namespace", vec!["a", "a-b", "0", "x1"], vec!["", "A", "-a", "a-", "a.b", "a_b", "a\n"]),
            ("ObjectName", vec!["a", "a.b", "a-1.b-2"], vec!["", "a..b", ".a", "a.", "a.-b", "A"]),
            ("StepName", vec!["tenth"], vec!["Tenth", "a b"]),
            ("Span", vec!["10s", "1h30m"], vec!["", "10", "1.5h", "88000h"]),
        ] {
            assert!(good.iter().all(|text| takes(name, text)), "{name}");
            assert!(bad.iter().all(|text| !takes(name, text)), "{name}");
        }
    }

    #[test]
    fn remote_references_are_never_followed() {
        // Attack 38: resolving needs a retriever, and none is compiled in.
        assert!(jsonschema::options().build(&json!({"$ref": "http://169.254.169.254/x"})).is_err());
        assert!(jsonschema::options().build(&json!({"$ref": "file:///etc/passwd"})).is_err());
        assert!(!raw::Rollout::validator().is_valid(&json!(null)));
    }
}
