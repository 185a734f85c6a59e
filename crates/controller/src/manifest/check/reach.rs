//! The one door for what content may reach: other namespaces, endpoints, identities, nodes. `reach.txt` says of each kind which place may
//! hold what; all objects of a set and all Jobs are looked at by it.
//!
//! What was refused before there was a table stays an error. All else is one as soon as the policy says of the tenant what it may reach
//! (`allow`), be it nothing, and a warning until then, so that operations go over tenant by tenant. The release after 0.1 takes a tenant
//! without `allow` for one that may reach nothing.

use super::{Case, Findings};
use crate::manifest::diagnostic::{Code, Diagnostic, MOST};
use crate::manifest::ids::Namespace;
use crate::manifest::ids::TenantName;
use crate::manifest::object::Kind;
use crate::manifest::other::Other;
use crate::manifest::policy::{Policy, Tenant};
use crate::manifest::raw::Permission;
use crate::manifest::set::Item;
use crate::manifest::yaml::{Content, Node};
use serde_json::Value;
use std::sync::LazyLock;

/// A line of the table.
struct Row {
    kinds: Vec<Kind>,
    path: Vec<&'static str>,
    fine: Vec<&'static str>,
    who: Who,
    what: &'static str,
}

/// Who may have it otherwise.
enum Who {
    /// Nobody, and nobody ever could.
    Never,
    /// Nobody.
    Nobody,
    /// Tenants with that permission.
    With(Permission),
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| lines().flat_map(rows).collect());

/// The lines of the table by their columns.
fn lines() -> impl Iterator<Item = [&'static str; 5]> {
    let lines = include_str!("../reach.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let columns: Vec<&str> = line.split(" ; ").map(str::trim).collect();
        columns.try_into().expect("each line has five columns, because a test reads them")
    })
}

/// A line as rules, one for each place of the template of pods; none if it says that there is nothing to look at.
fn rows(line: [&'static str; 5]) -> Vec<Row> {
    let [kinds, path, ..] = line;
    let path = |above: &[&'static str]| above.iter().copied().chain(path.split(' ')).collect();
    if kinds != "pods" {
        return Vec::from_iter(row(line, kinds_of(kinds), path(&[])));
    }
    let scheduled = kinds_of("CronJob");
    let below = ["spec", "jobTemplate", "spec", "template"];
    row(line, kinds_of(kinds), path(&["spec", "template"]))
        .into_iter()
        .chain(row(line, scheduled, path(&below)))
        .collect()
}

fn row([_, _, fine, who, what]: [&'static str; 5], kinds: Vec<Kind>, path: Vec<&'static str>) -> Option<Row> {
    let fine = fine.split(' ').filter(|word| *word != "-").collect();
    let who = match who {
        "never" => Who::Never,
        "nobody" => Who::Nobody,
        word => Permission::ALL
            .into_iter()
            .find(|permission| permission.as_str() == word)
            .map(Who::With)
            .expect("each line names a permission or nobody, because a test reads them"),
    };
    (what != "-").then_some(Row { kinds, path, fine, who, what })
}

/// The table as people read it: of which kinds, at which place, what reaches nothing, and who may have it otherwise.
pub fn told() -> impl Iterator<Item = [&'static str; 4]> {
    lines().filter(|[.., what]| *what != "-").map(|[kinds, path, fine, who, _]| [kinds, path, fine, who])
}

/// The kinds that the table is about: those that are known, and of the others the usual ones.
fn all() -> impl Iterator<Item = Kind> {
    Kind::ALL.iter().copied().chain(Other::usual().map(Kind::Other))
}

fn kinds_of(names: &str) -> Vec<Kind> {
    let of = |name: &str| match name {
        "pods" => Kind::WORKLOADS.iter().copied().chain([Kind::Job]).collect(),
        name => all().filter(|kind| kind.as_str() == name).collect::<Vec<_>>(),
    };
    names.split(' ').flat_map(of).collect()
}

/// Looks at all objects. The policy, where it could be read, says what their tenant may.
pub(super) fn check(case: &Case<'_>, policy: Option<&Policy>, findings: &mut Findings) {
    let tenant = policy.and_then(|policy| policy.tenant_of(case.source.path()));
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for item in case.items.values().chain(case.jobs.values()) {
        let kind = item.object.reference().kind;
        for row in ROWS.iter().filter(|row| row.kinds.contains(&kind)) {
            let (list, help) = match judge(&row.who, tenant.map(|(_, tenant)| tenant)) {
                Verdict::Fine => continue,
                Verdict::Refused => (&mut errors, None),
                Verdict::Warned => (&mut warnings, Some(NEXT)),
            };
            find(&item.node, &row.path, &mut |node| {
                if list.len() < MOST && is_odd(row, node, case.namespace) {
                    let found = diagnostic(row, item, node, case.namespace, tenant.map(|(name, _)| name));
                    list.push(help.into_iter().fold(found, Diagnostic::help));
                }
            });
        }
    }
    findings.errors.extend(errors);
    findings.warnings.extend(warnings);
}

const NEXT: &str = "refused from the next release on, and now where the tenant has allow: []";

enum Verdict {
    Fine,
    Warned,
    Refused,
}

/// What becomes of what a row finds.
fn judge(who: &Who, tenant: Option<&Tenant>) -> Verdict {
    match (who, tenant.and_then(|tenant| tenant.allow.as_ref())) {
        (Who::Never, _) | (Who::Nobody, Some(_)) => Verdict::Refused,
        (Who::With(permission), Some(allowed)) if allowed.contains(permission) => Verdict::Fine,
        (Who::With(_), Some(_)) => Verdict::Refused,
        (Who::Nobody | Who::With(_), None) => Verdict::Warned,
    }
}

fn diagnostic(row: &Row, item: &Item, node: &Node, own: &Namespace, tenant: Option<&TenantName>) -> Diagnostic {
    let (code, expected) = match &row.who {
        Who::With(permission) => {
            let fine = match row.fine.as_slice() {
                [] => "no such field".to_owned(),
                words => format!("one of {}", words.join(", ")),
            };
            let tenant = tenant.map(|name| format!(" {name}")).unwrap_or_default();
            (Code::NotPermitted, format!("{fine}, or {permission} in allow of the tenant{tenant} in tidegate.yaml"))
        }
        Who::Never | Who::Nobody if row.fine == ["@name"] => {
            (Code::CrossNamespace, format!("a name outside of the cluster, or of the rollout's namespace {own}"))
        }
        Who::Never | Who::Nobody => (Code::CrossNamespace, format!("the rollout's namespace {own}")),
    };
    item.source.at(node.mark, code, row.what, expected)
}

/// Calls `found` with each node at a path.
fn find<'n>(node: &'n Node, path: &[&str], found: &mut dyn FnMut(&'n Node)) {
    let Some((first, rest)) = path.split_first() else { return found(node) };
    if *first == "**" {
        find(node, rest, found);
    }
    let (below, any) = if *first == "**" { (path, true) } else { (rest, *first == "*") };
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(items) if any => items.iter().for_each(|item| find(item, below, found)),
        Content::List(_) => {}
        Content::Map(entries) => {
            for (_, child) in entries.iter().filter(|(key, _)| any || fits(first, &key.text)) {
                find(child, below, found);
            }
        }
    }
}

/// Whether a text is one that a pattern means.
fn fits(pattern: &str, text: &str) -> bool {
    if let Some(others) = pattern.strip_prefix('!') {
        return !fits(others, text);
    }
    pattern.split('|').any(|one| match (one.strip_prefix('*'), one.strip_suffix('*')) {
        (Some(_), Some(_)) => text.contains(one.trim_matches('*')),
        (Some(end), None) => text.ends_with(end),
        (None, Some(start)) => text.starts_with(start),
        (None, None) => text == if one == "\"\"" { "" } else { one },
    })
}

/// Whether what stands at a place of a row reaches out. What is null is absent.
fn is_odd(row: &Row, node: &Node, own: &Namespace) -> bool {
    let is_name = row.fine.iter().any(|word| word.starts_with('@'));
    let text = match &node.content {
        Content::Scalar(Value::Null) => return false,
        // What is no text names nothing: the field's own check says so.
        Content::Scalar(Value::Bool(_) | Value::Number(_)) if is_name => return false,
        Content::Scalar(Value::String(text)) => text.clone(),
        Content::Scalar(value) => value.to_string(),
        Content::Map(_) if row.fine == ["@private"] => return is_public(node),
        Content::List(_) | Content::Map(_) => return row.fine.is_empty(),
    };
    !row.fine.iter().any(|word| match *word {
        "@namespace" => text == own.as_str(),
        "@name" => !is_foreign(&text, own),
        "@service" => !is_foreign_service(&text, own),
        "@secret" => text.split_once('/').is_none_or(|(namespace, _)| namespace == own.as_str()),
        "@local" => !text.contains('@'),
        word => fits(word, &text),
    })
}

/// Whether a VirtualService is for the mesh, for names of all namespaces, and shown to them all, as it is where it does not say to whom
/// (https://istio.io/latest/docs/reference/config/networking/virtual-service/).
fn is_public(spec: &Node) -> bool {
    let texts = |field: &str| spec.at(field).map(Node::items).unwrap_or_default().iter().filter_map(Node::text);
    let is_for_mesh = texts("/gateways").next().is_none() || texts("/gateways").any(|gateway| gateway == "mesh");
    is_for_mesh && texts("/exportTo").next().is_none() && texts("/hosts").any(|host| host.contains('*'))
}

/// Whether a name is that of a Service or pod of another namespace, or of what runs beside whoever asks for it.
fn is_foreign(name: &str, own: &Namespace) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let inside = name.strip_suffix(".cluster.local").unwrap_or(&name);
    let labels: Vec<&str> = inside.rsplit('.').collect();
    // No name, but an address; some proxies take it for one.
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return true;
    }
    match labels.iter().position(|label| matches!(*label, "svc" | "pod")) {
        Some(0) => labels.get(1) != Some(&own.as_str()),
        // NAME.NAMESPACE.svc. and the domain of a cluster that is called otherwise.
        Some(at) if labels.len() > at + 2 && inside.len() == name.len() => labels[at + 1] != own.as_str(),
        Some(_) | None => inside.len() < name.len() || labels[0] == "localhost",
    }
}

/// The same for a place where NAME.NAMESPACE is one of them (`routers::istio` reads it so), and `*` stands for all.
fn is_foreign_service(name: &str, own: &Namespace) -> bool {
    let plain = name.trim_end_matches('.').to_ascii_lowercase();
    let of_two = plain.split_once('.').is_some_and(|(_, rest)| !rest.contains('.') && rest != own.as_str());
    plain == "*" || of_two || is_foreign(name, own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::yaml::{Dialect, parse};

    #[test]
    fn every_kind_has_a_line_and_every_line_is_understood() {
        assert!(ROWS.len() > 20);
        let named: Vec<Kind> = lines().flat_map(|[kinds, ..]| kinds_of(kinds)).collect();
        for kind in all().filter(|kind| kind.is_of_sets() || *kind == Kind::Job) {
            assert!(
                named.contains(&kind),
                "reach.txt has no line for {kind}: say what it may reach, or that it reaches nothing"
            );
        }
        for [kinds, _, fine, who, what] in lines() {
            assert!(kinds.split(' ').all(|name| !kinds_of(name).is_empty()), "{kinds}");
            let words = ["@namespace", "@name", "@service", "@secret", "@local", "@private"];
            assert!(fine.split(' ').all(|word| !word.starts_with('@') || words.contains(&word)), "{fine}");
            assert!(!who.is_empty() && !what.is_empty(), "{kinds}");
        }
    }

    #[test]
    fn patterns_mean_what_they_say() {
        for (pattern, text, fit) in [
            ("a|b", "b", true),
            ("a|b", "c", false),
            ("*snippet*", "nginx/x-snippet", true),
            ("*snippet*", "snip", false),
            ("*/auth-url", "nginx/auth-url", true),
            ("*/auth-url", "nginx/auth-urls", false),
            ("iam.gke.io/*", "iam.gke.io/x", true),
            ("iam.gke.io/*", "x.iam.gke.io/", false),
            ("*", "", true),
            ("\"\"", "", true),
            ("\"\"", "x", false),
            ("!system-*", "high", true),
            ("!system-*", "system-node-critical", false),
            ("!a|b", "b", false),
        ] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
    }

    #[test]
    fn a_path_leads_to_all_places_that_it_names() {
        let text = "a: {b: [{c: 1}, {c: 2, d: {c: 3}}], c: 4}\nb: [5, 6]\n";
        let parsed = parse(&"x.yaml".parse().unwrap(), text.as_bytes(), Dialect::Kubernetes);
        let all = |path: &str| {
            let (mut found, path) = (Vec::new(), path.split(' ').collect::<Vec<_>>());
            find(&parsed.documents[0], &path, &mut |node| found.push(node.value().to_string()));
            found.join(" ")
        };
        assert_eq!(all("a b * c"), "1 2");
        assert_eq!(all("a ** c"), "4 1 2 3");
        assert_eq!(all("a|b *"), r#"[{"c":1},{"c":2,"d":{"c":3}}] 4 5 6"#);
        assert_eq!(all("a b c"), "");
        assert_eq!(all("** d"), r#"{"c":3}"#);
    }

    #[test]
    fn attack_47_names_of_other_namespaces_are_seen_however_they_are_written() {
        let own = "shop".parse().unwrap();
        for (name, foreign) in [
            ("web", false),
            ("web.shop.svc", false),
            ("web.shop.svc.cluster.local.", false),
            ("web.shop.svc.example.internal", false),
            ("example.org", false),
            ("svc.example.net", false),
            ("web.blog.svc", true),
            ("WEB.BLOG.SVC.Cluster.Local", true),
            ("web.blog.svc.example.internal", true),
            ("10-0-0-1.blog.pod", true),
            ("*.blog.svc.cluster.local", true),
            ("*.cluster.local", true),
            ("localhost", true),
            ("169.254.169.254", true),
            ("127.1", true),
            ("1.example.org", false),
            ("a.localhost", true),
        ] {
            assert_eq!(is_foreign(name, &own), foreign, "{name}");
        }
    }

    #[test]
    fn attack_105_two_labels_are_a_service_of_a_namespace() {
        let own = "shop".parse().unwrap();
        for (name, foreign) in [
            ("web", false),
            ("web.shop", false),
            ("api.example.org", false),
            ("web.blog", true),
            ("*", true),
            ("*.local", true),
        ] {
            assert_eq!(is_foreign_service(name, &own), foreign, "{name}");
        }
    }
}
