//! Several teams behind one proxy: whose host, whose object, and that one team's mistake is nobody else's.

use super::routers::{HTTP_PROXY, ROUTE_TABLE, behind};
use crate::tree::{PODINFO_SET, POLICY, SITE, Tree, WORKER_SET, codes};
use tidegate::cli::validate::{Colour, Output, report};
use tidegate::manifest::diagnostic::Code;

const SITE_SET: &str = "teams/blog/site/manifests/root.yaml";

/// An HTTPProxy that takes a host.
fn root(name: &str, host: &str) -> String {
    format!(
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {{name: {name}}}\n\
         spec: {{virtualhost: {{fqdn: {host}}}, routes: [{{services: [{{name: {name}, port: 80}}]}}]}}\n"
    )
}

/// The example behind a root, where the policy gives its tenant these hosts.
fn tree(hosts: &str, host: &str) -> Tree {
    let mut tree = behind(HTTP_PROXY);
    tree.edit(PODINFO_SET, "  routes:\n", &format!("  virtualhost: {{fqdn: {host}}}\n  routes:\n"));
    tree.edit(POLICY, "path: teams/shop\n", &format!("path: teams/shop\n      hosts: {hosts}\n"));
    tree
}

#[test]
fn t_9_a_host_is_taken_by_whom_the_policy_gives_it() {
    for (hosts, host, wanted) in [
        ("[shop.example.org]", "shop.example.org", &[][..]),
        ("[\"*.example.org\"]", "a.shop.example.org", &[]),
        ("[\"*.example.org\"]", "\"*.shop.example.org\"", &[]),
        ("[\"*.example.org\"]", "example.org", &[Code::HostNotAllowed]),
        ("[shop.example.org]", "a.shop.example.org", &[Code::HostNotAllowed]),
        ("[shop.example.org]", "example.org", &[Code::HostNotAllowed]),
    ] {
        let loaded = tree(hosts, host).load();
        assert_eq!(codes(&loaded, "shop/podinfo"), wanted, "{hosts} {host}: {:#?}", loaded.errors());
        assert_eq!([codes(&loaded, "shop/worker"), codes(&loaded, "blog/site")], [[], []]);
    }
}

#[test]
fn t_9_of_two_roots_of_one_host_both_are_rejected_where_one_tenant_has_it() {
    let mut own = tree("[shop.example.org]", "shop.example.org");
    own.append(WORKER_SET, &format!("---\n{}", root("worker", "shop.example.org")));
    let loaded = own.load();
    assert_eq!([codes(&loaded, "shop/podinfo"), codes(&loaded, "shop/worker")], [[Code::Conflict], [Code::Conflict]]);
    let text = report(&loaded, Output::Text, Colour::Never).text;
    assert!(text.contains("the host shop.example.org is also taken in teams/shop/worker/worker.yaml:"), "{text}");
    // Another team cannot reject anybody by taking a host that is not its own.
    let mut other = tree("[shop.example.org]", "shop.example.org");
    other.put(SITE_SET, root("site", "shop.example.org"));
    let loaded = other.load();
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    assert_eq!(codes(&loaded, "blog/site"), [Code::HostNotAllowed]);
}

#[test]
fn a_host_belongs_to_one_tenant() {
    let blog = "path: teams/blog\n";
    for (hosts, wanted) in [
        ("[blog.example.org]", &[][..]),
        ("[shop.example.org]", &[Code::Conflict]),
        ("[\"*.example.org\"]", &[Code::Conflict]),
        ("[Blog.example.org]", &[Code::Schema]),
        ("[\"b*.example.org\"]", &[Code::Schema]),
    ] {
        let mut tree = tree("[shop.example.org]", "shop.example.org");
        tree.edit(POLICY, blog, &format!("{blog}      hosts: {hosts}\n"));
        let found = tree.load().policy.err().unwrap_or_default();
        assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), wanted, "{hosts}: {found:#?}");
    }
}

#[test]
fn t_2_what_reaches_beyond_its_namespace_rejects_that_rollout_alone() {
    let include = "  includes: [{name: site, namespace: blog}]\n  routes:\n";
    let mut including = behind(HTTP_PROXY);
    including.edit(PODINFO_SET, "  routes:\n", include);
    let mut placed = behind(HTTP_PROXY);
    placed.edit(
        PODINFO_SET,
        "kind: HTTPProxy\nmetadata: {name: podinfo}",
        "kind: HTTPProxy\nmetadata: {name: podinfo, namespace: blog}",
    );
    let mut table = behind(ROUTE_TABLE);
    table.edit(PODINFO_SET, "namespace: shop}, port", "namespace: blog}, port");
    for tree in [including, placed, table] {
        let loaded = tree.load();
        assert!(codes(&loaded, "shop/podinfo").contains(&Code::CrossNamespace), "{:#?}", loaded.errors());
        assert_eq!([codes(&loaded, "shop/worker"), codes(&loaded, "blog/site")], [[], []]);
    }
    // The root of all teams is no rollout's.
    let mut rooted = behind(ROUTE_TABLE);
    rooted.edit(PODINFO_SET, "kind: RouteTable", "kind: VirtualService");
    let loaded = rooted.load();
    assert_eq!(codes(&loaded, "shop/podinfo"), [Code::KindNotAllowed]);
    assert_eq!([codes(&loaded, "shop/worker"), codes(&loaded, "blog/site")], [[], []]);
    assert!(Tree::example().text(SITE).contains("namespace: blog"));
}
