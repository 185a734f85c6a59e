//! Bad inputs that a repository can bring, by the number of the threat list. Each one is done to the example repository
//! and must reject one rollout for one reason, with work in proportion to what was brought, and leave the others as they were.

use crate::heap;
use crate::tree::{PODINFO, PODINFO_SET, POLICY, SITE, Tree, WORKER, WORKER_SET, codes, source_dir};
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::files::Entry;
use tidegate::manifest::load::{Emptiness, Loaded};

const SECRET: &str = "
---
apiVersion: v1
kind: Secret
metadata: {name: token}
stringData: {token: canary-5f3a}
";

struct Attack {
    number: &'static str,
    what: &'static str,
    change: fn(&mut Tree),
    /// The rollout that is rejected, and why.
    rejects: &'static str,
    code: Code,
}

const fn attack(
    number: &'static str,
    what: &'static str,
    change: fn(&mut Tree),
    rejects: &'static str,
    code: Code,
) -> Attack {
    Attack { number, what, change, rejects, code }
}

fn lists(tree: &mut Tree, entry: &str) {
    tree.edit(PODINFO, "manifests: [podinfo.yaml]", &format!("manifests: [podinfo.yaml, '{entry}']"));
}

fn podinfo(tree: &mut Tree, from: &str, to: &str) {
    tree.edit(PODINFO, from, to);
}

/// The worker as a StatefulSet, both versions of which are pods of its own, with a phase that is measured.
fn shared(tree: &mut Tree) {
    tree.edit(WORKER, "{kind: Deployment, name: worker}", "{kind: StatefulSet, name: worker}")
        .edit(WORKER, "  traffic:\n    replicas: {service: worker}\n    settle: 2s\n    drain: 5s\n", "")
        .edit(
            WORKER,
            "expose: {weight: 25}\n      soak: 10s",
            "expose: {weight: 25}\n      soak: 1h\n      checks: [errors]",
        );
    tree.edit(WORKER_SET, "kind: Deployment", "kind: StatefulSet").edit(
        WORKER_SET,
        "replicas: 4",
        "replicas: 4\n  serviceName: worker",
    );
}

/// Judges the first phase so.
fn checks(tree: &mut Tree, criterion: &str) {
    podinfo(tree, "weight: 10\n", "weight: 10\n      checks: [errors]\n");
    podinfo(
        tree,
        "  rollback:",
        &format!("  checks:\n    errors: {{{criterion}, interval: 10s, max: 1}}\n  rollback:"),
    );
}

/// An object of Istio beside the others.
fn mesh(kind: &str, spec: &str) -> String {
    format!("---\napiVersion: networking.istio.io/v1\nkind: {kind}\nmetadata: {{name: aside}}\nspec: {{{spec}}}\n")
}

/// An Ingress beside the others with an annotation of ingress-nginx.
fn ingress(annotation: &str) -> String {
    let annotations = format!("{{nginx.ingress.kubernetes.io/{annotation}}}");
    format!(
        "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: aside, annotations: {annotations}}}\n\
         spec: {{defaultBackend: {{service: {{name: podinfo, port: {{number: 80}}}}}}}}\n"
    )
}

/// Gives podinfo's pods that field.
fn pods(tree: &mut Tree, field: &str) {
    tree.edit(PODINFO_SET, "    spec:\n      containers:", &format!("    spec:\n      {field}\n      containers:"));
}

const TRIGGER: &str = "---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker}
spec:
  scaleTargetRef: {name: worker}
  minReplicaCount: 4
  triggers: [{type: prometheus, metadata: {serverAddress: 'http://169.254.169.254', query: up, threshold: '1'}}]
";

#[rustfmt::skip]
const ATTACKS: &[Attack] = &[
    attack("1", "a path that climbs", |t| lists(t, "../../../etc/passwd"), "shop/podinfo", Code::PathEscape),
    attack("1", "a path that climbs inside", |t| lists(t, "a/../../worker/worker.yaml"), "shop/podinfo", Code::PathEscape),
    attack("2", "an absolute path", |t| lists(t, "/etc/passwd"), "shop/podinfo", Code::PathEscape),
    attack("2", "a home", |t| lists(t, "~/x.yaml"), "shop/podinfo", Code::PathEscape),
    attack("2", "a URL", |t| lists(t, "file:///etc/passwd"), "shop/podinfo", Code::PathEscape),
    attack("2", "a backslash", |t| lists(t, r"..\x.yaml"), "shop/podinfo", Code::PathEscape),
    attack("2", "an escape", |t| lists(t, "%2e%2e/x.yaml"), "shop/podinfo", Code::PathEscape),
    attack("2", "a NUL", |t| podinfo(t, "manifests: [podinfo.yaml]", "manifests: [podinfo.yaml, \"a\\0b\"]"), "shop/podinfo", Code::PathEscape),
    attack("3", "a listed symlink", |t| { t.entry("teams/shop/podinfo/token.yaml", Entry::Symlink); lists(t, "token.yaml"); }, "shop/podinfo", Code::SymlinkIgnored),
    attack("4", "a listed symlink to a directory", |t| { t.entry("teams/shop/podinfo/more", Entry::Symlink); lists(t, "more/x.yaml"); }, "shop/podinfo", Code::FileMissing),
    attack("8", "names that differ in case only", |t| { t.put("teams/shop/podinfo/Podinfo.yaml", "# none\n"); lists(t, "Podinfo.yaml"); }, "shop/podinfo", Code::AmbiguousPath),
    attack("9", "a listed submodule", |t| { t.entry("teams/shop/podinfo/lib", Entry::Submodule); lists(t, "lib"); }, "shop/podinfo", Code::SymlinkIgnored),
    attack("6", "a name that no path can hold, in a listed directory", |t| { t.entry("teams/shop/podinfo/m/50_.yaml", Entry::BadName { name: "50%.yaml".to_owned() }); lists(t, "m"); }, "shop/podinfo", Code::PathEscape),
    attack("13", "a file too large to be read, in a listed directory", |t| { t.entry("teams/shop/podinfo/m/a.yaml", Entry::TooLarge { size: 1 << 31 }); lists(t, "m"); }, "shop/podinfo", Code::TooLarge),
    attack("10", "a pointer of Git LFS", |t| { t.put(PODINFO_SET, "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"); }, "shop/podinfo", Code::Schema),
    attack("11", "other extensions in a directory", |t| { t.put("teams/shop/podinfo/m/a.YAML", "x").put("teams/shop/podinfo/m/b.yml.bak", "x"); lists(t, "m"); }, "shop/podinfo", Code::FileMissing),
    attack("26", "billion laughs", |t| { t.append(PODINFO_SET, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: lol}\ndata:\n  a: &a [x, x]\n  b: &b [*a, *a]\n  c: [*b, *b]\n"); }, "shop/podinfo", Code::Alias),
    attack("27", "nesting without end", |t| { t.put(PODINFO_SET, "[".repeat(100_000)); }, "shop/podinfo", Code::TooDeep),
    attack("27", "nesting without end in our file", |t| { let deep = "[".repeat(100_000); podinfo(t, "manifests: [podinfo.yaml]", &format!("manifests: {deep}")); }, "shop/podinfo", Code::TooDeep),
    attack("28", "a key twice", |t| podinfo(t, "progressDeadline: 2m", "suspend: false\n  progressDeadline: 2m\n  suspend: true"), "shop/podinfo", Code::DuplicateKey),
    attack("29", "a merge key over a gate", |t| podinfo(t, "before: {approval: pullRequest}", "<<: {before: {}}"), "shop/podinfo", Code::MergeKey),
    attack("30", "a tag", |t| podinfo(t, "weight: 10", "weight: !!python/object 10"), "shop/podinfo", Code::Tag),
    attack("30", "a tag in a manifest", |t| { t.edit(PODINFO_SET, "message: Welcome", "message: !Ref Welcome"); }, "shop/podinfo", Code::Tag),
    attack("31", "Norway", |t| podinfo(t, "x-canary: always", "x-canary: no"), "shop/podinfo", Code::AmbiguousScalar),
    attack("31", "octal", |t| podinfo(t, "weight: 10", "weight: 010"), "shop/podinfo", Code::AmbiguousScalar),
    attack("31", "base 60", |t| podinfo(t, "soak: 10s", "soak: 1:30"), "shop/podinfo", Code::AmbiguousScalar),
    attack("32", "a second document far below", |t| { let far = "\n".repeat(2_000); t.append(PODINFO, &format!("{far}---\nkind: Rollout\n")); }, "shop/podinfo", Code::SeveralDocuments),
    attack("32", "a second manifest far below", |t| { let far = "\n".repeat(2_000); t.append(PODINFO_SET, &format!("{far}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: x}}\n")); }, "shop/podinfo", Code::KindNotAllowed),
    attack("33", "a weight beyond all numbers", |t| podinfo(t, "weight: 10", "weight: 1e309"), "shop/podinfo", Code::NumberRange),
    attack("33", "a weight that is none", |t| podinfo(t, "weight: 10", "weight: .nan"), "shop/podinfo", Code::NumberRange),
    attack("33", "a negative weight", |t| podinfo(t, "weight: 10", "weight: -1"), "shop/podinfo", Code::Schema),
    attack("33", "a weight above 100", |t| podinfo(t, "weight: 100", "weight: 101"), "shop/podinfo", Code::Schema),
    attack("33", "a weight a little above 100", |t| podinfo(t, "weight: 100", "weight: 100.0000001"), "shop/podinfo", Code::Schema),
    attack("33", "a weight of 2^63", |t| podinfo(t, "weight: 100", "weight: 9223372036854775808"), "shop/podinfo", Code::NumberRange),
    attack("34", "an empty duration", |t| podinfo(t, "soak: 10s", "soak: ''"), "shop/podinfo", Code::Schema),
    attack("34", "a duration of years", |t| podinfo(t, "soak: 10s", "soak: 1y"), "shop/podinfo", Code::Schema),
    attack("34", "a negative duration", |t| podinfo(t, "soak: 10s", "soak: -5m"), "shop/podinfo", Code::Schema),
    attack("34", "a duration beyond time", |t| podinfo(t, "soak: 10s", "soak: 1000000000000000000h"), "shop/podinfo", Code::Schema),
    attack("35", "a comment that reads backwards", |t| podinfo(t, "weight: 10", "weight: 10 # \u{202e}0 :thgiew"), "shop/podinfo", Code::Encoding),
    attack("35", "a name with nothing in it", |t| podinfo(t, "name: tenth", "name: \"te\\u200bnth\""), "shop/podinfo", Code::Schema),
    attack("35", "a name of look-alikes", |t| podinfo(t, "name: tenth", "name: t\u{435}nth"), "shop/podinfo", Code::Schema),
    attack("36", "a byte order mark", |t| { let text = t.text(PODINFO_SET); t.put(PODINFO_SET, format!("\u{feff}{text}")); }, "shop/podinfo", Code::Encoding),
    attack("36", "UTF-16", |t| { let text: Vec<u8> = t.text(PODINFO_SET).encode_utf16().flat_map(u16::to_le_bytes).collect(); t.put(PODINFO_SET, text); }, "shop/podinfo", Code::Encoding),
    attack("36", "carriage returns alone", |t| { let text = t.text(PODINFO_SET).replace('\n', "\r"); t.put(PODINFO_SET, text); }, "shop/podinfo", Code::Encoding),
    attack("37", "a pattern that backtracks", |t| { let long = "a".repeat(50_000) + "!"; podinfo(t, "name: tenth", &format!("name: {long}")); }, "shop/podinfo", Code::Schema),
    attack("38", "a schema of its own", |t| podinfo(t, "kind: Rollout", "kind: Rollout\n$schema: http://169.254.169.254/"), "shop/podinfo", Code::UnknownField),
    attack("40", "a typo", |t| podinfo(t, "before: {approval: pullRequest}", "before: {aproval: pullRequest}"), "shop/podinfo", Code::UnknownField),
    attack("41", "10 MiB of comments", |t| { t.put(PODINFO_SET, "# nothing\n".repeat(1_048_576)); }, "shop/podinfo", Code::TooLarge),
    attack("42", "the same name in another file", |t| { let (rollout, set) = (t.text(PODINFO), t.text(PODINFO_SET)); t.put("teams/shop/again/rollout.yaml", rollout).put("teams/shop/again/podinfo.yaml", set); }, "shop/podinfo", Code::Conflict),
    attack("43", "null for a mapping", |t| podinfo(t, "promotion: {bake: 10s}", "promotion:"), "shop/podinfo", Code::Schema),
    attack("43", "no metadata", |t| { t.put(PODINFO_SET, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\nspec:\n"); }, "shop/podinfo", Code::Schema),
    attack("43", "a list where an object is expected", |t| { t.put(PODINFO_SET, "- a\n- b\n"); }, "shop/podinfo", Code::Schema),
    attack("43", "a target without pods", |t| { t.edit(PODINFO_SET, "  template:\n    metadata:", "  template:\n  other:\n    metadata:"); }, "shop/podinfo", Code::Schema),
    attack("45", "another tenant's namespace", |t| podinfo(t, "namespace: shop", "namespace: blog"), "blog/podinfo", Code::NotPermitted),
    attack("45", "no tenant's directory", |t| { let (rollout, set) = (t.text(WORKER).replace("name: worker,", "name: other,"), t.text(WORKER_SET)); t.put("elsewhere/rollout.yaml", rollout).put("elsewhere/worker.yaml", set); }, "shop/other", Code::NotPermitted),
    attack("46", "a service account to act as", |t| podinfo(t, "progressDeadline: 2m", "serviceAccount: admin"), "shop/podinfo", Code::UnknownField),
    attack("47", "an object of another namespace", |t| { t.edit(PODINFO_SET, "name: podinfo\ndata:", "name: podinfo\n  namespace: blog\ndata:"); }, "shop/podinfo", Code::CrossNamespace),
    attack("47", "a backend of another namespace", |t| { t.edit(PODINFO_SET, "{name: podinfo, port: 80}", "{name: podinfo, port: 80, namespace: blog}"); }, "shop/podinfo", Code::CrossNamespace),
    attack("48", "the controller itself", |t| { t.append(PODINFO_SET, "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: tidegate-brake}\n"); }, "shop/podinfo", Code::ProtectedTarget),
    attack("48", "the cluster's own namespace", |t| { podinfo(t, "namespace: shop", "namespace: kube-system"); t.edit(POLICY, "namespaces: [shop]", "namespaces: [shop, kube-system]"); }, "kube-system/podinfo", Code::ProtectedTarget),
    attack("49", "a role binding", |t| { t.append(PODINFO_SET, "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: x}\n"); }, "shop/podinfo", Code::KindNotAllowed),
    attack("49", "a webhook", |t| { t.append(PODINFO_SET, "\n---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: x}\n"); }, "shop/podinfo", Code::KindNotAllowed),
    attack("49", "a Secret", |t| { t.append(PODINFO_SET, SECRET); }, "shop/podinfo", Code::SecretData),
    attack("49", "a pod of one's own", |t| { t.append(PODINFO_SET, "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"); }, "shop/podinfo", Code::KindNotAllowed),
    attack("50", "a volume, which another name would take away", |t| { t.append(PODINFO_SET, "\n---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: data}\n"); }, "shop/podinfo", Code::KindNotAllowed),
    attack("50", "a namespace, which another name would take away", |t| { t.append(PODINFO_SET, "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"); }, "shop/podinfo", Code::KindNotAllowed),
    attack("60", "marks of ours", |t| { t.edit(PODINFO_SET, "labels: {app: podinfo}", "labels: {app: podinfo, tidegate.io/owner: me}"); }, "shop/podinfo", Code::NotPermitted),
    attack("61", "an address to ask for numbers", |t| checks(t, "prometheus: {provider: main, address: \"http://169.254.169.254/\", query: up}"), "shop/podinfo", Code::UnknownField),
    attack("61", "an address for a provider", |t| checks(t, "prometheus: {provider: \"http://localhost:10250\", query: up}"), "shop/podinfo", Code::Schema),
    attack("61", "an address to call", |t| checks(t, "webhook: {provider: main, url: \"http://kubernetes.default\"}"), "shop/podinfo", Code::UnknownField),
    attack("63", "a query that ends too early", |t| checks(t, "prometheus: {provider: main, labels: {pod: pod}, query: 'up{} or up{ns=\"other\"'}"), "shop/podinfo", Code::CheckQuery),
    attack("63", "the same where nothing is added", |t| checks(t, "prometheus: {provider: main, query: 'up{} or up{ns=\"other\"'}"), "shop/podinfo", Code::CheckQuery),
    attack("64", "headers with a secret", |t| checks(t, "webhook: {provider: main, headers: {Authorization: \"{{args.token}}\"}}"), "shop/podinfo", Code::UnknownField),
    attack("67", "one number for both versions", |t| { shared(t); t.append(WORKER, "  checks:\n    errors: {prometheus: {provider: main, query: sum(up), labels: {workload: w}}, comparedWithStable: {ratio: {max: 1}}}\n"); }, "shop/worker", Code::CheckUseless),
    attack("42", "another rollout's target", |t| { let (set, text) = (t.text(WORKER_SET), t.text(WORKER).replace("name: worker,", "name: thief,")); t.put("teams/shop/thief/rollout.yaml", text).put("teams/shop/thief/worker.yaml", set); }, "shop/thief", Code::Conflict),
    attack("105", "a host of another namespace in a mirror", |t| { t.append(PODINFO_SET, &mesh("VirtualService", "hosts: [aside.example.org], http: [{route: [{destination: {host: aside}}], mirror: {host: web.blog.svc.cluster.local}}]")); }, "shop/podinfo", Code::CrossNamespace),
    attack("105", "the same by two labels", |t| { t.append(PODINFO_SET, &mesh("VirtualService", "hosts: [aside.example.org], http: [{route: [{destination: {host: web.blog}}]}]")); }, "shop/podinfo", Code::CrossNamespace),
    attack("105", "the same in a DestinationRule", |t| { t.append(PODINFO_SET, &mesh("DestinationRule", "host: web.blog.svc.cluster.local")); }, "shop/podinfo", Code::CrossNamespace),
    attack("105", "a DestinationRule for all of the cluster", |t| { t.append(PODINFO_SET, &mesh("DestinationRule", "host: '*.local'")); }, "shop/podinfo", Code::CrossNamespace),
    attack("105", "shown to all namespaces", |t| { t.append(PODINFO_SET, &mesh("DestinationRule", "host: aside, exportTo: ['*']")); }, "shop/podinfo", Code::CrossNamespace),
    attack("105", "another namespace's name in the mesh", |t| { t.append(PODINFO_SET, &mesh("VirtualService", "hosts: [web.blog.svc.cluster.local], http: [{route: [{destination: {host: aside}}]}]")); }, "shop/podinfo", Code::CrossNamespace),
    attack("107", "a snippet for the proxy of all", |t| { t.append(PODINFO_SET, &ingress("configuration-snippet: 'return 418;'")); }, "shop/podinfo", Code::NotPermitted),
    attack("107", "an address that the proxy of all asks", |t| { t.append(PODINFO_SET, &ingress("auth-url: http://169.254.169.254/")); }, "shop/podinfo", Code::NotPermitted),
    attack("107", "a Secret of another namespace for the proxy", |t| { t.append(PODINFO_SET, &ingress("auth-secret: blog/x")); }, "shop/podinfo", Code::CrossNamespace),
    attack("108", "addresses that the cluster takes for a Service", |t| { t.edit(PODINFO_SET, "  selector: {app: podinfo}\n  ports", "  selector: {app: podinfo}\n  externalIPs: [192.0.2.1]\n  ports"); }, "shop/podinfo", Code::NotPermitted),
    attack("108", "an address that a trigger asks", |t| { t.edit(WORKER_SET, "  replicas: 4\n", ""); t.append(WORKER_SET, TRIGGER); }, "shop/worker", Code::NotPermitted),
    attack("109", "a role at the cloud's provider", |t| { t.append(PODINFO_SET, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: podinfo, annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::1:role/admin'}}\n"); }, "shop/podinfo", Code::NotPermitted),
    attack("110", "a directory of the node", |t| pods(t, "volumes: [{name: host, hostPath: {path: /}}]"), "shop/podinfo", Code::NotPermitted),
    attack("110", "the network of the node", |t| pods(t, "hostNetwork: true"), "shop/podinfo", Code::NotPermitted),
    attack("110", "the processes of the node", |t| pods(t, "hostPID: true"), "shop/podinfo", Code::NotPermitted),
    attack("110", "root on the node", |t| { t.edit(PODINFO_SET, "          envFrom:", "          securityContext: {privileged: true}\n          envFrom:"); }, "shop/podinfo", Code::NotPermitted),
    attack("110", "a capability of root", |t| { t.edit(PODINFO_SET, "          envFrom:", "          securityContext: {capabilities: {add: [SYS_ADMIN]}}\n          envFrom:"); }, "shop/podinfo", Code::NotPermitted),
    attack("110", "an address for the kubelet", |t| { t.edit(PODINFO_SET, "{path: /readyz, port: http}", "{path: /readyz, port: http, host: 169.254.169.254}"); }, "shop/podinfo", Code::NotPermitted),
    attack("110", "the same in a Job", |t| { t.put("teams/shop/podinfo/smoke.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: smoke}\nspec: {template: {spec: {hostPID: true, restartPolicy: Never, containers: [{name: a, image: 'example.test/a:1'}]}}}\n"); podinfo(t, "promotion: {bake: 10s}", "promotion: {bake: 10s, before: {job: smoke.yaml}}"); }, "shop/podinfo", Code::NotPermitted),
];

/// The numbers of the table.
pub(crate) fn numbers() -> impl Iterator<Item = u8> {
    ATTACKS.iter().map(|attack| attack.number.parse().unwrap())
}

/// What a tree comes to, and the bytes that were asked for on the way: work that repeats itself asks again.
fn worked(tree: &Tree) -> (Loaded, usize) {
    let before = heap::asked();
    let loaded = tree.load();
    (loaded, heap::asked() - before)
}

/// The most that reading a tree may ask for: four times what it asks for.
fn most(tree: &Tree) -> usize {
    const ROOM: usize = 4 << 20;
    const ROOM_FOR_A_BYTE: usize = 264;
    let bytes = |entry: &Entry| if let Entry::File { bytes, .. } = entry { bytes.len() } else { 0 };
    ROOM + ROOM_FOR_A_BYTE * tree.0.values().map(bytes).sum::<usize>()
}

#[test]
fn each_attack_rejects_one_rollout_and_touches_no_other() {
    let example = Tree::example();
    assert_eq!(example.load().errors(), Vec::<&tidegate::manifest::diagnostic::Diagnostic>::new());
    let mut wrong = Vec::new();
    for Attack { number, what, change, rejects, code } in ATTACKS {
        let mut tree = example.clone();
        change(&mut tree);
        let (loaded, work) = worked(&tree);
        let found = codes(&loaded, rejects);
        let others = ["shop/worker", "blog/site"].iter().filter(|other| *rejects != "shop/thief" && *other != rejects);
        let touched = others.flat_map(|id| codes(&loaded, id)).collect::<Vec<_>>();
        let expected = !found.is_empty() && found.iter().all(|c| c == code) && touched.is_empty();
        if !expected || work > most(&tree) || loaded.emptiness() != Emptiness::Whole {
            wrong.push(format!(
                "attack {number}, {what}: {found:?} for {code}, others {touched:?}, {work} bytes asked for of {}",
                most(&tree)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn attack_40_a_file_full_of_mistakes_is_told_of_in_measure() {
    let flow = vec!["{nam: a, nam: b, expose: {wheight: no}}"; 8_000].join(", ");
    let block = "    - {nam: a, expose: {wheight: 1}}\n".repeat(15_000);
    let numbers = vec!["9007199254740993"; 50_000].join(",");
    let changes: [(&str, &str, String); 3] = [
        (PODINFO, "  phases:\n", format!("  phases:\n{block}")),
        (PODINFO, "  phases:\n", format!("  more: [{flow}]\n  phases:\n")),
        (PODINFO_SET, "  replicas: 2", format!("  replicas: [{numbers}]")),
    ];
    for (path, from, to) in changes {
        let tree = Tree::example().edit(path, from, &to).clone();
        let (loaded, work) = worked(&tree);
        assert!(work <= most(&tree), "{work} bytes asked for of {}", most(&tree));
        assert!((1..=100).contains(&codes(&loaded, "shop/podinfo").len()));
        assert_eq!(codes(&loaded, "shop/worker"), []);
    }
}

#[test]
fn attack_3_links_in_a_directory_are_passed_over_and_named() {
    let mut tree = Tree::example();
    let path = "teams/blog/site/manifests/token.yaml";
    let loaded = tree.entry(path, Entry::Symlink).entry("teams/x.rollout.yaml", Entry::Symlink).load();
    assert_eq!(codes(&loaded, "blog/site"), []);
    let warned: Vec<_> = loaded.warnings.iter().map(|d| (d.path.as_str(), d.code)).collect();
    assert_eq!(warned, [(path, Code::SymlinkIgnored), ("teams/x.rollout.yaml", Code::SymlinkIgnored)]);
}

#[test]
fn attack_35_49_what_is_shown_holds_no_secret_and_no_control_character() {
    use tidegate::cli::validate::{Colour, Output, report};
    let mut tree = Tree::example();
    tree.append(PODINFO_SET, SECRET).append(PODINFO_SET, "\n---\nstringData: {a: &canary-5f3a x}\n");
    tree.edit(SITE, "name: fifth", "name: \"fif\\u202eth\"");
    for output in [Output::Text, Output::Json] {
        let text = report(&tree.load(), output, Colour::Never).text;
        assert!(!text.contains("canary-5f3a"), "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
        assert!(text.contains("SecretData"), "{text}");
    }
}

#[test]
fn attack_39_a_schema_in_the_repository_is_never_read() {
    let mut tree = Tree::example();
    let schema = format!("{}{{}}{}", "{\"items\":".repeat(50_000), "}".repeat(50_000));
    tree.put("schemas/rollout.schema.json", schema.clone()).put("teams/shop/podinfo/rollout.schema.json", schema);
    assert_eq!(tree.load().rollouts, Tree::example().load().rollouts);
}

#[test]
fn attack_36_line_ends_do_not_change_the_version() {
    let mut tree = Tree::example();
    let before = tree.load();
    for path in [PODINFO, PODINFO_SET] {
        let text = tree.text(path).replace('\n', "\r\n");
        tree.put(path, text);
    }
    let after = tree.load();
    let id = "shop/podinfo".parse().unwrap();
    let (before, after) = (before.rollouts[&id].as_ref().unwrap(), after.rollouts[&id].as_ref().unwrap());
    assert_eq!((&before.set.revision, &before.set.pods), (&after.set.revision, &after.set.pods));
    assert_ne!(before.set.id, after.set.id);
}

#[test]
fn attack_45_nobody_rejects_another_tenants_rollout_by_naming_it() {
    let mut tree = Tree::example();
    let (rollout, set) = (tree.text(PODINFO), tree.text(PODINFO_SET));
    tree.put("teams/blog/evil/rollout.yaml", rollout).put("teams/blog/evil/podinfo.yaml", set);
    let loaded = tree.load();
    assert_eq!(codes(&loaded, "shop/podinfo"), []);
    assert_eq!(loaded.unnamed.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::NotPermitted]);
}

/// Whether the weaknesses of dependencies are looked for; what was found while this was written is not of use tomorrow.
#[test]
fn attack_96_a_dependency_with_a_known_weakness_fails_the_checks() {
    let read = |path: &str| std::fs::read_to_string(source_dir().join(path)).unwrap();
    let (run, parts, script) = (read(".ci/run"), read(".ci/parts"), read(".ci/advisories"));
    let checks = parts.split("\n}\n").find(|part| part.contains("\nchecks() {")).unwrap();
    assert!(checks.lines().any(|line| line.starts_with("\t.ci/advisories ||") && line.contains("== 75")), "{checks}");
    assert!(run.lines().any(|line| line == "part checks"), "{run}");
    assert!(script.contains("set -euo pipefail") && script.ends_with("check advisories\n"), "{script}");
    let deny = read("deny.toml");
    let advisories = deny.split("\n[").find(|part| part.starts_with("advisories]")).unwrap();
    let (_, ignored) = advisories.split_once("ignore = [").unwrap();
    let exceptions = ignored.split_once(']').unwrap().0;
    assert_eq!(exceptions.matches("id = ").count(), exceptions.matches("reason = ").count(), "{exceptions}");
    assert_eq!(exceptions.matches("RUSTSEC-").count(), exceptions.matches("id = ").count(), "{exceptions}");
}

#[cfg(unix)]
#[test]
fn attack_4_links_on_disk_are_never_followed() {
    use std::os::unix::fs::symlink;
    use tidegate::cli::validate::read;
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.yaml"), "canary-5f3a").unwrap();
    std::fs::create_dir_all(dir.path().join("a/.git")).unwrap();
    std::fs::write(dir.path().join("a/.git/config"), "x").unwrap();
    std::fs::write(dir.path().join("a/b.yaml"), "x").unwrap();
    symlink(outside.path().join("secret.yaml"), dir.path().join("a/secret.yaml")).unwrap();
    symlink(dir.path(), dir.path().join("a/loop")).unwrap();
    std::fs::write(dir.path().join("a/50%.yaml"), "x").unwrap();
    symlink("/nowhere/at/all", dir.path().join("dangling")).unwrap();
    let files = read(dir.path()).unwrap();
    let found: Vec<_> = files.iter().map(|(path, entry)| (path.as_str(), matches!(entry, Entry::Symlink))).collect();
    assert_eq!(
        found,
        [("a/50_.yaml", false), ("a/b.yaml", false), ("a/loop", true), ("a/secret.yaml", true), ("dangling", true)]
    );
}
