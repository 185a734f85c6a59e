//! Values that Helm renders are values that an API server takes: what the chart lets through is tried there.

use super::{Release, few, with};
use crate::support::cluster::{Bed, api_of};
use kube::Client;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What a person might write, right and wrong, each over values that are right.
fn odd() -> Vec<Value> {
    let amounts = ["", "0", "0.5", "-1", "1e3", "512m", "512Mi", "1.5Gi", "1 Gi", "100k", "12m", "1Q"];
    let labels = ["", "a", "A.b_c-1", "a b", "-a", "a-", "é", &"a".repeat(64)];
    let keys = ["a", "example.test/a", "a/b/c", "/a", "a/", "Example.test/a", "a..b/c", "a b"];
    let names = ["a", "a.b", "a..b", "a-", "A"];
    let images = ["a", "a/b", "h.test:5000/a/b_c", "[2001:db8::1]:5000/a", "h.test/", "h.test/A", "h.test//a", "a b"];
    let times = ["0s", "00h", "1m30s", "24h", "99999999999s", "30"];
    let cidrs = ["192.0.2.0/24", "192.0.2.256/32", "192.0.2.0/33", "192.0.2.0", "2001:db8::/32", "2001:db8::/129"];
    let ports = [json!(0), json!(443), json!(65536), json!("https"), json!("443"), json!("a-name-that-is-too-long")];
    let mut odd = Vec::new();
    for amount in amounts {
        odd.push(json!({"resources": {"requests": {"cpu": amount}}}));
        odd.push(json!({"resources": {"requests": {"memory": amount}}}));
        odd.push(json!({"resources": {"limits": {"cpu": amount}}}));
        odd.push(json!({"cache": {"sizeLimit": amount}}));
    }
    odd.extend(labels.iter().map(|label| json!({"podLabels": {"a": label}})));
    for key in keys {
        odd.extend([json!({"podLabels": {key: "a"}}), json!({"podAnnotations": {key: "a"}})]);
        odd.extend([json!({"nodeSelector": {key: "a"}}), json!({"topologySpread": [key]})]);
        odd.push(json!({"tolerations": [{"key": key, "operator": "Exists"}]}));
    }
    for name in names {
        odd.extend([json!({"serviceAccount": {"create": true, "name": name}}), json!({"priorityClassName": name})]);
        odd.push(json!({"repository": {"credentials": {"secretName": name}}}));
    }
    odd.extend(images.iter().map(|image| json!({"image": {"repository": image}})));
    odd.extend(times.iter().map(|time| json!({"prometheusRule": {"decisionFor": time}})));
    odd.extend(cidrs.iter().map(|cidr| json!({"networkPolicy": {"ingress": [{"ipBlock": {"cidr": cidr}}]}})));
    odd.extend(ports.iter().map(|port| json!({"networkPolicy": {"egress": [{"ports": [{"port": port}]}]}})));
    odd.extend([1, 2_147_483_647, 2_147_483_648_i64].map(|user| json!({"runAsUser": user})));
    odd
}

/// The objects of a rendering, each as Helm prints it.
fn documents(text: &str) -> BTreeSet<String> {
    let written = text.split("\n---").filter(|one| serde_yaml::from_str::<Value>(one).unwrap().is_object());
    written.map(|one| one.trim_start_matches("---").to_owned()).collect()
}

/// What an API server would say to it, unless it takes it: it may know no more and no fewer fields than there are.
async fn refusal(client: &Client, document: &str) -> Option<String> {
    let api = api_of(client, &serde_yaml::from_str(document).unwrap());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let request = kube::core::Request::new(api.resource_url());
    let (mut head, body) = request.create(&dry_run, document.as_bytes().to_vec()).unwrap().into_parts();
    head.uri = format!("{}&fieldValidation=Strict", head.uri).parse().unwrap();
    head.headers.insert("content-type", "application/yaml".parse().unwrap());
    let answer = client.request::<Value>(http::Request::from_parts(head, body)).await;
    answer.err().map(|why| format!("{why}\n{document}"))
}

#[tokio::test]
async fn what_the_chart_renders_an_api_server_takes() {
    let bed = Bed::shared().await;
    let (client, home) = (bed.client().await, bed.namespace("chart-odd").await);
    let values = with(&few(), &json!({"namespaces": [bed.namespace("chart-odd").await]}));
    let release = Release { name: "tide", namespace: &home };
    let mut tried = BTreeSet::new();
    let (mut taken, mut refused, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for over in std::iter::once(json!({})).chain(odd()) {
        let Ok(text) = release.text(&with(&values, &over)) else {
            refused.push(over.to_string());
            continue;
        };
        // Not the priority class, which admission would look up.
        for document in documents(&text).into_iter().filter(|_| over.get("priorityClassName").is_none()) {
            // Most of them are as they were before.
            if tried.insert(document.clone()) {
                wrong.extend(refusal(&client, &document).await.map(|why| format!("{over}: {why}")));
            }
        }
        if over != json!({}) {
            taken.push(over.to_string());
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    insta::assert_snapshot!(format!("taken:\n{}\n\nrefused:\n{}", taken.join("\n"), refused.join("\n")));
}
