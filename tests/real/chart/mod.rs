//! The Helm chart, rendered and installed by the real Helm.
#![expect(clippy::disallowed_methods, reason = "tests start programs; the rules keep the library itself free of that")]

mod installed;
mod kubelet;
mod lifecycle;
mod odd;
mod pods;
mod refused;
mod rights;
mod series;
mod values;

use crate::support::helm::{Release, chart, helm, run};
use serde_json::{Value, json};

const RELEASE: Release<'static> = Release { name: "tide", namespace: "delivery" };

/// The only object of that kind and name.
fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found = objects.iter().filter(|o| o["kind"] == kind && o["metadata"]["name"] == name);
    let first = found.next().unwrap_or_else(|| panic!("no {kind} {name}"));
    assert!(found.next().is_none(), "two of {kind} {name}");
    first
}

/// The fewest values that the chart takes.
fn few() -> Value {
    json!({
        "instance": "prod",
        "repository": {"url": "https://git.example.test/shop.git"},
        "namespaces": ["shop", "blog"],
        "image": {"repository": "registry.example.test/tidegate"},
    })
}

/// The same with everything made that the chart can make.
fn all() -> Value {
    with(
        &few(),
        &json!({
            "repository": {
                "url": "https://git.example.test/acme/shop.git",
                "credentials": {"secretName": "tidegate-git"},
                "ca": {"configMapName": "authority"},
                "webhook": {"secretName": "hook"},
                "forge": {"kind": "gitea", "token": {"secretName": "bot"}},
            },
            "signing": {"privateKey": {"secretName": "key"}},
            "providers": {
                "main": {"prometheus": {
                    "url": "https://metrics.example.test:9090/prom",
                    "credentials": {"secretName": "metrics", "key": "login"},
                }},
                "tester": {"webhook": {
                    "url": "https://tester.example.test/check",
                    "credentials": {"secretName": "tester", "key": "login"},
                    "hmacKey": {"secretName": "tester", "key": "hmac"},
                }},
            },
            "networkPolicy": {
                "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"port": 443}]}],
                "ingress": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
                "webhook": [{"namespaceSelector": {"matchLabels": {"name": "forwarders"}}}],
            },
            "serviceMonitor": {"enabled": true},
            "prometheusRule": {"enabled": true},
            "dashboard": {"enabled": true},
        }),
    )
}

/// Values with others laid over them.
fn with(values: &Value, over: &Value) -> Value {
    match (values, over) {
        (Value::Object(values), Value::Object(over)) => {
            let mut merged = values.clone();
            for (key, value) in over {
                let under = values.get(key).unwrap_or(&Value::Null);
                merged.insert(key.clone(), with(under, value));
            }
            Value::Object(merged)
        }
        _ => over.clone(),
    }
}
