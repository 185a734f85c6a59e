//! What HTTPProxies hang on, and what they name. Semantics: Contour's reference of HTTPProxy (`includes`), and `httpproxy_processor.go`.

use super::{Finding, Parent, Tree};
use crate::manifest::object::{Kind, Object, items};

impl Tree {
    pub(super) fn contour_parents(&self, proxy: &Object) -> Vec<Parent<'_>> {
        let own = proxy.reference();
        let includes = |object: &'_ Object, route: &serde_json::Value| {
            let namespace = route["namespace"].as_str().filter(|namespace| !namespace.is_empty());
            let namespace = namespace.unwrap_or(object.reference().namespace.as_str());
            route["name"] == own.name.as_str() && namespace == own.namespace.as_str()
        };
        let mut found = Vec::new();
        for object in self.of_kind(Kind::HttpProxy).filter(|object| object.reference() != own) {
            let all = items(&object.value()["spec"], "includes").enumerate();
            let all = all.filter(|(_, route)| includes(object, route));
            found.extend(all.map(|(number, route)| Parent { object, number, route, selects: false }));
        }
        found
    }

    /// What it names in its own namespace that is not there. Services are always there; what it includes elsewhere nobody can tell.
    pub(super) fn contour_missing(&self, proxy: &Object, made: &impl Fn(Kind, &str) -> Option<bool>) -> Vec<Finding> {
        let own = proxy.reference().namespace.as_str();
        let lacks = |kind: Kind, name: Option<&str>, at: String| {
            let name = name?;
            let why = || format!("{at} of the HTTPProxy names the {kind} {own}/{name}, which is not there");
            (made(kind, name) == Some(false)).then(|| Finding::Missing(why()))
        };
        let spec = &proxy.value()["spec"];
        let mut found = Vec::new();
        for (i, route) in items(spec, "routes").enumerate() {
            let services = items(route, "services").enumerate();
            found.extend(services.filter_map(|(j, service)| {
                lacks(Kind::Service, service["name"].as_str(), format!("routes[{i}].services[{j}]"))
            }));
        }
        let includes = items(spec, "includes").enumerate();
        let here = includes.filter(|(_, one)| one["namespace"].as_str().is_none_or(|namespace| namespace == own));
        found
            .extend(here.filter_map(|(i, one)| lacks(Kind::HttpProxy, one["name"].as_str(), format!("includes[{i}]"))));
        found
    }
}
