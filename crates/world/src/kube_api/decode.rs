//! What comes in the body of a request. Pure.

use super::fields::FieldRefusal;
use super::resource::{Resource, Trait};
use super::status::{self, Cause};
use super::write::Change;
use serde_json::{Value, json};
use tidegate_controller::manifest::kinds::{Map, Scalar, Shape, Type};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The body of a request with its media type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    pub(super) media: &'a str,
    pub(super) body: &'a [u8],
}

impl Sent<'_> {
    fn media(&self) -> &str {
        self.media.split(';').next().unwrap_or_default().trim()
    }

    /// Whether it is a server-side apply.
    pub(super) fn applies(&self) -> bool {
        self.media() == APPLY
    }

    fn json(&self) -> Result<Value, String> {
        serde_json::from_slice(self.body).map_err(|error| error.to_string())
    }

    /// A whole object, to be created or put in place.
    pub(super) fn object(&self, resource: &Resource, strict: bool) -> Result<Value, FieldRefusal> {
        if !matches!(self.media(), JSON | "") {
            let accepted = if resource.is(Trait::Custom) {
                "application/json, application/yaml"
            } else {
                "application/json, application/yaml, application/vnd.kubernetes.protobuf"
            };
            return Err(status::unknown_format(accepted));
        }
        let object = self.json().map_err(|error| self.unrecognized(resource, &error))?;
        checked(resource, object, strict)
    }

    fn unrecognized(&self, resource: &Resource, why: &str) -> FieldRefusal {
        let text = String::from_utf8_lossy(self.body);
        status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
             {why} ({text})",
            resource.kind
        ))
    }

    /// A patch of one of the kinds that are understood.
    pub(super) fn patch(&self, resource: &Resource) -> Result<Change, FieldRefusal> {
        let broken = |why: String| status::bad_request(format!("error decoding patch: {why}"));
        match self.media() {
            MERGE => {
                let patch = self.json().map_err(broken)?;
                if patch.is_object() {
                    Ok(Change::Merge(patch))
                } else {
                    Err(broken(unfit(&patch, "map[string]interface {}")))
                }
            }
            JSON_PATCH => {
                let patch = self.json().map_err(broken)?;
                let operations = patch.as_array().cloned();
                operations.map(Change::Json).ok_or_else(|| broken(unfit(&patch, "[]handlers.jsonPatchOp")))
            }
            APPLY => self.apply(resource).map(Change::Apply),
            _ if resource.is(Trait::Custom) => Err(status::unknown_format(&[JSON_PATCH, MERGE, APPLY].join(", "))),
            _ => Err(status::unsupported_media()),
        }
    }

    fn apply(&self, resource: &Resource) -> Result<Value, FieldRefusal> {
        let broken = |error: String| status::bad_request(format!("error decoding YAML: {error}"));
        // Whoever sends JSON sends YAML, which takes longer to read.
        let object: Value = serde_json::from_slice(self.body)
            .or_else(|_| serde_yaml::from_slice(self.body))
            .map_err(|error| broken(error.to_string()))?;
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if (api_version, kind) != (resource.api_version, resource.kind) {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            return Err(status::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")));
        }
        Ok(object)
    }
}

/// What Go says of a value that is of another type.
fn unfit(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", sort_of(value))
}

/// What Go calls a JSON value.
fn sort_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// An object that has the kind of the resource, which those that are built in need not name.
pub(super) fn checked(resource: &Resource, object: Value, strict: bool) -> Result<Value, FieldRefusal> {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let unfit = |why: String| {
        let (version, wanted) = (resource.version(), resource.kind);
        let subject = if kind.is_empty() || api_version != resource.api_version { wanted } else { kind };
        status::bad_request(format!("{subject} in version \"{version}\" cannot be handled as a {wanted}: {why}"))
    };
    if !object.is_object() {
        return Err(unfit(self::unfit(&object, &format!("{}.{}", resource.version(), resource.kind))));
    }
    if resource.is(Trait::Custom) {
        if kind.is_empty() {
            let text = object.to_string();
            let short = if text.len() > 30 {
                format!("{} ...", text.chars().take(30).collect::<String>())
            } else {
                text.clone()
            };
            return Err(status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{text}' ({short})",
                resource.kind
            )));
        }
        if kind != resource.kind {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let cause = Cause::invalid("kind", &json!(kind), &format!("must be {}", resource.kind));
            return Err(status::invalid_as(resource.group(), kind, name, &[cause]));
        }
    } else if !kind.is_empty() && kind != resource.kind {
        return Err(unfit(format!(
            "converting ({}.{kind}) to (core.{}): unknown conversion",
            resource.version(),
            resource.kind
        )));
    } else if !api_version.is_empty() && api_version != resource.api_version {
        return Err(unfit(format!(
            "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    let mut misfits = Misfits::default();
    if let Some(schema) = resource.schema() {
        misfits.walk(schema.root(), &object, "");
    }
    if let Some((path, found, wanted)) = misfits.types.first() {
        let field = format!("{}.{path}", resource.kind);
        return Err(unfit(format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")));
    }
    if strict && !misfits.unknown.is_empty() {
        let fields: Vec<_> = misfits.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
        return Err(unfit(format!("strict decoding error: {}", fields.join(", "))));
    }
    Ok(object)
}

/// What of an object does not fit its schema.
#[derive(Debug, Default)]
struct Misfits {
    /// Where, what was found, what was wanted.
    types: Vec<(String, &'static str, &'static str)>,
    unknown: Vec<String>,
}

impl Misfits {
    fn walk(&mut self, of: &Type, value: &Value, path: &str) {
        let shape = of.shape(Some(value));
        let wanted = match shape {
            _ if value.is_null() => return,
            Shape::Map(map) if value.is_object() => return self.walk_fields(map, value, path),
            Shape::List(list) if value.is_array() => {
                for (place, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.walk(list.item.get(), item, &format!("{path}[{place}]"));
                }
                return;
            }
            Shape::Scalar(Scalar::Any | Scalar::Quantity) => return,
            Shape::Scalar(Scalar::Text) if value.is_string() => return,
            Shape::Scalar(Scalar::Number) if value.is_number() => return,
            Shape::Scalar(Scalar::Truth) if value.is_boolean() => return,
            Shape::Scalar(Scalar::Text) => "string",
            Shape::Scalar(Scalar::Number) => "int32",
            Shape::Scalar(Scalar::Truth) => "bool",
            Shape::Map(_) => "map[string]interface {}",
            Shape::List(_) => "[]interface {}",
        };
        self.types.push((path.to_owned(), sort_of(value), wanted));
    }

    fn walk_fields(&mut self, map: &Map, value: &Value, path: &str) {
        for (key, value) in value.as_object().into_iter().flatten() {
            let path = match (path.is_empty(), map.fields.contains_key(key.as_str())) {
                (true, _) => key.clone(),
                // Go names the field that holds a map, not the key in it.
                (false, false) if map.item.is_some() => path.to_owned(),
                (false, _) => format!("{path}.{key}"),
            };
            match map.at(key) {
                Some(of) => self.walk(of, value, &path),
                None => self.unknown.push(path),
            }
        }
    }
}
