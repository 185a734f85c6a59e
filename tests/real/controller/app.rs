//! What the tests roll out: a Deployment, and beside it what the test asks for.

use std::fmt::Write;

/// The manifests of one version.
#[derive(Clone, Copy)]
pub(super) struct App<'a> {
    /// The name of its objects, and of its file.
    pub(super) name: &'a str,
    /// The tag of its image.
    pub(super) version: u8,
    /// Its pods.
    pub(super) replicas: u32,
    /// Annotations of its pods, by which the test bed knows what they do: `testbed/fail-after: 5s`.
    pub(super) pods: &'a str,
    /// A ConfigMap of its own with this text.
    pub(super) config: Option<&'a str>,
    /// Has a Service.
    pub(super) service: bool,
    /// Has an HTTPRoute for this host.
    pub(super) host: Option<&'a str>,
    /// The Gateway of that route.
    pub(super) parent: &'a str,
    /// Another object.
    pub(super) more: &'a str,
}

/// Phases by a route: a tenth after a person's word, then half. Add what comes after.
pub(super) const GATED: &str = "  traffic:\n    gatewayAPI: {httpRoute: web, service: web}\n    settle: 0s\n    drain: 2s\n  phases:\n  \
    - {name: tenth, before: {approval: pullRequest}, expose: {weight: 10}, soak: 1s}\n  \
    - {name: half, expose: {weight: 50}, soak: 1s}\n  progressDeadline: 10m\n";

/// Promoted after a word, too.
pub(super) const PROMOTION_GATE: &str = "  promotion: {before: {approval: pullRequest}, bake: 1s}\n";

/// What is written for `web`, for another rollout.
pub(super) fn of(name: &str, spec: &str) -> String {
    spec.replace("web", name)
}

/// [`GATED`] without asking anybody.
pub(super) fn ungated() -> String {
    GATED.replace("before: {approval: pullRequest}, ", "")
}

impl<'a> App<'a> {
    /// With a Service and an HTTPRoute.
    pub(super) fn new(name: &'a str, version: u8) -> Self {
        let (service, host, parent) = (true, Some("web.example.test"), "name: public");
        Self { name, version, replicas: 2, pods: "", config: None, service, host, parent, more: "" }
    }

    /// Without whatever leads to it.
    pub(super) fn worker(name: &'a str, version: u8) -> Self {
        Self { service: false, host: None, ..Self::new(name, version) }
    }

    /// The file.
    pub(super) fn text(&self) -> String {
        let Self { name, version, replicas, pods, config, service, host, parent, more } = *self;
        let env =
            if config.is_some() { format!(", envFrom: [{{configMapRef: {{name: {name}}}}}]") } else { String::new() };
        let mut text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, labels: {{app: {name}}}}}\nspec:\n  \
             replicas: {replicas}\n  selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    \
             metadata: {{labels: {{app: {name}}}, annotations: {{{pods}}}}}\n    \
             spec: {{containers: [{{name: main, image: \"example.test/{name}:{version}\"{env}}}]}}\n"
        );
        if let Some(config) = config {
            let data = format!("data: {{greeting: {config}}}");
            write!(text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{data}\n").unwrap();
        }
        if service {
            let spec = format!("spec: {{selector: {{app: {name}}}, ports: [{{name: http, port: 80}}]}}");
            write!(text, "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n{spec}\n").unwrap();
        }
        if let Some(host) = host {
            let rules = format!("rules: [{{backendRefs: [{{name: {name}, port: 80}}]}}]");
            let spec = format!("spec: {{parentRefs: [{{{parent}}}], hostnames: [{host}], {rules}}}");
            let head = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute";
            write!(text, "---\n{head}\nmetadata: {{name: {name}}}\n{spec}\n").unwrap();
        }
        if !more.is_empty() {
            write!(text, "---\n{more}\n").unwrap();
        }
        text
    }
}
