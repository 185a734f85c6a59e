//! The Helm chart, rendered and installed by the real Helm.
#![expect(clippy::disallowed_methods, reason = "tests start programs; the rules keep the library itself free of that")]

mod installed;
mod kubelet;
mod lifecycle;
mod pods;
mod refused;
mod rights;
mod series;
mod values;

use crate::support::cluster::program;
use crate::tree::source_dir;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Where the chart lies.
fn chart() -> PathBuf {
    source_dir().join("charts/tidegate")
}

/// Helm as the test bed's script has built it, without any settings of the machine.
fn helm() -> Command {
    static BUILT: OnceLock<bool> = OnceLock::new();
    let build = source_dir().join("tests/testbed/build");
    let built = BUILT.get_or_init(|| Command::new(&build).status().is_ok_and(|status| status.success()));
    assert!(*built, "there is no Helm: run {} and see what it lacks", build.display());
    let mut helm = Command::new(program("helm"));
    let settings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helm");
    helm.env_clear().env("HOME", &settings).env("KUBECONFIG", "/dev/null");
    helm
}

/// Runs it with these values, if it takes any; what it printed, or its complaint.
fn run(mut helm: Command, values: Option<&Value>) -> Result<String, String> {
    if values.is_some() {
        helm.args(["--values", "-"]);
    }
    helm.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = helm.spawn().unwrap();
    let text = values.map(Value::to_string).unwrap_or_default();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// A release as `helm template` is told of it.
struct Release<'a> {
    name: &'a str,
    namespace: &'a str,
}

const RELEASE: Release<'static> = Release { name: "tide", namespace: "delivery" };

impl Release<'_> {
    /// What the chart makes of these values, as Helm prints it; its complaint if it refuses.
    fn text(&self, values: &Value) -> Result<String, String> {
        let mut helm = helm();
        helm.args(["template", self.name]).arg(chart()).args(["--namespace", self.namespace]);
        run(helm, Some(values))
    }

    /// The objects that the chart makes of these values, those of `helm test` too.
    fn objects(&self, values: &Value) -> Vec<Value> {
        let text = self.text(values).unwrap_or_else(|why| panic!("{why}"));
        let documents = serde_yaml::Deserializer::from_str(&text).map(|one| Value::deserialize(one).unwrap());
        documents.filter(|one| !one.is_null()).collect()
    }
}

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
            "repository": {"credentials": {"secretName": "tidegate-git"}, "ca": {"configMapName": "authority"}},
            "networkPolicy": {
                "egress": [{"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"port": 443}]}],
                "ingress": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
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
