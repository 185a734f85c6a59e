//! The names under which Gloo has the Services of a cluster as upstreams.

/// What begins the name of one that is in its memory alone, as it makes them of destinations `kube` (`FakeUpstreamNamePrefix`).
pub const IN_MEMORY: &str = "kube-svc:";

/// The Service of that namespace that an upstream is by its name, and the port: `kube-svc:NAMESPACE-NAME-PORT`, or without the prefix as
/// discovery calls it (`UpstreamName`). A name of more than 63 characters is shortened by Gloo, and is none here.
#[must_use]
pub fn service_of<'a>(upstream: &'a str, namespace: &str) -> Option<(&'a str, u16)> {
    let name = upstream.strip_prefix(IN_MEMORY).unwrap_or(upstream);
    let (service, port) = name.strip_prefix(namespace)?.strip_prefix('-')?.rsplit_once('-')?;
    Some((service, port.parse().ok()?))
}
