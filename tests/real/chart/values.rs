//! Each value of the chart does something.

use super::{RELEASE, Release, all, few, with};
use crate::support::values::{all_leaves, at};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn the_fewest_values_make_this() {
    insta::assert_snapshot!(RELEASE.text(&few()).unwrap());
}

#[test]
fn all_that_can_be_asked_for_makes_this_besides() {
    let text = RELEASE.text(&all()).unwrap();
    let besides = ["networkpolicy", "servicemonitor", "prometheusrule"];
    let parts =
        text.split("---\n# Source: ").filter(|part| besides.iter().any(|name| part.contains(&format!("/{name}.yaml"))));
    insta::assert_snapshot!(parts.collect::<Vec<_>>().join("---\n"));
}

/// A value, what is laid over all values to change it, and what shows it then: a line's text, after a `!` one that is gone.
type Switch = (&'static str, Value, &'static str);

fn switches() -> Vec<Switch> {
    [general(), of_rights(), of_nodes(), of_the_host()].concat()
}

/// A repository behind SSH: the Secret, and the keys in it.
fn ssh(secret: &str, key: &str, hosts: &str) -> Value {
    let ssh = json!({"secretName": secret, "key": key, "knownHostsKey": hosts});
    let url = "ssh://git@git.example.test/acme/shop.git";
    json!({"repository": {"url": url, "credentials": {"secretName": ""}, "ssh": ssh}})
}

/// A controller that is a GitHub App.
pub(super) fn as_app(over: &Value) -> Value {
    let app = with(&json!({"id": "12", "secretName": "apps"}), over);
    json!({"repository": {"credentials": {"secretName": ""}, "forge": {"kind": "github", "token": {"secretName": ""}, "app": app}}})
}

#[rustfmt::skip]
fn of_the_host() -> Vec<Switch> {
    vec![
        ("repository.webhook.secretName", json!({"repository": {"webhook": {"secretName": "other"}}}), "webhookSecretFile: /etc/tidegate/webhook/other/secret"),
        ("repository.webhook.key", json!({"repository": {"webhook": {"key": "line"}}}), "webhookSecretFile: /etc/tidegate/webhook/hook/line"),
        ("repository.webhook.port", json!({"repository": {"webhook": {"port": 9443}}}), "webhook: 0.0.0.0:9443"),
        ("signing.privateKey.secretName", json!({"signing": {"privateKey": {"secretName": "other"}}}), "keyFile: /etc/tidegate/signing/other/ssh-privatekey"),
        ("signing.privateKey.key", json!({"signing": {"privateKey": {"key": "own"}}}), "keyFile: /etc/tidegate/signing/key/own"),
        ("signing.trusted", json!({"signing": {"trusted": ["ssh-ed25519 AAAA before"]}}), "- ssh-ed25519 AAAA before"),
        ("repository.ssh.secretName", ssh("deploy", "ssh-privatekey", "known_hosts"), "keyFile: /etc/tidegate/ssh/deploy/ssh-privatekey"),
        ("repository.ssh.key", ssh("deploy", "identity", "known_hosts"), "keyFile: /etc/tidegate/ssh/deploy/identity"),
        ("repository.ssh.knownHostsKey", ssh("deploy", "ssh-privatekey", "hosts"), "knownHostsFile: /etc/tidegate/ssh/deploy/hosts"),
        ("repository.allowedSigners.secretName", json!({"repository": {"allowedSigners": {"secretName": "signers"}}}), "allowedSignersFile: /etc/tidegate/signers/signers/allowed_signers"),
        ("repository.allowedSigners.configMapName", json!({"repository": {"allowedSigners": {"configMapName": "people"}}}), "allowedSignersFile: /etc/tidegate/signers/people/allowed_signers"),
        ("repository.allowedSigners.key", json!({"repository": {"allowedSigners": {"configMapName": "people", "key": "list"}}}), "allowedSignersFile: /etc/tidegate/signers/people/list"),
        ("repository.keyring.secretName", json!({"repository": {"keyring": {"secretName": "keys"}}}), "keyringFile: /etc/tidegate/keyring/keys/keyring.asc"),
        ("repository.keyring.configMapName", json!({"repository": {"keyring": {"configMapName": "people"}}}), "keyringFile: /etc/tidegate/keyring/people/keyring.asc"),
        ("repository.keyring.key", json!({"repository": {"keyring": {"configMapName": "people", "key": "all"}}}), "keyringFile: /etc/tidegate/keyring/people/all"),
        ("repository.forge.kind", json!({"repository": {"forge": {"kind": "github"}}}), "kind: github"),
        ("repository.forge.url", json!({"repository": {"forge": {"url": "https://api.example.test"}}}), "url: https://api.example.test"),
        ("repository.forge.token.secretName", json!({"repository": {"forge": {"token": {"secretName": "other"}}}}), "tokenFile: /etc/tidegate/forge/other/token"),
        ("repository.forge.token.key", json!({"repository": {"forge": {"token": {"key": "api"}}}}), "tokenFile: /etc/tidegate/forge/bot/api"),
        ("repository.forge.app.id", as_app(&json!({"id": "Iv23li"})), "id: Iv23li"),
        ("repository.forge.app.installation", as_app(&json!({"installation": "789"})), "installation: \"789\""),
        ("repository.forge.app.secretName", as_app(&json!({"secretName": "other"})), "keyFile: /etc/tidegate/app/other/private-key.pem"),
        ("repository.forge.app.key", as_app(&json!({"key": "app.pem"})), "keyFile: /etc/tidegate/app/apps/app.pem"),
        ("repository.forge.repositoryId", json!({"repository": {"forge": {"repositoryId": 1_234_567_890}}}), "repositoryId: 1234567890"),
        ("repository.forge.feedback", json!({"repository": {"forge": {"feedback": false}}}), "feedback: false"),
    ]
}

#[rustfmt::skip]
fn of_rights() -> Vec<Switch> {
    vec![
        ("rbac.create", json!({"rbac": {"create": false}}), "!kind: RoleBinding"),
        ("rbac.clusterIdentity", json!({"rbac": {"clusterIdentity": false}}), "!kind: ClusterRole"),
        ("rbac.lookUpSecrets", json!({"rbac": {"lookUpSecrets": true}}), "resources: [secrets]"),
        ("rbac.copySecrets", json!({"rbac": {"copySecrets": true}}), "verbs: [create, get]"),
    ]
}

/// Nodes that are configured, by a driver of their own.
fn nodes(agent: &Value) -> Value {
    let agent = with(&json!({"driver": "/opt/fabric/driver"}), agent);
    json!({"nodes": {"enabled": true, "namespace": "shop", "agent": agent}})
}

#[rustfmt::skip]
fn of_nodes() -> Vec<Switch> {
    let mut elsewhere = nodes(&json!({}));
    elsewhere["nodes"]["namespace"] = json!("network");
    elsewhere["namespaces"] = json!(["shop", "network"]);
    vec![
        ("nodes.enabled", nodes(&json!({})), "kind: DaemonSet"),
        ("nodes.selector", json!({"nodes": {"enabled": true, "namespace": "shop", "selector": {"matchLabels": {"role": "leaf"}}, "agent": {"files": "/etc/fabric/files"}}}), "role: leaf"),
        ("nodes.namespace", elsewhere, "- --namespace=network"),
        ("nodes.agent.files", nodes(&json!({"driver": "", "files": "/etc/fabric/files"})), "- --files=/etc/fabric/files"),
        ("nodes.agent.driver", nodes(&json!({"driver": "/opt/other/driver"})), "- --driver=/opt/other/driver"),
        ("nodes.agent.capabilities", nodes(&json!({"capabilities": ["NET_ADMIN"]})), "capabilities: {drop: [ALL], add: [NET_ADMIN]}"),
        ("nodes.agent.limit", nodes(&json!({"limit": "5m"})), "- --limit=5m"),
        ("nodes.agent.probes", nodes(&json!({"probes": {"apiServer": true}})), "- --probes=/etc/tidegate/agent/probes.yaml"),
        ("nodes.agent.state", nodes(&json!({"state": "/srv/agent"})), "- --state=/srv/agent"),
        ("nodes.agent.startupTaint", nodes(&json!({"startupTaint": "fresh"})), "- --startup-taint=fresh"),
        ("nodes.agent.nodeSelector", nodes(&json!({"nodeSelector": {"fabric": "leaf"}})), "fabric: leaf"),
        ("nodes.agent.tolerations", nodes(&json!({"tolerations": [{"key": "fabric", "operator": "Exists"}]})), "- key: fabric"),
    ]
}

#[rustfmt::skip]
fn general() -> Vec<Switch> {
    let labels = json!({"team": "delivery"});
    vec![
        ("instance", json!({"instance": "test"}), "name: tide--test"),
        ("repository.url", json!({"repository": {"url": "https://git.example.test/acme/x"}}), "url: https://git.example.test/acme/x"),
        ("repository.branch", json!({"repository": {"branch": "trunk"}}), "branch: trunk"),
        ("repository.poll", json!({"repository": {"poll": "7s"}}), "poll: 7s"),
        ("repository.credentials.secretName", json!({"repository": {"credentials": {"secretName": ""}}}), "!- name: git"),
        ("repository.credentials.key", json!({"repository": {"credentials": {"key": "own"}}}), "items: [{key: own, path: own}]"),
        ("repository.ca.configMapName", json!({"repository": {"ca": {"configMapName": ""}}}), "!- name: ca"),
        ("repository.ca.key", json!({"repository": {"ca": {"key": "root.pem"}}}), "items: [{key: root.pem, path: root.pem}]"),
        ("cluster.name", json!({"cluster": {"name": "far"}}), "far:"),
        ("cluster.kubeconfig.secretName", json!({"cluster": {"kubeconfig": {"secretName": "other"}}}), "secretName: other"),
        ("cluster.kubeconfig.key", json!({"cluster": {"kubeconfig": {"secretName": "other", "key": "config"}}}), "kubeconfigFile: /etc/tidegate/kubeconfig/other/config"),
        ("providers", json!({"providers": {"main": {"prometheus": {"url": "http://metrics.example.test"}}}}), "url: http://metrics.example.test"),
        ("namespaces", json!({"namespaces": ["pay"]}), "namespace: pay"),
        ("kinds", json!({"kinds": ["Deployment"]}), "- Deployment"),
        ("gateways.gloo.namespace", json!({"gateways": {"gloo": {"namespace": "gloo-system"}}}), "namespace: gloo-system"),
        ("gateways.contour.namespace", json!({"gateways": {"contour": {"namespace": "edge"}}}), "namespace: edge"),
        ("extraKinds", json!({"extraKinds": [{"group": "kafka.strimzi.io", "kind": "KafkaTopic", "resource": "kafkatopics"}]}), "resources: [\"kafkatopics\"]"),
        ("image.repository", json!({"image": {"repository": "registry.example.test/x"}}), "image: registry.example.test/x:0.1.0"),
        ("image.tag", json!({"image": {"tag": "9"}}), "image: registry.example.test/tidegate:9"),
        ("image.digest", json!({"image": {"digest": format!("sha256:{}", "0".repeat(64))}}), "image: registry.example.test/tidegate@sha256:0000000000000000000000000000000000000000000000000000000000000000"),
        ("image.pullPolicy", json!({"image": {"pullPolicy": "Always"}}), "imagePullPolicy: Always"),
        ("image.pullSecrets", json!({"image": {"pullSecrets": ["registry"]}}), "- name: registry"),
        ("replicas", json!({"replicas": 3}), "replicas: 3"),
        ("guardUninstall", json!({"guardUninstall": false}), "!helm.sh/hook: pre-delete"),
        ("projection.enabled", json!({"projection": {"enabled": true}}), "resources: [rollouts]"),
        ("resources.requests.cpu", json!({"resources": {"requests": {"cpu": 1}}}), "cpu: \"1\""),
        ("resources.requests.memory", json!({"resources": {"requests": {"memory": "9Mi"}}}), "memory: \"9Mi\""),
        ("resources.limits.cpu", json!({"resources": {"limits": {"cpu": "2"}}}), "cpu: \"2\""),
        ("resources.limits.memory", json!({"resources": {"limits": {"memory": ""}}}), "!memory: \"512Mi\""),
        ("cache.sizeLimit", json!({"cache": {"sizeLimit": "2Gi"}}), "emptyDir: {sizeLimit: 2Gi}"),
        ("log.form", json!({"log": {"form": "text"}}), "- --log=text"),
        ("log.level", json!({"log": {"level": "info,kube=warn"}}), "- --log-level=info,kube=warn"),
        ("runAsUser", json!({"runAsUser": null}), "!runAsUser: 65532"),
        ("priorityClassName", json!({"priorityClassName": "high"}), "priorityClassName: high"),
        ("nodeSelector", json!({"nodeSelector": {"disk": "fast"}}), "disk: fast"),
        ("tolerations", json!({"tolerations": [{"operator": "Exists"}]}), "- operator: Exists"),
        ("topologySpread", json!({"topologySpread": []}), "!topologySpreadConstraints:"),
        ("podLabels", json!({"podLabels": labels}), "team: delivery"),
        ("podAnnotations", json!({"podAnnotations": labels}), "team: delivery"),
        ("serviceAccount.create", json!({"serviceAccount": {"create": false, "name": "mine"}}), "!kind: ServiceAccount"),
        ("serviceAccount.name", json!({"serviceAccount": {"name": "mine"}}), "serviceAccountName: mine"),
        ("service.port", json!({"service": {"port": 9090}}), "- --listen=0.0.0.0:9090"),
        ("service.listen", json!({"service": {"listen": "::"}}), "- --listen=[::]:8080"),
        ("podDisruptionBudget.enabled", json!({"podDisruptionBudget": {"enabled": false}}), "!kind: PodDisruptionBudget"),
        ("networkPolicy.egress", json!({"networkPolicy": {"egress": []}}), "!- Egress"),
        ("networkPolicy.dns", json!({"networkPolicy": {"dns": []}}), "!ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]"),
        ("networkPolicy.ingress", json!({"networkPolicy": {"ingress": []}}), "!name: monitoring"),
        ("networkPolicy.webhook", json!({"networkPolicy": {"webhook": []}}), "!name: forwarders"),
        ("serviceMonitor.enabled", json!({"serviceMonitor": {"enabled": false}, "prometheusRule": {"enabled": false}}), "!kind: ServiceMonitor"),
        ("serviceMonitor.interval", json!({"serviceMonitor": {"interval": "15s"}}), "- {port: http, path: /metrics, interval: 15s}"),
        ("serviceMonitor.labels", json!({"serviceMonitor": {"labels": labels}}), "team: delivery"),
        ("prometheusRule.enabled", json!({"prometheusRule": {"enabled": false}}), "!kind: PrometheusRule"),
        ("prometheusRule.labels", json!({"prometheusRule": {"labels": labels}}), "team: delivery"),
        ("prometheusRule.silentFor", json!({"prometheusRule": {"silentFor": "1h"}}), "(sum(increase(tidegate_git_requests_total{operation=\"look-up\",job=\"tide--prod\",namespace=\"delivery\"}[1h]))"),
        ("prometheusRule.decisionFor", json!({"prometheusRule": {"decisionFor": "2h"}}), "< time() - 7200"),
        ("dashboard.enabled", json!({"dashboard": {"enabled": false}}), "!grafana_dashboard: \"1\""),
        ("dashboard.labels", json!({"dashboard": {"labels": labels}}), "team: delivery"),
    ]
}

#[test]
fn every_value_does_what_it_says() {
    let before = RELEASE.text(&all()).unwrap();
    // How a text is quoted is another test's matter.
    let bare = |line: &str| line.trim().replace('"', "");
    let has = |text: &str, wanted: &str| text.lines().any(|line| bare(line) == bare(wanted));
    for (path, over, shows) in switches() {
        assert!(at(&over, path).is_some(), "{over} does not set {path}");
        let after = RELEASE.text(&with(&all(), &over)).unwrap_or_else(|why| panic!("{path}: {why}"));
        let (with, without, shows) = match shows.strip_prefix('!') {
            Some(gone) => (&before, &after, gone),
            None => (&after, &before, shows),
        };
        assert!(has(with, shows), "{path}: no line {shows:?} in\n{with}");
        assert!(!has(without, shows), "{path}: a line {shows:?} in\n{without}");
    }
    let switched: BTreeSet<String> = switches().iter().map(|(path, ..)| (*path).to_owned()).collect();
    assert_eq!(all_leaves().into_keys().collect::<BTreeSet<_>>(), switched);
}

/// Values that name as many things as possible by one word.
fn named(word: &str) -> Value {
    let labels = json!({word: word});
    let over = json!({
        "instance": word,
        "repository": {
            "branch": word,
            "credentials": {"secretName": word, "key": word},
            "ca": {"configMapName": word, "key": word},
            "allowedSigners": {"configMapName": word, "key": word},
            "keyring": {"configMapName": word, "key": word},
        },
        "cluster": {"name": word},
        "namespaces": [word],
        "image": {"repository": word, "tag": word, "pullSecrets": [word]},
        "priorityClassName": word,
        "nodeSelector": labels,
        "tolerations": [{"key": word, "value": word}],
        "topologySpread": [word],
        "podLabels": labels,
        "podAnnotations": labels,
        "serviceAccount": {"name": word},
        "serviceMonitor": {"labels": labels},
        "prometheusRule": {"labels": labels},
        "dashboard": {"labels": labels},
    });
    let mut values = with(&all(), &over);
    let credentials = json!({"secretName": word, "key": word});
    let webhook = json!({"url": "http://tester.example.test", "credentials": credentials, "hmacKey": credentials});
    let prometheus = json!({"url": "http://metrics.example.test", "credentials": credentials});
    values["providers"] = json!({word: {"webhook": webhook}, "z": {"prometheus": prometheus}});
    values
}

/// What is made with that word, without the digests of what is in it.
fn made_of(word: &str) -> Value {
    // The namespace looks like a number, too.
    let mut objects = Release { name: "tide", namespace: "404" }.objects(&named(word));
    for object in &mut objects {
        let of_cluster = object["kind"].as_str().is_some_and(|kind| kind.starts_with("Cluster"));
        assert!(object["metadata"]["namespace"].is_string() || of_cluster, "{object}");
        if let Some(annotations) = object.pointer_mut("/spec/template/metadata/annotations") {
            annotations.as_object_mut().unwrap().remove("tidegate.io/installation");
        }
        for text in object.get_mut("data").and_then(Value::as_object_mut).into_iter().flat_map(|data| data.values_mut())
        {
            let lines = text.as_str().unwrap().lines().filter(|line| !line.contains("\"uid\": "));
            *text = serde_yaml::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap();
        }
    }
    objects.into()
}

#[test]
fn a_text_that_looks_like_something_else_stays_a_text() {
    let plain = made_of("plainword").to_string();
    assert!(plain.matches("plainword").count() > 100, "{plain}");
    for word in ["123", "on", "null", "1e3", "0x1f"] {
        let wanted: Value = serde_json::from_str(&plain.replace("plainword", word)).unwrap();
        assert_eq!(made_of(word), wanted, "{word}");
    }
}
