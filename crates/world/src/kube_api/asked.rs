//! A request, understood: what is asked of which resource. Pure.

use super::fields::FieldRefusal;
use super::resource::{RESOURCES, Resource, Trait};
use super::status;
use http::Method;
use std::collections::BTreeMap;
use std::fmt;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiVerb {
    /// Read one object.
    Get,
    /// Read many.
    List,
    /// Follow the changes of many.
    Watch,
    /// Make one.
    Create,
    /// Replace one.
    Update,
    /// Change one, server-side apply included.
    Patch,
    /// Remove one.
    Delete,
    /// Remove many.
    DeleteCollection,
}

impl ApiVerb {
    /// The word of RBAC for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Whether it may change something.
    #[must_use]
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

impl fmt::Display for ApiVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The parameters of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    fn parse(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// A parameter; empty if it is absent.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether a parameter says yes; what is neither yes nor no is yes, as the API server reads it.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }
}

/// A request about objects.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) verb: ApiVerb,
    pub(super) resource: &'static Resource,
    /// Empty for all namespaces, and for objects that belong to none.
    pub(super) namespace: String,
    /// Empty for a whole collection.
    pub(super) name: String,
    /// Empty, `status` or `scale`.
    pub(super) subresource: String,
    pub(super) query: Query,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Route {
    Objects(Asked),
    /// `/api`, `/apis` and what lies below them that is no object, `/version`, `/readyz`.
    Discovery(String),
    /// What Go answers where nothing is served.
    Nothing,
}

/// Finds out what a request asks for; `served` says whether a resource is installed.
pub(super) fn route(
    method: &Method,
    path: &str,
    query: &str,
    served: impl Fn(&Resource) -> bool,
) -> Result<Route, FieldRefusal> {
    let path = path.trim_end_matches('/');
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let (api_version, rest) = match &segments[..] {
        ["api", version, rest @ ..] if !rest.is_empty() => ((*version).to_owned(), rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (format!("{group}/{version}"), rest),
        _ => return Ok(Route::Discovery(path.to_owned())),
    };
    let query = Query::parse(query);
    let (namespace, plural, name, subresource) = match *rest {
        ["namespaces"] => ("", "namespaces", "", ""),
        ["namespaces", name] => ("", "namespaces", name, ""),
        ["namespaces", name, subresource @ ("status" | "finalize")] => ("", "namespaces", name, subresource),
        ["namespaces", namespace, plural] => (namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => (namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, subresource] => (namespace, plural, name, subresource),
        [plural] => ("", plural, "", ""),
        [plural, name] => ("", plural, name, ""),
        [plural, name, subresource] => ("", plural, name, subresource),
        _ => ("", "", "", ""),
    };
    let found = Resource::at(&api_version, plural).filter(|found| served(found));
    let found = found.filter(|found| namespace.is_empty() || !found.is(Trait::ClusterWide));
    let Some(resource) = found else { return nothing(&api_version) };
    if !subresource.is_empty() && !has(resource, subresource) {
        return Err(if resource.is(Trait::Custom) {
            status::not_found(resource, name)
        } else {
            status::no_such_resource()
        });
    }
    let verb = verb(method, name, &query).ok_or_else(status::not_allowed)?;
    let needs_namespace = !resource.is(Trait::ClusterWide) && namespace.is_empty();
    if needs_namespace && !matches!(verb, ApiVerb::List | ApiVerb::Watch) {
        return Err(if name.is_empty() { status::not_allowed() } else { status::no_such_resource() });
    }
    if !subresource.is_empty() && !matches!(verb, ApiVerb::Get | ApiVerb::Update | ApiVerb::Patch) {
        return Err(status::not_allowed());
    }
    let [namespace, name, subresource] = [namespace, name, subresource].map(str::to_owned);
    Ok(Route::Objects(Asked { verb, resource, namespace, name, subresource, query }))
}

/// Groups that are built in answer with a status; where a definition could add one, nothing is served.
fn nothing(api_version: &str) -> Result<Route, FieldRefusal> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let built_in = RESOURCES.iter().any(|known| known.group() == group && !known.is(Trait::Custom));
    if built_in { Err(status::no_such_resource()) } else { Ok(Route::Nothing) }
}

fn has(resource: &Resource, subresource: &str) -> bool {
    match subresource {
        "status" => resource.is(Trait::Status),
        "scale" => resource.is(Trait::Scale),
        _ => false,
    }
}

fn verb(method: &Method, name: &str, query: &Query) -> Option<ApiVerb> {
    match (method, name.is_empty()) {
        (&Method::GET, false) => Some(ApiVerb::Get),
        (&Method::GET, true) if query.flag("watch") => Some(ApiVerb::Watch),
        (&Method::GET, true) => Some(ApiVerb::List),
        (&Method::POST, true) => Some(ApiVerb::Create),
        (&Method::PUT, false) => Some(ApiVerb::Update),
        (&Method::PATCH, false) => Some(ApiVerb::Patch),
        (&Method::DELETE, false) => Some(ApiVerb::Delete),
        (&Method::DELETE, true) => Some(ApiVerb::DeleteCollection),
        _ => None,
    }
}
