//! What is answered when a request is refused, in the words of the API server. Pure.

use super::fields::FieldRefusal;
use super::resource::Resource;
use serde_json::{Value, json};

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Cause {
    /// A value that is not allowed.
    pub(super) fn invalid(field: &str, value: &Value, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {why}", sorted(value)),
            field: field.to_owned(),
        }
    }

    /// A value that must not be there.
    pub(super) fn forbidden(field: &str, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.to_owned() }
    }

    /// A value that is missing; `why` may be empty.
    pub(super) fn required(field: &str, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.to_owned() }
    }

    /// A text that is too long.
    pub(super) fn too_long(field: &str, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.to_owned() }
    }

    /// A value that is not one of a list.
    pub(super) fn unsupported(field: &str, value: &Value, known: &[&str]) -> Self {
        let known: Vec<_> = known.iter().map(|known| format!("\"{known}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", known.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.to_owned() }
    }
}

fn refusal(code: u16, reason: &'static str, message: String, details: Option<Value>) -> FieldRefusal {
    FieldRefusal { code, reason, message, details }
}

/// Name, group and kind, as far as there are any.
fn details(name: &str, group: &str, kind: &str) -> Value {
    let mut details = json!({});
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details[key] = value.into();
        }
    }
    details
}

/// What stands in the details of most answers about an object.
pub(super) fn about(resource: &Resource, name: &str) -> Value {
    details(name, resource.group(), resource.plural)
}

/// 404 for an object.
pub(super) fn not_found(resource: &Resource, name: &str) -> FieldRefusal {
    let message = format!("{} \"{name}\" not found", resource.qualified());
    refusal(404, "NotFound", message, Some(about(resource, name)))
}

/// 404 for a path below a group that is served.
pub(super) fn no_such_resource() -> FieldRefusal {
    refusal(404, "NotFound", "the server could not find the requested resource".to_owned(), Some(json!({})))
}

/// 405.
pub(super) fn not_allowed() -> FieldRefusal {
    let message = "the server does not allow this method on the requested resource".to_owned();
    refusal(405, "MethodNotAllowed", message, Some(json!({})))
}

/// 409 for what is there already.
pub(super) fn already_exists(resource: &Resource, name: &str) -> FieldRefusal {
    let message = format!("{} \"{name}\" already exists", resource.qualified());
    refusal(409, "AlreadyExists", message, Some(about(resource, name)))
}

/// 409 for what is not as the request expects.
pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> FieldRefusal {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
    refusal(409, "Conflict", message, Some(about(resource, name)))
}

/// The same about a deletion, which names the kind.
pub(super) fn delete_conflict(resource: &Resource, name: &str, why: &str) -> FieldRefusal {
    let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified_kind());
    refusal(409, "Conflict", message, Some(details(name, resource.group(), resource.kind)))
}

/// 409 for another version than the one that was read.
pub(super) fn modified(resource: &Resource, name: &str) -> FieldRefusal {
    let why = "the object has been modified; please apply your changes to the latest version and try again";
    conflict(resource, name, why)
}

/// 422 for an object's content, which names its kind.
pub(super) fn invalid(resource: &Resource, name: &str, causes: &[Cause]) -> FieldRefusal {
    invalid_as(resource.group(), resource.kind, name, causes)
}

/// 422 about something of that group and kind.
pub(super) fn invalid_as(group: &str, kind: &str, name: &str, causes: &[Cause]) -> FieldRefusal {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes {
        let text = format!("{}: {}", cause.field, cause.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let all = if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) };
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut about = details(name, group, kind);
    let causes = causes.iter().map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}));
    about["causes"] = causes.collect();
    refusal(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {all}"), Some(about))
}

/// 422 for the options of a request.
pub(super) fn invalid_options(options: &str, cause: Cause) -> FieldRefusal {
    invalid_as("meta.k8s.io", options, "", &[cause])
}

/// 422 for a patch that cannot be done.
pub(super) fn unprocessable() -> FieldRefusal {
    let message = "the server rejected our request due to an error in our request".to_owned();
    refusal(422, "Invalid", message, Some(json!({})))
}

/// 400.
pub(super) fn bad_request(message: impl Into<String>) -> FieldRefusal {
    refusal(400, "BadRequest", message.into(), None)
}

/// 500 without a reason, as errors come that nobody made a status of.
pub(super) fn unexplained(message: impl Into<String>) -> FieldRefusal {
    refusal(500, "", message.into(), None)
}

/// 415 where a body is read.
pub(super) fn unknown_format(accepted: &str) -> FieldRefusal {
    let message =
        format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
    refusal(415, "UnsupportedMediaType", message, None)
}

/// 415 before a body is read.
pub(super) fn unsupported_media() -> FieldRefusal {
    refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type".to_owned(), Some(json!({})))
}

/// 410, in these words.
pub(super) fn expired(message: impl Into<String>) -> FieldRefusal {
    refusal(410, "Expired", message.into(), None)
}

/// 504 for a version that does not exist yet.
pub(super) fn too_new(asked: u64, current: u64) -> FieldRefusal {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    refusal(504, "Timeout", message, Some(json!({"causes": [cause], "retryAfterSeconds": 1})))
}

/// 403 with details about an object; `causes` may be empty.
pub(super) fn forbidden(resource: &Resource, name: &str, why: &str, causes: Value) -> FieldRefusal {
    let mut about = about(resource, name);
    if causes.as_array().is_some_and(|causes| !causes.is_empty()) {
        about["causes"] = causes;
    }
    // Without a name the API server leaves two blanks where it would stand.
    let name = if name.is_empty() { String::new() } else { format!("\"{name}\" ") };
    let message = format!("{} {name}is forbidden: {why}", resource.qualified());
    refusal(403, "Forbidden", message, Some(about))
}

/// 429, 500, 503: what a server says that is in trouble.
pub(super) fn trouble(code: u16, reason: &'static str, message: &str, retry_after: Option<u32>) -> FieldRefusal {
    let details = retry_after.map(|seconds| json!({"retryAfterSeconds": seconds}));
    refusal(code, reason, message.to_owned(), details)
}

/// A value with its fields in the order of their names, as Go prints it.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
