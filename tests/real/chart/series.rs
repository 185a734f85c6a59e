//! Alerts and the dashboard ask only for what the program counts.

use super::{RELEASE, all, find, with};
use serde_json::{Value, json};
use tidegate::report::metrics::Metrics;

/// A label, and the values that it is compared with.
type Matcher = (String, Vec<String>);

/// What an expression asks of metrics, by their names.
fn asked(expression: &str) -> Vec<(String, Vec<Matcher>)> {
    let starts = expression.match_indices("tidegate_").map(|(at, _)| &expression[at..]);
    let selectors = starts.filter_map(|rest| rest.split_once('{')).filter_map(|(name, rest)| {
        let name_only = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        name_only.then(|| (name.to_owned(), rest.split_once('}').expect("closed").0))
    });
    selectors.map(|(name, labels)| (name, labels.split(',').map(matcher).collect())).collect()
}

fn matcher(text: &str) -> Matcher {
    let (label, values) = text.split_once('"').expect("a value in quotes");
    let values = values.trim_end_matches('"').split('|').map(str::to_owned).collect();
    (label.trim_end_matches(['=', '~', '!']).to_owned(), values)
}

/// What of an expression no process ever counts.
fn unknown(expression: &str) -> Vec<String> {
    let text = Metrics::new().text();
    let mut unknown = Vec::new();
    for (name, labels) in asked(expression) {
        let lines: Vec<&str> =
            text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name.as_str())).collect();
        if lines.is_empty() {
            unknown.push(name.clone());
        }
        // Prometheus adds these two.
        for (label, values) in labels.into_iter().filter(|(label, _)| label != "job" && label != "namespace") {
            let counted = |value: &String| lines.iter().any(|line| line.contains(&format!("{label}=\"{value}\"")));
            unknown
                .extend(values.iter().filter(|value| !counted(value)).map(|value| format!("{name} {label} {value}")));
        }
    }
    unknown
}

fn alerts() -> Vec<Value> {
    let objects = RELEASE.objects(&all());
    let rule = find(&objects, "PrometheusRule", "tide--prod");
    rule["spec"]["groups"][0]["rules"].as_array().unwrap().clone()
}

fn dashboard(objects: &[Value]) -> Value {
    let text = find(objects, "ConfigMap", "tide--prod-dashboard")["data"]["tide--prod.json"].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn alerts_ask_for_what_is_counted() {
    let alerts = alerts();
    assert!(alerts.len() > 8, "{alerts:?}");
    for alert in &alerts {
        let expression = alert["expr"].as_str().unwrap();
        assert!(!asked(expression).is_empty(), "{alert}");
        assert_eq!(unknown(expression), Vec::<String>::new(), "{alert}");
        for (_, labels) in asked(expression) {
            let value =
                |name: &str| labels.iter().find(|(label, _)| label == name).map(|(_, values)| values[0].as_str());
            assert_eq!((value("job"), value("namespace")), (Some("tide--prod"), Some("delivery")), "{alert}");
        }
        assert!(alert["annotations"]["summary"].as_str().unwrap().ends_with('.'), "{alert}");
    }
}

#[test]
fn the_dashboard_asks_for_what_is_counted() {
    let objects = RELEASE.objects(&all());
    let dashboard = dashboard(&objects);
    let panels = dashboard["panels"].as_array().unwrap();
    assert!(panels.len() > 8);
    for panel in panels {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert!(!asked(expression).is_empty(), "{expression}");
            assert_eq!(unknown(expression), Vec::<String>::new(), "{expression}");
        }
    }
    assert!(!dashboard.to_string().contains("RELEASE_"), "{dashboard:#}");
    let other = RELEASE.objects(&with(&all(), &json!({"instance": "test"})));
    let text = find(&other, "ConfigMap", "tide--test-dashboard")["data"]["tide--test.json"].as_str().unwrap();
    let other: Value = serde_json::from_str(text).unwrap();
    assert_ne!(dashboard["uid"], other["uid"], "Grafana takes dashboards of one uid for the same");
}

#[test]
fn every_metric_is_shown() {
    let shown = dashboard(&RELEASE.objects(&all())).to_string();
    let text = Metrics::new().text();
    for name in text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next()) {
        assert!(shown.contains(name), "{name} is in no panel");
    }
}

#[test]
fn the_check_of_expressions_bites() {
    assert_eq!(unknown("sum(tidegate_tick_total{job=\"a\"}) > 0"), ["tidegate_tick_total"]);
    assert_eq!(unknown("tidegate_waiting{reason=~\"Soak|Sleep\"}"), ["tidegate_waiting reason Sleep"]);
    assert_eq!(unknown("tidegate_actions_total{klass=\"retreat\"}"), ["tidegate_actions_total klass retreat"]);
}

#[test]
fn the_monitor_reads_the_port_of_the_service() {
    let objects = RELEASE.objects(&all());
    let (monitor, service) = (find(&objects, "ServiceMonitor", "tide--prod"), find(&objects, "Service", "tide--prod"));
    let endpoint = &monitor["spec"]["endpoints"][0];
    assert_eq!((&endpoint["port"], &endpoint["path"]), (&service["spec"]["ports"][0]["name"], &json!("/metrics")));
    let wanted = monitor["spec"]["selector"]["matchLabels"].as_object().unwrap();
    assert!(wanted.iter().all(|(label, value)| service["metadata"]["labels"][label] == *value));
    let pod = &find(&objects, "Deployment", "tide--prod")["spec"]["template"];
    let selector = service["spec"]["selector"].as_object().unwrap();
    assert!(selector.iter().all(|(label, value)| pod["metadata"]["labels"][label] == *value));
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["ports"][0]["name"], service["spec"]["ports"][0]["targetPort"]);
    let test = find(&objects, "Pod", "tide--prod-test");
    assert!(
        !selector.iter().all(|(label, value)| test["metadata"]["labels"][label] == *value),
        "a pod that serves nothing"
    );
}
