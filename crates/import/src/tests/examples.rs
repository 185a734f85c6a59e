//! What is imported, as the tools' users write it.

pub(crate) const CANARY: &[(&str, &str)] = &[
    ("canary.yaml", include_str!("../examples/flagger-canary.yaml")),
    ("podinfo.yaml", include_str!("../examples/podinfo.yaml")),
];
pub(crate) const BLUE_GREEN: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-blue-green.yaml"))];
pub(crate) const AB: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-ab.yaml"))];
pub(crate) const COPIES: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-primary.yaml"))];
pub(crate) const INGRESS: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-nginx.yaml"))];
pub(crate) const TRAEFIK: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-traefik.yaml"))];
pub(crate) const ALIAS: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-service.yaml"))];
pub(crate) const DAEMONS: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-daemonset.yaml"))];
pub(crate) const SKIPPED: &[(&str, &str)] = &[("canary.yaml", include_str!("../examples/flagger-skipped.yaml"))];
pub(crate) const MANAGED: &[(&str, &str)] = &[("live.yaml", include_str!("../examples/flagger-live.yaml"))];
pub(crate) const MANAGED_BY_ARGO: &[(&str, &str)] = &[("live.yaml", include_str!("../examples/argo-live.yaml"))];
pub(crate) const STEPS: &[(&str, &str)] = &[("rollout.yaml", include_str!("../examples/argo-canary.yaml"))];
pub(crate) const BY_PODS: &[(&str, &str)] = &[("rollout.yaml", include_str!("../examples/argo-by-pods.yaml"))];
pub(crate) const MESH: &[(&str, &str)] = &[("rollout.yaml", include_str!("../examples/argo-istio.yaml"))];
pub(crate) const WEIGHTED: &[(&str, &str)] = &[("rollout.yaml", include_str!("../examples/argo-traefik.yaml"))];
pub(crate) const PREVIEW: &[(&str, &str)] = &[("rollout.yaml", include_str!("../examples/argo-blue-green.yaml"))];
