//! What content may reach: each line of the table refuses what it is about, and lets it be where the policy says so.

use crate::tree::{PODINFO_SET, POLICY, Tree, codes};
use std::collections::BTreeSet;
use tidegate::manifest::diagnostic::Code;
use tidegate::manifest::reach;

/// What is appended to the manifests, with a line of the table that it is about: its kinds, and its place.
struct Reach {
    kinds: &'static str,
    place: &'static str,
    text: String,
}

fn of(kinds: &'static str, place: &'static str, text: impl Into<String>) -> Reach {
    Reach { kinds, place, text: text.into() }
}

/// A Deployment beside the target, with this in its pods' metadata, its pods and their container.
fn pods(place: &'static str, metadata: &str, pods: &str, container: &str) -> Reach {
    let text = format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: aside}}\nspec:\n  replicas: 1\n  selector: {{matchLabels: {{app: aside}}}}\n  \
         template:\n    metadata: {{labels: {{app: aside}}{metadata}}}\n    \
         spec: {{{pods}containers: [{{name: main, image: \"example.test/aside:1\"{container}}}]}}\n"
    );
    of("pods", place, text)
}

/// A container with that security context.
fn confined(place: &'static str, context: &str) -> Reach {
    pods(place, "", "", &format!(", securityContext: {{{context}}}"))
}

/// Pods with a volume.
fn volume(place: &'static str, source: &str) -> Reach {
    pods(place, "", &format!("volumes: [{{name: a, {source}}}], "), "")
}

/// Pods beside which those that are meant have no place.
fn keeping(others: &str) -> String {
    let term = format!("{{labelSelector: {{}}, topologyKey: kubernetes.io/hostname, {others}}}");
    format!("affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}, ")
}

fn object(api: &str, kind: &str, metadata: &str, spec: &str) -> String {
    format!("apiVersion: {api}\nkind: {kind}\nmetadata: {{name: aside{metadata}}}\n{spec}\n")
}

fn ingress(place: &'static str, annotation: &str) -> Reach {
    let metadata = format!(", annotations: {{nginx.ingress.kubernetes.io/{annotation}}}");
    let spec = "spec: {defaultBackend: {service: {name: podinfo, port: {number: 80}}}}";
    of("Ingress", place, object("networking.k8s.io/v1", "Ingress", &metadata, spec))
}

const ISTIO: &str = "networking.istio.io/v1";
const TRAEFIK: &str = "traefik.io/v1alpha1";
const CONTOUR: &str = "projectcontour.io/v1";
const GATEWAY: &str = "gateway.networking.k8s.io/v1";
const MESH: &str = "VirtualService DestinationRule";
const IDENTITY: &str = "metadata annotations|labels \
                        eks.amazonaws.com/*|iam.gke.io/*|azure.workload.identity/*|iam.amazonaws.com/*|aadpodidbinding";

fn of_pods() -> Vec<Reach> {
    let armour = "metadata annotations container.apparmor.security.beta.kubernetes.io/*";
    vec![
        pods("spec hostNetwork|hostPID|hostIPC", "", "hostIPC: true, ", ""),
        pods("spec volumes * hostPath", "", "volumes: [{name: a, hostPath: {path: /var}}], ", ""),
        volume(
            "spec volumes * !name|hostPath|configMap|csi|downwardAPI|emptyDir|ephemeral|image|persistentVolumeClaim|projected|secret",
            "nfs: {server: 192.0.2.1, path: /}",
        ),
        volume(
            "spec volumes * csi volumeAttributes *amespace",
            "csi: {driver: files.example.org, volumeAttributes: {secretNamespace: blog}}",
        ),
        volume(
            "spec volumes * ephemeral ** namespace",
            "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, \
             dataSourceRef: {kind: PersistentVolumeClaim, name: x, namespace: blog}}}}",
        ),
        volume(
            "spec volumes * ephemeral ** volumeName",
            "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, \
             volumeName: pv-of-others}}}",
        ),
        volume(
            "spec volumes * ephemeral ** selector",
            "ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, \
             selector: {matchLabels: {app: blog-db}}}}}",
        ),
        volume(
            "spec volumes * projected sources * serviceAccountToken audience",
            "projected: {sources: [{serviceAccountToken: {audience: sts.amazonaws.com, path: token}}]}",
        ),
        volume(
            "spec volumes * projected sources * podCertificate",
            "projected: {sources: [{podCertificate: {signerName: example.org/x, keyType: ED25519}}]}",
        ),
        confined(
            "spec ** gmsaCredentialSpec|gmsaCredentialSpecName",
            "windowsOptions: {gmsaCredentialSpecName: admin}",
        ),
        pods("spec affinity ** namespaces *", "", &keeping("namespaces: [shop, blog]"), ""),
        pods("spec affinity ** namespaceSelector", "", &keeping("namespaceSelector: {}"), ""),
        pods("spec priorityClassName", "", "priorityClassName: system-cluster-critical, ", ""),
        confined("spec ** privileged|hostProcess", "privileged: true"),
        confined("spec ** capabilities add *", "capabilities: {add: [NET_ADMIN]}"),
        confined("spec ** procMount", "procMount: Unmasked"),
        confined("spec ** seccompProfile|appArmorProfile type", "seccompProfile: {type: Unconfined}"),
        pods(armour, ", annotations: {container.apparmor.security.beta.kubernetes.io/main: unconfined}", "", ""),
        confined("spec ** seLinuxOptions type", "seLinuxOptions: {type: spc_t}"),
        confined("spec ** seLinuxOptions user|role", "seLinuxOptions: {role: sysadm_r}"),
        pods(
            "spec securityContext sysctls * name",
            "",
            "securityContext: {sysctls: [{name: kernel.msgmax, value: \"1\"}]}, ",
            "",
        ),
        pods("spec ** ports * hostPort", "", "", ", ports: [{containerPort: 80, hostPort: 80}]"),
        pods("spec ** httpGet|tcpSocket host", "", "", ", livenessProbe: {tcpSocket: {port: 80, host: 192.0.2.1}}"),
        pods(IDENTITY, ", annotations: {iam.amazonaws.com/role: admin}", "", ""),
    ]
}

fn routes(kind: &'static str, kinds: &'static str, place: &'static str, spec: &str) -> Reach {
    let api = if kind.starts_with("Ing") || kind.starts_with("Tra") { TRAEFIK } else { ISTIO };
    of(kinds, place, object(api, kind, "", &format!("spec: {{{spec}}}")))
}

/// An IngressRoute that leads to a Service said so, with more beside.
fn leads(place: &'static str, service: &str, more: &str) -> Reach {
    let spec =
        format!("{more}routes: [{{match: Host(`a.example.org`), kind: Rule, services: [{{{service}, port: 80}}]}}]");
    routes("IngressRoute", "IngressRoute", place, &spec)
}

/// A RouteTable of Gloo that no rollout splits.
fn table(place: &'static str, action: &str) -> Reach {
    of(
        "RouteTable",
        place,
        object("gateway.solo.io/v1", "RouteTable", "", &format!("spec: {{routes: [{{{action}}}]}}")),
    )
}

fn of_routes() -> Vec<Reach> {
    let backend = "spec: {rules: [{backendRefs: [{name: web, namespace: blog, port: 80}]}]}";
    let included = "spec: {includes: [{name: x, namespace: blog}], routes: [{services: [{name: web, port: 80}]}]}";
    let proxied = |virtualhost: &str, service: &str| {
        let service = format!("{{name: web, port: 80{service}}}");
        object(CONTOUR, "HTTPProxy", "", &format!("spec: {{{virtualhost}routes: [{{services: [{service}]}}]}}"))
    };
    let named =
        "spec: {rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: web.blog.svc, port: 80}]}]}";
    let copied = "spec: {rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: web.blog.svc, port: 80}}}]}]}";
    let public = "hosts: ['*.local'], http: [{route: [{destination: {host: aside}}]}]";
    let delegate = "hosts: [a.example.org], http: [{delegate: {name: x, namespace: blog}}]";
    let (route, foreign) = ("VirtualService", "hosts: [web.blog.svc], http: [{route: [{destination: {host: aside}}]}]");
    let (shares, both) = ("TraefikService", "IngressRoute TraefikService");
    vec![
        of("HTTPRoute GRPCRoute", "spec rules ** namespace", object(GATEWAY, "GRPCRoute", "", backend)),
        of("HTTPRoute GRPCRoute", "spec rules ** backendRefs * name", object(GATEWAY, "GRPCRoute", "", named)),
        of("HTTPRoute GRPCRoute", "spec rules ** backendRef name", object(GATEWAY, "GRPCRoute", "", copied)),
        routes(route, route, "spec http ** namespace", delegate),
        routes(route, route, "spec", public),
        routes("DestinationRule", MESH, "spec ** host|targetHost", "host: web.blog.svc.cluster.local"),
        routes("DestinationRule", MESH, "spec exportTo *", "host: aside, exportTo: [blog]"),
        routes(route, route, "spec hosts *", foreign),
        of("HTTPProxy", "spec ** namespace", object(CONTOUR, "HTTPProxy", "", included)),
        of(
            "HTTPProxy",
            "spec ** uri",
            proxied("jwtProviders: [{name: x, remoteJWKS: {uri: 'http://169.254.169.254/'}}], ", ""),
        ),
        of(
            "HTTPProxy",
            "spec ** secretName|caSecret|crlSecret|caCertificate",
            proxied("", ", validation: {caSecret: blog/ca, subjectName: a}"),
        ),
        leads("spec parentRefs * namespace", "name: web", "parentRefs: [{name: x, namespace: blog}], "),
        table(
            "spec routes ** kube ref namespace",
            "routeAction: {single: {kube: {ref: {name: web, namespace: blog}, port: 80}}}",
        ),
        table(
            "spec routes ** shadowing upstream namespace",
            "options: {shadowing: {percentage: 100, upstream: {name: web, namespace: blog}}}",
        ),
        table(
            "spec routes ** upstreamGroup|configRef namespace",
            "routeAction: {upstreamGroup: {name: web, namespace: blog}}",
        ),
        table(
            "spec routes ** delegateOptions * namespace",
            "optionsConfigRefs: {delegateOptions: [{name: web, namespace: blog}]}",
        ),
        table("spec routes ** dynamicForwardProxy|clusterHeader", "routeAction: {dynamicForwardProxy: {}}"),
        table("spec routes * delegateAction namespace", "delegateAction: {name: x, namespace: blog}"),
        table("spec routes * delegateAction ref namespace", "delegateAction: {ref: {name: x, namespace: blog}}"),
        table("spec routes * delegateAction selector namespaces *", "delegateAction: {selector: {namespaces: ['*']}}"),
        leads("spec routes ** namespace", "name: web, namespace: blog", ""),
        leads("spec tls ** namespace", "name: aside", "tls: {options: {name: x, namespace: blog}}, "),
        routes(shares, shares, "spec ** namespace", "weighted: {services: [{name: web, namespace: blog, port: 80}]}"),
        routes(shares, both, "spec ** name|serversTransport", "weighted: {services: [{name: api@internal, port: 80}]}"),
    ]
}

fn of_monitors() -> Vec<Reach> {
    let monitor = |place, kind, spec: &str| {
        let text = object("monitoring.coreos.com/v1", kind, "", &format!("spec: {{{spec}}}"));
        of("ServiceMonitor PodMonitor", place, text)
    };
    vec![
        monitor("spec namespaceSelector matchNames *", "ServiceMonitor", "namespaceSelector: {matchNames: [blog]}"),
        monitor("spec namespaceSelector any", "PodMonitor", "namespaceSelector: {any: true}"),
        monitor(
            "spec ** bearerTokenFile|caFile|certFile|keyFile",
            "ServiceMonitor",
            "endpoints: [{port: http, bearerTokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}]",
        ),
        monitor("spec scrapeClass", "ServiceMonitor", "scrapeClass: mutual, endpoints: [{port: http}]"),
        monitor(
            "spec ** proxyUrl|tokenUrl",
            "PodMonitor",
            "podMetricsEndpoints: [{port: http, oauth2: {tokenUrl: 'http://192.0.2.1'}}]",
        ),
        monitor(
            "spec targetLabels|podTargetLabels *",
            "ServiceMonitor",
            "targetLabels: [team, namespace], endpoints: [{port: http}]",
        ),
        monitor("spec ** honorLabels", "ServiceMonitor", "endpoints: [{port: http, honorLabels: true}]"),
        monitor(
            "spec ** relabelings|metricRelabelings",
            "PodMonitor",
            "podMetricsEndpoints: [{port: http, relabelings: [{targetLabel: namespace, replacement: blog}]}]",
        ),
    ]
}

fn of_other_kinds() -> Vec<Reach> {
    let claim = |place, more: &str| {
        let spec = format!("spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, {more}}}");
        of("PersistentVolumeClaim", place, object("v1", "PersistentVolumeClaim", "", &spec))
    };
    let certificate = |place, spec: &str| {
        let spec = format!("spec: {{secretName: aside, {spec}}}");
        of("Certificate", place, object("cert-manager.io/v1", "Certificate", "", &spec))
    };
    let record = "spec: {groups: [{name: a, rules: [{record: errors, expr: vector(0)}]}]}";
    let alert = "spec: {groups: [{name: a, rules: [{alert: Down, expr: vector(1), labels: {namespace: blog}}]}]}";
    let secret = |place, spec: &str| {
        let spec = format!("spec: {{secretStoreRef: {{name: store, kind: ClusterSecretStore}}, {spec}}}");
        of("ExternalSecret", place, object("external-secrets.io/v1", "ExternalSecret", "", &spec))
    };
    let vault = "spec: {hashiCorpVault: {address: 'http://192.0.2.1', authentication: token}}";
    vec![
        claim("spec dataSourceRef namespace", "dataSourceRef: {kind: PersistentVolumeClaim, name: x, namespace: blog}"),
        claim("spec volumeName", "volumeName: pv-of-others"),
        claim("spec selector", "selector: {matchLabels: {app: blog-db}}"),
        certificate("spec isCA", "isCA: true, issuerRef: {name: own}"),
        of(
            "PrometheusRule",
            "spec groups * rules * record",
            object("monitoring.coreos.com/v1", "PrometheusRule", "", record),
        ),
        of(
            "PrometheusRule",
            "spec groups * rules * labels namespace",
            object("monitoring.coreos.com/v1", "PrometheusRule", "", alert),
        ),
        secret(
            "spec ** generatorRef kind",
            "dataFrom: [{sourceRef: {generatorRef: {kind: ClusterGenerator, name: app}}}]",
        ),
        secret("spec target manifest", "target: {manifest: {apiVersion: v1, kind: ConfigMap}}"),
        of(
            "TriggerAuthentication",
            "spec podIdentity|awsSecretManager|azureKeyVault|gcpSecretManager|hashiCorpVault",
            object("keda.sh/v1alpha1", "TriggerAuthentication", "", vault),
        ),
    ]
}

fn of_others() -> Vec<Reach> {
    let account = |metadata: &str, more: &str| object("v1", "ServiceAccount", metadata, more);
    let service = |spec: &str| object("v1", "Service", "", &format!("spec: {{{spec}}}"));
    let leading = |more: &str| service(&format!("selector: {{app: podinfo}}, ports: [{{port: 80}}], {more}"));
    let trigger = "{type: kafka, metadata: {bootstrapServers: 'a:1', topic: t, consumerGroup: g}}";
    let scaled = format!("spec: {{scaleTargetRef: {{name: other}}, triggers: [{trigger}]}}");
    let kept = |place, more: &str| {
        let spec = format!(
            "spec: {{serviceName: podinfo, selector: {{matchLabels: {{app: aside}}}}, template: {{metadata: {{labels: {{app: aside}}}}, \
             spec: {{containers: [{{name: main, image: 'example.test/aside:1'}}]}}}}, volumeClaimTemplates: [{{metadata: {{name: a}}, \
             spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}, {more}}}}}]}}"
        );
        of("StatefulSet", place, object("apps/v1", "StatefulSet", "", &spec))
    };
    vec![
        kept(
            "spec volumeClaimTemplates ** namespace",
            "dataSourceRef: {kind: PersistentVolumeClaim, name: x, namespace: blog}",
        ),
        kept("spec volumeClaimTemplates * spec volumeName", "volumeName: pv-of-others"),
        kept("spec volumeClaimTemplates * spec selector", "selector: {matchLabels: {app: blog-db}}"),
        of("ServiceAccount", IDENTITY, account(", annotations: {iam.gke.io/gcp-service-account: a@b.example}", "")),
        of("ServiceAccount", "secrets ** namespace", account("", "secrets: [{name: x, namespace: blog}]")),
        of("Service", "spec externalName", service("type: ExternalName, externalName: web.blog.svc")),
        of("Service", "spec externalIPs *", leading("externalIPs: [192.0.2.1]")),
        of("Service", "spec loadBalancerIP", leading("loadBalancerIP: 192.0.2.1")),
        ingress("metadata annotations *snippet*", "server-snippet: 'return 418;'"),
        ingress(
            "metadata annotations */auth-url|*/auth-signin|*/auth-tls-error-page|*/mirror-target|*/mirror-host|*/influxdb-host",
            "mirror-target: http://192.0.2.1",
        ),
        ingress(
            "metadata annotations */auth-secret|*/auth-tls-secret|*/proxy-ssl-secret|*/secure-verify-ca-secret|\
             */auth-proxy-set-headers|*/custom-headers|*/fastcgi-params-configmap",
            "auth-tls-secret: blog/ca",
        ),
        of("ScaledObject", "spec triggers * type", object("keda.sh/v1alpha1", "ScaledObject", "", &scaled)),
    ]
}

/// The example with that beside the target, and a policy that says this of its tenants.
fn tree(reach: &Reach, allow: &str) -> Tree {
    let mut tree = Tree::example();
    tree.append(PODINFO_SET, &format!("---\n{}", reach.text));
    let policy = tree.text(POLICY).replace("      allow: []\n", allow);
    tree.put(POLICY, policy);
    tree
}

/// What is said of it: errors, and warnings with these codes.
fn said(tree: &Tree) -> (Vec<String>, Vec<String>) {
    let loaded = tree.load();
    let text = |found: &tidegate::manifest::diagnostic::Diagnostic| format!("{} {}", found.code, found.found);
    let reaches = |code: Code| matches!(code, Code::NotPermitted | Code::CrossNamespace);
    let warnings = loaded.warnings.iter().filter(|warning| reaches(warning.code)).map(text).collect();
    (loaded.errors().into_iter().map(text).collect(), warnings)
}

#[test]
fn attack_105_107_108_109_110_each_line_of_the_table_refuses_what_it_is_about() {
    let lines: BTreeSet<(&str, &str)> = reach::told().map(|[kinds, place, ..]| (kinds, place)).collect();
    let all =
        || of_pods().into_iter().chain(of_others()).chain(of_other_kinds()).chain(of_monitors()).chain(of_routes());
    assert_eq!(all().map(|reach| (reach.kinds, reach.place)).collect::<BTreeSet<_>>(), lines);
    for reach in all() {
        let [.., who] =
            reach::told().find(|[kinds, place, ..]| (*kinds, *place) == (reach.kinds, reach.place)).unwrap();
        let (refused, warned) = said(&tree(&reach, "      allow: []\n"));
        assert!(refused.len() == 1 && warned.is_empty(), "{}: {refused:?} {warned:?}", reach.text);
        let code = if ["never", "nobody"].contains(&who) { "CrossNamespace " } else { "NotPermitted " };
        assert!(refused[0].starts_with(code), "{}: {refused:?}", reach.text);
        // Where the policy does not say, the same is a warning, but for what was refused ever since.
        let open = said(&tree(&reach, ""));
        let expected = if who == "never" { (refused.clone(), vec![]) } else { (vec![], refused.clone()) };
        assert_eq!(open, expected, "{}", reach.text);
        let everything =
            "      allow: [hostPath, volumes, snippets, externalIPs, cloudIdentity, privileged, triggers, metrics]\n";
        let allowed = said(&tree(&reach, everything));
        let expected = if code.starts_with("Cross") { refused.clone() } else { vec![] };
        assert_eq!(allowed, (expected, vec![]), "{}", reach.text);
        if code.starts_with("Not") {
            assert_eq!(said(&tree(&reach, &format!("      allow: [{who}]\n"))).0, [""; 0], "{}", reach.text);
            let other = if who == "triggers" { "snippets" } else { "triggers" };
            assert_eq!(said(&tree(&reach, &format!("      allow: [{other}]\n"))).0, refused, "{}", reach.text);
        }
    }
}

/// What others reach, but not so.
fn fine_beside() -> Vec<Reach> {
    vec![
        routes(
            "VirtualService",
            "",
            "",
            "hosts: [aside, aside.shop, aside.shop.svc.cluster.local], http: [{route: [{destination: {host: aside}}]}]",
        ),
        routes(
            "VirtualService",
            "",
            "",
            "hosts: ['*.example.org'], exportTo: [.], http: [{route: [{destination: {host: aside}}]}]",
        ),
        routes(
            "VirtualService",
            "",
            "",
            "hosts: ['*.example.org'], gateways: [edge/public], http: [{route: [{destination: {host: aside}}]}]",
        ),
        volume(
            "",
            "projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: x, optional: true}}]}",
        ),
        volume("", "csi: {driver: secrets.example.org, volumeAttributes: {secretProviderClass: x}}"),
        pods("", "", &keeping("namespaces: [shop]"), ""),
        pods("", "", "priorityClassName: high, ", ""),
    ]
}

#[test]
fn what_reaches_nothing_is_fine_however_it_is_written() {
    let fine = [
        pods("", "", "hostNetwork: false, hostPID: null, ", ", ports: [{containerPort: 80, hostPort: 0}]"),
        confined(
            "",
            "privileged: false, procMount: Default, capabilities: {add: [CHOWN], drop: [ALL]}, seLinuxOptions: {type: container_t, user: \"\"}, seccompProfile: {type: RuntimeDefault}",
        ),
        pods(
            "",
            "",
            "",
            ", livenessProbe: {httpGet: {port: 80, path: /, host: \"\"}}, lifecycle: {preStop: {exec: {command: [a]}}}",
        ),
        ingress("", "auth-secret: users"),
        ingress("", "auth-secret: shop/users"),
        of(
            "",
            "",
            object(
                "v1",
                "Service",
                "",
                "spec: {selector: {app: podinfo}, ports: [{port: 80}], externalIPs: [], loadBalancerIP: \"\"}",
            ),
        ),
        of("", "", object(ISTIO, "DestinationRule", "", "spec: {host: podinfo.shop, exportTo: [., '~', shop]}")),
        of("", "", object(ISTIO, "DestinationRule", "", "spec: {host: api.example.org}")),
        of(
            "",
            "",
            object(
                "keda.sh/v1alpha1",
                "ScaledObject",
                "",
                "spec: {scaleTargetRef: {name: other}, triggers: [{type: cpu, metricType: Utilization, metadata: {value: '50'}}]}",
            ),
        ),
    ];
    for reach in fine.into_iter().chain(fine_beside()) {
        assert_eq!(said(&tree(&reach, "      allow: []\n")), (vec![], vec![]), "{}", reach.text);
    }
}

#[test]
fn what_is_expected_names_the_tenant_and_what_it_lacks() {
    let of = |allow| {
        let loaded = tree(&pods("", "", "hostPID: true, ", ""), allow).load();
        let found = loaded.errors().into_iter().chain(&loaded.warnings).next().unwrap();
        (found.expected.clone(), found.help.clone())
    };
    let expected = "one of false, or privileged in allow of the tenant shop in tidegate.yaml".to_owned();
    assert_eq!(of("      allow: []\n"), (expected.clone(), None));
    let (told, help) = of("");
    assert!(told == expected && help.unwrap().contains("next release"));
    assert_eq!(codes(&Tree::example().load(), "shop/podinfo"), []);
}
