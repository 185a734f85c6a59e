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
    // The example's routes have hosts of their own.
    let hosts = hosts.replacen('[', "[shop.example.test, ", 1);
    tree.edit(POLICY, "path: teams/shop\n", &format!("path: teams/shop\n      hosts: {hosts}\n"));
    tree.edit(POLICY, "path: teams/blog\n", "path: teams/blog\n      hosts: [blog.example.test]\n");
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
    for (hosts, wanted) in [
        ("[blog.example.org]", &[][..]),
        ("[shop.example.org]", &[Code::Conflict]),
        ("[\"*.example.org\"]", &[Code::Conflict]),
        ("[Blog.example.org]", &[Code::Schema]),
        ("[\"b*.example.org\"]", &[Code::Schema]),
    ] {
        let mut tree = tree("[shop.example.org]", "shop.example.org");
        tree.edit(POLICY, "      hosts: [blog.example.test]\n", &format!("      hosts: {hosts}\n"));
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

#[test]
fn attack_106_a_route_answers_for_hosts_of_its_own_tenant() {
    let with = |text: &str| {
        let mut tree = Tree::example();
        for (tenant, hosts) in
            [("shop", "[shop.example.test, \"*.shop.example.test\"]"), ("blog", "[blog.example.test]")]
        {
            let path = format!("path: teams/{tenant}\n");
            tree.edit(POLICY, &path, &format!("{path}      hosts: {hosts}\n"));
        }
        if !text.is_empty() {
            tree.append(PODINFO_SET, &format!("---\n{text}"));
        }
        let loaded = tree.load();
        assert_eq!([codes(&loaded, "shop/worker"), codes(&loaded, "blog/site")], [[], []], "{text}");
        codes(&loaded, "shop/podinfo")
    };
    let object = |api: &str, kind: &str, metadata: &str, spec: &str| {
        format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: aside{metadata}}}\nspec: {{{spec}}}\n")
    };
    let route = |spec: &str| {
        object("gateway.networking.k8s.io/v1", "HTTPRoute", "", &format!("parentRefs: [{{name: edge}}], {spec}"))
    };
    let ingress = |metadata: &str, spec: &str| object("networking.k8s.io/v1", "Ingress", metadata, spec);
    let mesh = |spec: &str| object("networking.istio.io/v1", "VirtualService", "", spec);
    let traefik = |rule: &str| {
        let spec = format!("routes: [{{match: '{rule}', kind: Rule, services: [{{name: podinfo, port: 80}}]}}]");
        object("traefik.io/v1alpha1", "IngressRoute", "", &spec)
    };
    let named = |what: &str| format!(", annotations: {{{what}}}");
    let backend = "defaultBackend: {service: {name: podinfo, port: {number: 80}}}";
    let (own, leads) = ("rules: [{host: shop.example.test}]", "http: [{route: [{destination: {host: podinfo}}]}]");
    for fine in [
        String::new(),
        route("hostnames: [a.shop.example.test]"),
        ingress("", &format!("{own}, tls: [{{hosts: [shop.example.test]}}]")),
        mesh(&format!("hosts: [podinfo, podinfo.shop.svc.cluster.local], {leads}")),
        mesh(&format!("hosts: [shop.example.test], gateways: [edge/public], {leads}")),
        traefik("Host(`shop.example.test`) && PathPrefix(`/x`)"),
    ] {
        assert_eq!(with(&fine), [], "{fine}");
    }
    for foreign in [
        route("hostnames: [shop.example.test, blog.example.test]"),
        route("hostnames: []"),
        ingress("", "rules: [{host: blog.example.test}]"),
        ingress("", "rules: [{}]"),
        ingress("", backend),
        ingress("", &format!("{own}, tls: [{{hosts: [blog.example.test]}}]")),
        ingress(&named("nginx.ingress.kubernetes.io/server-alias: \"shop.example.test, blog.example.test\""), own),
        ingress(&named("external-dns.alpha.kubernetes.io/hostname: blog.example.test"), own),
        mesh(&format!("hosts: [blog.example.test], gateways: [edge/public], {leads}")),
        traefik("PathPrefix(`/`)"),
        traefik("Host(`shop.example.test`) || Host(`blog.example.test`)"),
    ] {
        assert_eq!(with(&foreign), [Code::HostNotAllowed], "{foreign}");
    }
}
