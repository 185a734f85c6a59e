//! Variants: a setting of the target's pods by which those of one do not get along with those of another, such as the flavour of a gateway's router.
//! Both together behind one controller may never become ready, so that a change of it cannot be rolled out pod by pod (requirement V-2).

use super::object::{Object, items};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What tells the variant of the target's pods.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Variant {
    /// The environment variable that says which it is.
    #[schemars(extend("minLength" = 1, "maxLength" = 253))]
    pub env: String,
    /// The container that has it.
    #[schemars(extend("minLength" = 1, "maxLength" = 63))]
    pub container: String,
    /// Which it is where the variable is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("minLength" = 1, "maxLength" = 253))]
    pub default: Option<String>,
    /// Variants that may be side by side: each of these groups among itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 20))]
    pub compatible: Vec<BTreeSet<String>>,
}

/// What a workload says of its variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// This one.
    Is(String),
    /// There is no container of that name.
    NoContainer,
    /// The value comes from elsewhere.
    FromElsewhere,
    /// The variable is not set, and nothing says which it is then.
    Unset,
}

impl Variant {
    /// What the pods of a workload are.
    #[must_use]
    pub fn of(&self, workload: &Object) -> Told {
        let mut containers = workload.at("/spec/template/spec").into_iter().flat_map(|spec| items(spec, "containers"));
        let Some(container) = containers.find(|container| container["name"] == *self.container) else {
            return Told::NoContainer;
        };
        // Of two the last counts, as in Kubernetes.
        match items(container, "env").filter(|one| one["name"] == *self.env).last() {
            None => self.default.clone().map_or(Told::Unset, Told::Is),
            Some(one) if !one["valueFrom"].is_null() => Told::FromElsewhere,
            Some(one) => {
                let value = one["value"].as_str().filter(|value| !value.is_empty()).map(str::to_owned);
                value.or_else(|| self.default.clone()).map_or(Told::Unset, Told::Is)
            }
        }
    }

    /// Whether pods of the two may be side by side.
    #[must_use]
    pub fn gets_along(&self, one: &str, other: &str) -> bool {
        one == other || self.compatible.iter().any(|group| group.contains(one) && group.contains(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::object::{Kind, ObjectRef};
    use serde_json::{Value, json};

    fn told(env: Value, default: Option<&str>) -> Told {
        let variant = Variant {
            env: "FLAVOR".to_owned(),
            container: "proxy".to_owned(),
            default: default.map(str::to_owned),
            compatible: Vec::new(),
        };
        let containers =
            json!([{"name": "other", "env": [{"name": "FLAVOR", "value": "no"}]}, {"name": "proxy", "env": env}]);
        let reference =
            ObjectRef { kind: Kind::Deployment, namespace: "shop".parse().unwrap(), name: "proxy".parse().unwrap() };
        variant.of(&Object::new(reference, json!({"spec": {"template": {"spec": {"containers": containers}}}})))
    }

    #[test]
    fn v_12_what_is_not_set_is_the_default() {
        let is = |name: &str| Told::Is(name.to_owned());
        assert_eq!(told(json!([{"name": "FLAVOR", "value": "expressions"}]), Some("traditional")), is("expressions"));
        assert_eq!(told(json!([{"name": "A", "value": "b"}]), Some("traditional")), is("traditional"));
        assert_eq!(told(json!([{"name": "FLAVOR", "value": ""}]), Some("traditional")), is("traditional"));
        assert_eq!(told(json!([]), None), Told::Unset);
        assert_eq!(told(json!([{"name": "FLAVOR", "valueFrom": {"fieldRef": {}}}]), Some("a")), Told::FromElsewhere);
        let twice = json!([{"name": "FLAVOR", "value": "a"}, {"name": "FLAVOR", "value": "b"}]);
        assert_eq!(told(twice, None), is("b"));
    }

    #[test]
    fn v_2_only_declared_groups_get_along() {
        let variant: Variant = serde_json::from_value(json!({
            "env": "F", "container": "p", "compatible": [["a", "b"], ["b", "c"]],
        }))
        .unwrap();
        assert!(variant.gets_along("a", "b") && variant.gets_along("c", "b") && variant.gets_along("x", "x"));
        assert!(!variant.gets_along("a", "c") && !variant.gets_along("a", "x"));
    }
}
