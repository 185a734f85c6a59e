//! Label selectors: what they select, and how one label value is made another in them.

use crate::manifest::object::{items, items_mut};
use serde_json::{Map, Value};

/// Labels of an object or of a pod template.
pub type PodLabels = Map<String, Value>;

/// Whether a LabelSelector (`matchLabels`, `matchExpressions`) selects these labels. An empty one selects all, `null`
/// selects nothing; so does an operator that Kubernetes does not know.
#[must_use]
pub fn matches(selector: &Value, labels: &PodLabels) -> bool {
    let equal = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)));
    selector.is_object() && equal && items(selector, "matchExpressions").all(|e| holds(e, labels))
}

fn holds(expression: &Value, labels: &PodLabels) -> bool {
    let found = expression["key"].as_str().and_then(|key| labels.get(key));
    let listed = || items(expression, "values").any(|value| Some(value) == found);
    match expression["operator"].as_str() {
        Some("In") => listed(),
        Some("NotIn") => !listed(),
        Some("Exists") => found.is_some(),
        Some("DoesNotExist") => found.is_none(),
        Some(_) | None => false,
    }
}

/// Whether a Service's selector selects these labels. An empty or absent one selects nothing.
#[must_use]
pub fn serves(service_selector: Option<&Value>, labels: &PodLabels) -> bool {
    service_selector
        .and_then(Value::as_object)
        .is_some_and(|map| !map.is_empty() && map.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

/// Makes a LabelSelector that speaks of `key: from` speak of `key: to`. An exclusion of `from` excludes both, since it
/// means "any but our own".
pub(super) fn replace(selector: &mut Value, key: &str, from: &str, to: &str) {
    if let Some(value) = selector.get_mut("matchLabels").and_then(|labels| labels.get_mut(key))
        && value.as_str() == Some(from)
    {
        *value = to.into();
    }
    for expression in items_mut(selector, "matchExpressions").filter(|e| e["key"] == key) {
        let excludes = expression["operator"] == "NotIn";
        let Some(values) = expression.get_mut("values").and_then(Value::as_array_mut) else { continue };
        let Some(at) = values.iter().position(|v| v == from) else { continue };
        if excludes {
            values.push(to.into());
        } else {
            values[at] = to.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn labels() -> PodLabels {
        json!({"app": "web", "tier": "front"}).as_object().cloned().unwrap()
    }

    #[test]
    fn label_selectors_select_as_kubernetes_says() {
        let table = [
            (json!({}), true),
            (json!(null), false),
            (json!({"matchLabels": {"app": "web"}}), true),
            (json!({"matchLabels": {"app": "other"}}), false),
            (json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "web"]}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["web"]}]}), true),
            (json!({"matchExpressions": [{"key": "none", "operator": "Exists"}]}), false),
            (json!({"matchExpressions": [{"key": "none", "operator": "DoesNotExist"}]}), true),
            (json!({"matchExpressions": [{"key": "app", "operator": "Near"}]}), false),
            (
                json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
                false,
            ),
        ];
        for (selector, expected) in table {
            assert_eq!(matches(&selector, &labels()), expected, "{selector}");
        }
    }

    #[test]
    fn a_service_without_selector_serves_no_pods() {
        assert!(!serves(None, &labels()));
        assert!(!serves(Some(&json!({})), &labels()));
        assert!(serves(Some(&json!({"app": "web"})), &labels()));
        assert!(!serves(Some(&json!({"app": "web", "x": "y"})), &labels()));
    }

    #[test]
    fn an_exclusion_excludes_both_names() {
        let mut selector = json!({
            "matchLabels": {"app": "web", "tier": "web"},
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["web", "x"]},
                {"key": "app", "operator": "NotIn", "values": ["web"]},
                {"key": "tier", "operator": "In", "values": ["web"]},
                {"key": "app", "operator": "Exists"},
            ],
        });
        replace(&mut selector, "app", "web", "web-canary");
        let expected = json!({
            "matchLabels": {"app": "web-canary", "tier": "web"},
            "matchExpressions": [
                {"key": "app", "operator": "In", "values": ["web-canary", "x"]},
                {"key": "app", "operator": "NotIn", "values": ["web", "web-canary"]},
                {"key": "tier", "operator": "In", "values": ["web"]},
                {"key": "app", "operator": "Exists"},
            ],
        });
        assert_eq!(selector, expected);
    }
}
