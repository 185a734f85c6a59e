//! The requests that this room sends, as values. Pure.

use crate::manifest::ids::Namespace;
use http::{Method, Request, header};
use serde_json::Value;
use url::form_urlencoded::Serializer;

/// The media type of server-side apply. JSON is YAML.
const APPLY: &str = "application/apply-patch+yaml";
/// The media type of what an object is called, without what it holds.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The media type of RFC 6902.
const JSON_PATCH: &str = "application/json-patch+json";

/// The path of a resource in a namespace.
pub(super) fn under(api_version: &str, namespace: &Namespace, plural: &str) -> String {
    format!("{}/namespaces/{namespace}/{plural}", version(api_version))
}

/// The path of what a version of a group serves.
pub(super) fn version(api_version: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api_version}")
}

/// Reads.
pub(super) fn get(path: &str, query: &[(&str, &str)]) -> Request<Vec<u8>> {
    build(Method::GET, path, query, None)
}

/// Reads what an object is called and whose it is, and nothing that it holds.
pub(super) fn metadata(path: &str) -> Request<Vec<u8>> {
    let mut request = get(path, &[]);
    request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static(METADATA));
    request
}

/// Creates.
pub(super) fn post(path: &str, query: &[(&str, &str)], body: &Value) -> Request<Vec<u8>> {
    build(Method::POST, path, query, Some(("application/json", body)))
}

/// Replaces.
pub(super) fn put(path: &str, query: &[(&str, &str)], body: &Value) -> Request<Vec<u8>> {
    build(Method::PUT, path, query, Some(("application/json", body)))
}

/// Server-side apply.
pub(super) fn apply(path: &str, query: &[(&str, &str)], body: &Value) -> Request<Vec<u8>> {
    build(Method::PATCH, path, query, Some((APPLY, body)))
}

/// A JSON patch.
pub(super) fn json_patch(path: &str, query: &[(&str, &str)], body: &Value) -> Request<Vec<u8>> {
    build(Method::PATCH, path, query, Some((JSON_PATCH, body)))
}

/// Deletes.
pub(super) fn delete(path: &str, options: &Value) -> Request<Vec<u8>> {
    build(Method::DELETE, path, &[], Some(("application/json", options)))
}

fn build(method: Method, path: &str, query: &[(&str, &str)], body: Option<(&str, &Value)>) -> Request<Vec<u8>> {
    let uri = if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", Serializer::new(String::new()).extend_pairs(query).finish())
    };
    let mut request = Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    let bytes = match body {
        Some((media, body)) => {
            request = request.header(header::CONTENT_TYPE, media);
            body.to_string().into_bytes()
        }
        None => Vec::new(),
    };
    request.body(bytes).expect("valid because paths are made of checked names and queries are encoded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::Kind;
    use serde_json::json;

    #[test]
    fn paths_name_group_and_namespace() {
        let of = |kind: Kind| under(kind.api_version(), &"shop".parse().unwrap(), kind.plural());
        assert_eq!(of(Kind::ConfigMap), "/api/v1/namespaces/shop/configmaps");
        assert_eq!(of(Kind::HttpRoute), "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes");
    }

    #[test]
    fn queries_are_encoded_and_bodies_carry_their_media_type() {
        let request = apply("/p", &[("continue", "a b&c"), ("force", "true")], &json!({"a": 1}));
        assert_eq!(request.uri(), "/p?continue=a+b%26c&force=true");
        assert_eq!(request.headers()[header::CONTENT_TYPE], APPLY);
        assert_eq!(request.body(), b"{\"a\":1}");
        assert!(get("/p", &[]).body().is_empty());
        assert_eq!(metadata("/p").headers().get_all(header::ACCEPT).iter().collect::<Vec<_>>(), [METADATA]);
    }
}
