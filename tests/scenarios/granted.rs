//! What the controller may ask for in the world's cluster: what the chart grants it (`chart::rights` holds the two equal).

use std::collections::BTreeSet;
use tidegate::cluster::rights::{self, Right};
use tidegate::manifest::ids::Namespace;
use tidegate::manifest::installation::Caps;
use tidegate::manifest::layer::NodeSelector;
use tidegate::manifest::raw::{Gateways, Projection};
use tidegate::world::kube_api::{ApiVerb, SeenRequest};

pub(crate) struct Granted(Vec<Right>);

impl Granted {
    pub(crate) fn new() -> Self {
        let (home, served): (Namespace, BTreeSet<Namespace>) =
            ("tidegate".parse().unwrap(), ["shop".parse().unwrap()].into());
        let caps = Caps::new(served.clone(), BTreeSet::new()).configuring(NodeSelector::default());
        let mut all = rights::needed(&"world".parse().unwrap(), &home, &caps, Projection::Off);
        all.extend(rights::to_copy(&served));
        Self(all)
    }

    /// The same where the chart is told of these gateways.
    pub(crate) fn look_at(&mut self, gateways: &Gateways) {
        self.0.extend(rights::to_look(gateways, &["shop".parse().unwrap()].into()));
    }

    /// What is asked for and not granted.
    pub(crate) fn misses(&self, seen: &SeenRequest<'_>, verb: ApiVerb) -> Option<String> {
        let is_it = |right: &Right| {
            let namespace = right.namespace.as_ref().map_or("", Namespace::as_str);
            // What lists or creates names nothing.
            let named = right.name.as_ref().is_none_or(|name| seen.name.is_empty() || name == seen.name);
            right.verb == verb.as_str()
                && (right.group, right.resource, namespace)
                    == (seen.resource.group(), seen.resource.plural, seen.namespace)
                && named
        };
        let granted = seen.subresource.is_empty() && self.0.iter().any(is_it);
        let below = if seen.subresource.is_empty() { String::new() } else { format!("/{}", seen.subresource) };
        let what = format!("{verb} {}{below} {} in {:?}", seen.resource.qualified(), seen.name, seen.namespace);
        (!granted).then_some(what)
    }
}

#[test]
fn what_the_chart_does_not_grant_is_missed() {
    use tidegate::world::kube_api::What;
    let granted = Granted::new();
    let asks = |verb, kind, namespace, name, subresource| {
        let (resource, what) =
            (crate::scenarios::live::resource(kind).unwrap(), What::Request { verb, dry_run: false });
        granted
            .misses(&SeenRequest { number: 1, caller: "process-1", resource, namespace, name, subresource, what }, verb)
    };
    assert_eq!(asks(ApiVerb::Patch, "Deployment", "shop", "web", ""), None);
    assert_eq!(asks(ApiVerb::List, "ConfigMap", "tidegate", "", ""), None);
    assert_eq!(asks(ApiVerb::Update, "Lease", "tidegate", "tidegate-world", ""), None);
    for (verb, kind, namespace, name, subresource) in [
        (ApiVerb::Patch, "Deployment", "shop", "web", "scale"),
        (ApiVerb::Update, "Deployment", "shop", "web", ""),
        (ApiVerb::List, "Secret", "shop", "", ""),
        (ApiVerb::Get, "Secret", "tidegate", "token", ""),
        (ApiVerb::Patch, "Deployment", "other", "web", ""),
        (ApiVerb::List, "Deployment", "", "", ""),
        (ApiVerb::Update, "Lease", "tidegate", "another", ""),
    ] {
        assert!(asks(verb, kind, namespace, name, subresource).is_some(), "{verb} {kind} {name} in {namespace:?}");
    }
}
