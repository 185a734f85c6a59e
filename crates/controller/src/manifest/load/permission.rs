//! What lets a file declare a rollout: the policy, and the caps of the installation.

use super::{Draft, unread};
use crate::manifest::check::is_protected;
use crate::manifest::diagnostic::{Code, Diagnostic};
use crate::manifest::files::{Entry, Files, RepoPath};
use crate::manifest::ids::{Namespace, RolloutId};
use crate::manifest::installation::Caps;
use crate::manifest::policy::{self, Policy};

/// The policy of a tree.
pub(super) fn read_policy(files: &Files, caps: &Caps) -> Result<Policy, Vec<Diagnostic>> {
    let path: RepoPath = policy::FILE.parse().expect("the name of the policy's file is a path");
    match files.get(&path) {
        Some(Entry::File { bytes, .. }) => policy::parse_under(&path, bytes, caps.teams()),
        Some(entry) => Err(vec![unread(&path, entry)]),
        None => {
            let found = "there is no policy";
            let diagnostic = Diagnostic::of_file(&path, Code::PolicyMissing, found, "tidegate.yaml at the root");
            Err(vec![diagnostic.help("it says which tenant may use which directory, namespaces and cluster")])
        }
    }
}

pub(super) fn no_policy(path: &RepoPath) -> Diagnostic {
    let expected = format!("a valid {}", policy::FILE);
    Diagnostic::of_file(path, Code::PolicyInvalid, "there is no policy that could permit this rollout", expected)
}

/// What forbids this file to declare that rollout: tenant, namespace, caps.
pub(super) fn permission(draft: &Draft, id: &RolloutId, policy: Option<&Policy>, caps: &Caps) -> Vec<Diagnostic> {
    let namespace = &id.namespace;
    let at = |code, found: String, expected: String| vec![draft.at("/metadata/namespace", code, found, expected)];
    if namespace.as_str() == "kube-system" || is_protected(namespace.as_str()) {
        let found = format!("the namespace {namespace} keeps the cluster or tidegate itself running");
        return at(Code::ProtectedTarget, found, "a namespace of your own".to_owned());
    }
    if !caps.allows_namespace(namespace) {
        let allowed: Vec<&str> = caps.namespaces().iter().map(Namespace::as_str).collect();
        let found = format!("this installation does not serve the namespace {namespace}");
        return at(Code::NotPermitted, found, format!("one of {}", allowed.join(", ")));
    }
    let Some(policy) = policy else { return Vec::new() };
    let Some((name, tenant)) = policy.tenant_of(&draft.path) else {
        let expected: Vec<String> = policy.tenants.values().map(|t| format!("{}/", t.path)).collect();
        let found = "this file lies in the directory of no tenant".to_owned();
        return at(Code::NotPermitted, found, format!("a file below {}", expected.join(" or ")));
    };
    if tenant.namespaces.contains(namespace) {
        return Vec::new();
    }
    let allowed: Vec<&str> = tenant.namespaces.iter().map(Namespace::as_str).collect();
    let found = format!("tenant {name} may not use the namespace {namespace}");
    at(Code::NotPermitted, found, format!("one of {}", allowed.join(", ")))
}
