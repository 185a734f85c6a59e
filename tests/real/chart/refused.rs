//! Values that cannot be meant are refused before anything is made, each with what to set.

use super::{RELEASE, Release, few, with};
use serde_json::{Value, json};
use tidegate::manifest::installation::{check_branch, check_http_url, check_url};

/// What the chart says to values that are laid over the fewest that it takes.
fn refusal(over: &Value) -> String {
    RELEASE.text(&with(&few(), over)).expect_err("refused")
}

#[test]
fn nothing_set_tells_all_that_has_to_be_set() {
    let said = RELEASE.text(&json!({})).unwrap_err();
    for line in [
        "- instance: give this installation a name that no other controller has, such as prod",
        "- repository.url: say where the repository is, such as https://git.example.test/shop.git",
        "- image.repository: say where the image is, such as registry.example.test/tidegate",
        "- namespaces: list the namespaces that rollouts may live in, such as [shop]",
    ] {
        assert!(said.lines().any(|found| found == line), "{line} in\n{said}");
    }
}

#[test]
#[rustfmt::skip]
fn contradictions_say_what_to_set() {
    for (over, wanted) in [
        (json!({"instance": "Prod"}), "instance: \"Prod\" is no name for it"),
        (json!({"instance": "a--b"}), "instance: \"a--b\" is no name for it"),
        (json!({"instance": "x".repeat(31)}), "is no name for it: at most 30"),
        (json!({"repository": {"url": "ssh://git.example.test/a"}}), "repository.ssh.secretName: a repository behind ssh:// needs the Secret"),
        (json!({"repository": {"url": "ssh://git:pa55@git.example.test/a", "ssh": {"secretName": "a"}}}), "repository.url: this cannot be used: it is ssh://git@HOST/PATH"),
        (json!({"repository": {"url": "ssh://git.example.test/a", "ssh": {"secretName": "a"}, "credentials": {"secretName": "b"}}}), "repository.credentials.secretName: leave it out"),
        (json!({"repository": {"ssh": {"secretName": "a"}}}), "repository.ssh.secretName: only a repository behind ssh://git@HOST/PATH has it"),
        (json!({"repository": {"allowedSigners": {"secretName": "a", "configMapName": "b"}}}), "repository.allowedSigners: name a Secret or a ConfigMap"),
        (json!({"repository": {"keyring": {"secretName": "a", "configMapName": "b"}}}), "repository.keyring: name a Secret or a ConfigMap"),
        (json!({"repository": {"url": "git.example.test:a"}}), "repository.url: \"git.example.test:a\" cannot be used"),
        (json!({"repository": {"url": "https://git.example.test/"}}), "cannot be used: it is https://HOST/PATH"),
        (json!({"repository": {"url": "https://git.example.test/a?b"}}), "without '?' and '#'"),
        (json!({"repository": {"url": "https://ana:pa55@git.example.test/a"}}), "repository.url: leave user and password out of it and name a Secret"),
        (json!({"repository": {"url": "https://git.example.test/a\u{200b}"}}), "cannot be used: it is https://HOST/PATH"),
        (json!({"repository": {"url": "git@git.example.test:a/b.git"}}), "is for ssh: write it as ssh://git@HOST/PATH"),
        (json!({"repository": {"branch": "refs/heads/main"}}), "repository.branch: \"refs/heads/main\" is no name of a branch"),
        (json!({"kinds": ["Service"]}), "kinds: without Deployment, StatefulSet or DaemonSet there is nothing to roll out"),
        (json!({"namespaces": ["kube-system"]}), "namespaces: kube-system is the cluster's own"),
        (json!({"resources": {"requests": {"memory": "1Mi"}, "limits": {"memory": "10Mi"}}}), "resources.limits.memory: \"10Mi\" is too small"),
        (json!({"tolerations": [{"effect": "NoSchedule"}]}), "tolerations[0]: without a key it is for all taints, and needs operator: Exists"),
        (json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}), "tolerations[0].value: operator Exists takes no value"),
        (json!({"tolerations": [{"key": "a", "tolerationSeconds": 9}]}), "tolerations[0].tolerationSeconds: only with effect: NoExecute"),
        (json!({"networkPolicy": {"egress": [{"ports": [{"port": 443, "endPort": 80}]}]}}), "networkPolicy.egress[0].ports[0].endPort: 80 is below port 443"),
        (json!({"networkPolicy": {"egress": [{"ports": [{"endPort": 80}]}]}}), "endPort: a range begins at a port"),
        (json!({"prometheusRule": {"enabled": true}, "serviceMonitor": {"enabled": true, "interval": "5m"}}), "serviceMonitor.interval: 5m is too long for the alerts"),
        (json!({"prometheusRule": {"enabled": true}, "serviceMonitor": {"enabled": true}, "repository": {"poll": "08m"}}), "prometheusRule.silentFor: 5m is not longer than repository.poll (08m)"),
        (json!({"repository": {"webhook": {"secretName": "hook", "port": 8080}}}), "repository.webhook.port: 8080 is service.port, where metrics and health are"),
        (json!({"repository": {"branch": "a..b"}}), "repository.branch: \"a..b\" is no name of a branch"),
        (json!({"repository": {"branch": "-a"}}), "repository.branch: \"-a\" is no name of a branch"),
        (json!({"repository": {"branch": "a.lock"}}), "repository.branch: \"a.lock\" is no name of a branch"),
        (json!({"repository": {"poll": "soon"}}), "repository.poll: \"soon\" is no time"),
        (json!({"repository": {"poll": ""}}), "repository.poll: \"\" is no time"),
        (json!({"image": {"repository": "registry.example.test/tidegate:1"}}), "leave tag and digest out of it and set image.tag"),
        (json!({"image": {"repository": "registry.example.test/tidegate@sha256:0"}}), "set image.tag or image.digest"),
        (json!({"namespaces": ["shop", "delivery"]}), "namespaces: delivery is the release's own"),
        (json!({"serviceAccount": {"create": false}}), "serviceAccount.name: name the ServiceAccount that is there already"),
        (json!({"prometheusRule": {"enabled": true}}), "prometheusRule.enabled: set serviceMonitor.enabled=true too"),
        (json!({"prometheusRule": {"enabled": true}, "serviceMonitor": {"enabled": true}, "replicas": 0}), "set it to false where replicas=0"),
        (json!({"repository": {"url": "https://git.example.test:65536/a"}}), "cannot be used: it is https://HOST/PATH"),
        (json!({"providers": {"main": {"prometheus": {"url": "http://metrics.example.test:99999"}}}}), "providers.main.prometheus.url: this cannot be used"),
        (json!({"providers": {"tester": {"webhook": {"url": "https://ana:pa55@tester.example.test"}}}}), "providers.tester.webhook.url: this cannot be used"),
        (json!({"image": {"repository": "registry.example.test/"}}), "image.repository: \"registry.example.test/\" is no name of an image"),
        (json!({"resources": {"requests": {"memory": "1Gi"}}}), "resources.requests.memory: 1Gi is more than resources.limits.memory (512Mi)"),
        (json!({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}}), "resources.requests.cpu: 2 is more than resources.limits.cpu (1500m)"),
        (json!({"cache": {"sizeLimit": "100Mi"}}), "cache.sizeLimit: \"100Mi\" is too small: a fetch alone may take 256Mi"),
        (json!({"prometheusRule": {"decisionFor": "0h"}}), "prometheusRule.decisionFor: \"0h\" is no time"),
        (json!({"serviceMonitor": {"interval": "0s"}}), "serviceMonitor.interval: \"0s\" is no time"),
        (json!({"replicas": 0, "cluster": {"kubeconfig": {"secretName": "far"}}}), "replicas: 0 makes rights alone, and with cluster.kubeconfig"),
    ] {
        says_what_to_set(&over, wanted);
    }
}

#[test]
#[rustfmt::skip]
fn contradictions_about_the_git_host_say_what_to_set() {
    for (over, wanted) in [
        (json!({"repository": {"url": "https://git.example.test/a/b", "forge": {"kind": "gitea"}}}), "repository.forge.token.secretName: gitea needs the Secret"),
        (json!({"repository": {"forge": {"kind": "gitea", "token": {"secretName": "bot"}}}}), "repository.url: with gitea it ends with the repository's owner and name"),
        (json!({"repository": {"forge": {"token": {"secretName": "bot"}}}}), "repository.forge.kind: with branch no API is asked"),
        (json!({"repository": {"url": "https://git.example.test/a/b", "forge": {"kind": "github", "url": "https://me:pa55@git.example.test", "token": {"secretName": "bot"}}}}), "repository.forge.url: this cannot be used"),
        (json!({"repository": {"forge": {"kind": "bitbucket"}}}), "gitlab"),
        (json!({"repository": {"url": "https://git.example.test/a/b", "forge": {"kind": "github", "token": {"secretName": "bot"}, "app": {"id": "1", "secretName": "app"}}}}), "a token or that of an App, not both"),
        (json!({"repository": {"url": "https://git.example.test/a/b", "forge": {"kind": "gitea", "app": {"id": "1", "secretName": "app"}}}}), "only github has Apps"),
        (json!({"repository": {"url": "https://git.example.test/a/b", "forge": {"kind": "github", "app": {"secretName": "app"}}}}), "repository.forge.app.id: which App is it?"),
        (json!({"repository": {"forge": {"app": {"id": "1"}}}}), "repository.forge.app.secretName: name the Secret with the private key"),
        (json!({"repository": {"url": "https://git.example.test/a/b", "credentials": {"secretName": "git"}, "forge": {"kind": "github", "app": {"id": "1", "secretName": "app"}}}}), "repository.credentials.secretName: leave it out"),
        (json!({"repository": {"forge": {"app": {"id": 1}}}}), "id"),
        (json!({"repository": {"url": "https://git.example.test/a", "forge": {"kind": "gitlab", "token": {"secretName": "bot"}}}}), "repository.url: with gitlab it ends with"),
    ] {
        says_what_to_set(&over, wanted);
    }
}

fn says_what_to_set(over: &Value, wanted: &str) {
    let said = refusal(over);
    assert!(said.contains(wanted), "{over}: {wanted} in\n{said}");
    assert_eq!(said.lines().filter(|line| line.starts_with("- ")).count(), 1, "{over}: one mistake, one item\n{said}");
    assert!(!said.contains("pa55"), "a password is not repeated: {said}");
}

#[test]
#[rustfmt::skip]
fn typos_and_wrong_types_fail_with_their_path() {
    for (over, wanted) in [
        (json!({"instnce": "prod"}), "at '': additional properties 'instnce' not allowed"),
        (json!({"repository": {"credential": {}}}), "at '/repository': additional properties 'credential' not allowed"),
        (json!({"cluster": {"kubeconfig": {"secret": "a"}}}), "at '/cluster/kubeconfig': additional properties 'secret' not allowed"),
        (json!({"networkPolicy": {"egress": [{"too": []}]}}), "at '/networkPolicy/egress/0': additional properties 'too' not allowed"),
        (json!({"resources": {"limits": {"gpu": 1}}}), "at '/resources/limits': additional properties 'gpu' not allowed"),
        (json!({"tolerations": [{"effekt": "NoExecute"}]}), "at '/tolerations/0': additional properties 'effekt' not allowed"),
        (json!({"namespaces": "shop"}), "at '/namespaces': got string, want array"),
        (json!({"namespaces": ["shop", "shop"]}), "at '/namespaces': items at 0 and 1 are equal"),
        (json!({"namespaces": ["Shop"]}), "at '/namespaces/0': 'Shop' does not match pattern"),
        (json!({"kinds": ["Secret"]}), "at '/kinds/0': value must be one of 'ConfigMap'"),
        (json!({"topologySpread": ["a\nx: y"]}), "at '/topologySpread/0': 'a\\nx: y' does not match pattern"),
        (json!({"image": {"repository": "reg/x\nfoo"}}), "at '/image/repository': 'reg/x\\nfoo' does not match pattern"),
        (json!({"repository": null}), "at '': missing property 'repository'"),
        (json!({"log": {"form": null}}), "at '/log': missing property 'form'"),
        (json!({"replicas": "2"}), "at '/replicas': got string, want integer"),
        (json!({"replicas": -1}), "at '/replicas': minimum: got -1, want 0"),
        (json!({"runAsUser": 0}), "at '/runAsUser': minimum: got 0, want 1"),
        (json!({"image": {"pullPolicy": "always"}}), "at '/image/pullPolicy': value must be one of 'Always'"),
        (json!({"image": {"digest": "sha256:0"}}), "at '/image/digest': 'sha256:0' does not match pattern"),
        (json!({"log": {"form": "xml"}}), "at '/log/form': value must be one of 'json', 'text'"),
        (json!({"service": {"listen": "localhost:8080"}}), "at '/service/listen': value must be one of '0.0.0.0', '::'"),
        (json!({"repository": {"credentials": {"key": ".."}}}), "at '/repository/credentials/key': '..' does not match pattern"),
        (json!({"networkPolicy": {"egress": [{"to": [{}]}]}}), "at '/networkPolicy/egress/0/to/0': minProperties: got 0, want 1"),
        (json!({"service": {"port": 80}}), "at '/service/port': minimum: got 80, want 1,024"),
        (json!({"rbac": {"create": "yes"}}), "at '/rbac/create': got string, want boolean"),
    ] {
        let said = refusal(&over);
        assert!(said.contains(wanted), "{over}: {wanted} in\n{said}");
    }
}

#[test]
fn names_of_releases_that_could_be_mistaken_are_refused() {
    for (name, wanted) in [
        ("a--b", "the release's name \"a--b\": choose one of lower-case letters, digits and single '-'"),
        ("a.b", "the release's name \"a.b\": choose one"),
        ("1a", "the release's name \"1a\": choose one"),
        ("a-release-whose-name-is-as-long-as-helm-allows-it-53", "shorten one of them"),
    ] {
        let long = json!({"instance": "an-instance"});
        let said = Release { name, namespace: "delivery" }.text(&with(&few(), &long)).expect_err("refused");
        assert!(said.contains(wanted), "{name}: {wanted} in\n{said}");
    }
}

/// Whether the chart takes none of it.
fn refuses(over: &Value) -> bool {
    RELEASE.text(&with(&few(), over)).is_err()
}

#[test]
fn branches_that_are_refused_are_those_that_the_program_refuses() {
    for branch in [
        "main",
        "tidegate/prod/state",
        "release/1.2",
        "a+b",
        "_a",
        "a..b",
        "a/.b",
        "a//b",
        "/a",
        "a/",
        "a.",
        "a b",
        "a.lock/b",
        "refs/heads/main",
        "HEAD",
        "é",
        "-",
    ] {
        let refused = refuses(&json!({"repository": {"branch": branch}}));
        assert_eq!(refused, check_branch(branch).is_err(), "{branch:?}");
    }
}

#[test]
fn providers_that_are_refused_are_those_that_the_program_refuses() {
    for url in [
        "http://p",
        "http://p.1",
        "http://10.0.0.256",
        "http://p/\u{a0}",
        "http://p:9090/",
        "http://p/a%20b",
        "https://p/@team",
        "http://p:99999",
        "http://p:a",
        "http://[x",
    ] {
        for kind in ["prometheus", "webhook"] {
            let refused = refuses(&json!({"providers": {"main": {kind: {"url": url}}}}));
            assert_eq!(refused, check_http_url(url).is_err(), "{kind}: {url:?}");
        }
    }
}

#[test]
fn repositories_that_are_refused_are_those_that_the_program_refuses() {
    for url in [
        "https://git.example.test:12ab/a",
        "https://10.0.0.256/a",
        "https://10.0.0.25/a",
        "https://git.123/a",
        "https://1git.a1/a",
        "https://git.example.test/@team/a",
        "https://git.example.test/a.git",
        "http://192.0.2.1:3000/a/b",
        "http://[2001:db8::1]/a",
        "https://git.example.test",
        "https://git.example.test/",
        "https://git.example.test/-a",
        "https://-git.example.test/a",
        "https://git.example.test/a#b",
        "https://git.example.test/a b",
        "https://git.example.test:0443/a",
        "https://git.example.test:65535/a",
        "https://git.example.test:65536/a",
        "https://git.example.test:99999999999999999999/a",
        "https://git.example.test/a:99999/b",
        "ftp://git.example.test/a",
        "file:///a",
        "a",
        "ssh://git.example.test/a.git",
        "ssh://git@git.example.test:2222/acme/a.git/",
        "ssh://git@git.example.test/~ana/.a/..b/@c",
        "ssh://git@[2001:db8::1]:22/a",
        "ssh://git:pa55@git.example.test/a",
        "ssh://-oProxyCommand=id/a",
        "ssh://-a@git.example.test/a",
        "ssh://git@git.example.test:65536/a",
        "ssh://git@git.example.test/-a",
        "ssh://git@git.example.test/a/-b",
        "ssh://git@git.example.test/a/../b",
        "ssh://git@git.example.test/./b",
        "ssh://git@git.example.test//a",
        "ssh://git@git.example.test/a b",
        "ssh://git@git.example.test/a'b",
        "ssh://git@git.example.test/a%20b",
        "ssh://git@git.example.test/a?b",
        "ssh://git@git.example.test",
        "ssh://git@git.example.test/",
        "ssh:///a",
    ] {
        let secret = if url.starts_with("ssh://") { "key" } else { "" };
        let refused = refuses(&json!({"repository": {"url": url, "ssh": {"secretName": secret}}}));
        assert_eq!(refused, check_url(url).is_err(), "{url:?}");
    }
}
