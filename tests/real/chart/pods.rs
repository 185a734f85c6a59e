//! What runs: under the restricted profile, with an Installation and arguments that the program takes.

use super::values::as_app;
use super::{RELEASE, all, few, find, with};
use crate::support::origin::Origin;
use serde_json::{Value, json};
use std::process::Command;
use tidegate::manifest::installation::{self, Access, ClusterConfig, Installation, Provider};

/// The pods that the chart makes: those of the Deployment, and the ones of `helm test` and `helm uninstall`.
fn pods(values: &Value) -> Vec<Value> {
    let objects = RELEASE.objects(values);
    let template = |kind: &str, name: &str| find(&objects, kind, name)["spec"]["template"]["spec"].clone();
    let (deployment, uninstall) = (template("Deployment", "tide--prod"), template("Job", "tide--prod-uninstall"));
    vec![deployment, find(&objects, "Pod", "tide--prod-test")["spec"].clone(), uninstall]
}

fn installation_of(values: &Value) -> Installation {
    let objects = RELEASE.objects(values);
    let text = find(&objects, "ConfigMap", "tide--prod")["data"]["installation.yaml"].as_str().unwrap();
    installation::parse(&"installation.yaml".parse().unwrap(), text.as_bytes())
        .unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// The profile `restricted` of Pod Security, field by field, and a root file system that nobody writes to.
fn breaks_of_the_profile(pod: &Value) -> Vec<String> {
    let mut breaks = Vec::new();
    let mut want = |holds: bool, what: &str| {
        if !holds {
            breaks.push(what.to_owned());
        }
    };
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        want(pod[host].is_null(), host);
    }
    want(pod["securityContext"]["runAsNonRoot"] == true, "runAsNonRoot");
    want(pod["securityContext"]["runAsUser"] != 0, "runAsUser");
    want(pod["securityContext"]["seccompProfile"] == json!({"type": "RuntimeDefault"}), "seccompProfile");
    for field in ["sysctls", "seLinuxOptions", "windowsOptions", "appArmorProfile", "supplementalGroups"] {
        want(pod["securityContext"][field].is_null(), field);
    }
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        let kinds = volume.as_object().unwrap().keys().filter(|key| *key != "name");
        for kind in kinds {
            want(["configMap", "emptyDir", "secret"].contains(&kind.as_str()), kind);
        }
    }
    want(pod["initContainers"].is_null() && pod["ephemeralContainers"].is_null(), "other containers");
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        want(context["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation");
        want(context["readOnlyRootFilesystem"] == true, "readOnlyRootFilesystem");
        want(context["capabilities"] == json!({"drop": ["ALL"]}), "capabilities");
        let known = ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"];
        want(context.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "more than these");
        for port in container["ports"].as_array().into_iter().flatten() {
            want(port["hostPort"].is_null(), "hostPort");
        }
        want(container["lifecycle"].is_null(), "lifecycle");
    }
    breaks
}

#[test]
fn all_pods_satisfy_the_restricted_profile() {
    let kubeconfig = with(&all(), &json!({"cluster": {"kubeconfig": {"secretName": "other"}}}));
    let platform = with(&few(), &json!({"runAsUser": null}));
    for values in [few(), all(), kubeconfig, platform] {
        for pod in pods(&values) {
            assert_eq!(breaks_of_the_profile(&pod), Vec::<String>::new(), "{pod:#}");
        }
    }
}

#[test]
fn the_check_of_the_profile_bites() {
    let pod = pods(&few()).remove(0);
    for (over, wanted) in [
        (json!({"hostNetwork": true}), "hostNetwork"),
        (json!({"securityContext": {"runAsUser": 0}}), "runAsUser"),
        (json!({"securityContext": {"runAsNonRoot": null}}), "runAsNonRoot"),
        (json!({"volumes": [{"name": "a", "hostPath": {}}]}), "hostPath"),
    ] {
        assert_eq!(breaks_of_the_profile(&with(&pod, &over)), [wanted]);
    }
    let mut privileged = pod;
    privileged["containers"][0]["securityContext"]["privileged"] = true.into();
    assert_eq!(breaks_of_the_profile(&privileged), ["more than these"]);
}

/// A service mesh that puts a container into every pod would keep those of `helm test` and `helm uninstall` from ending.
#[test]
fn all_pods_have_the_labels_and_annotations_of_the_values() {
    let mark = json!({"mesh.example.test/inject": "false"});
    let objects = RELEASE.objects(&with(&few(), &json!({"podLabels": mark, "podAnnotations": mark})));
    let template = |kind: &str, name: &str| &find(&objects, kind, name)["spec"]["template"]["metadata"];
    let test = &find(&objects, "Pod", "tide--prod-test")["metadata"];
    for metadata in [template("Deployment", "tide--prod"), template("Job", "tide--prod-uninstall"), test] {
        for of in ["labels", "annotations"] {
            assert_eq!(metadata[of]["mesh.example.test/inject"], "false", "{of} in {metadata}");
        }
        assert_eq!(metadata["labels"]["app.kubernetes.io/instance"], "tide--prod");
    }
    assert_eq!(test["annotations"]["helm.sh/hook"], "test");
    let other = RELEASE.text(&with(&few(), &json!({"podAnnotations": {"helm.sh/hook": "pre-install"}}))).unwrap();
    assert_eq!(other.matches("helm.sh/hook: test").count(), 1, "{other}");
}

#[test]
fn the_token_is_mounted_only_where_the_controller_needs_it() {
    let kubeconfig = json!({"cluster": {"kubeconfig": {"secretName": "other"}}});
    for (over, wanted) in [(json!({}), true), (kubeconfig, false)] {
        let mounts: Vec<_> =
            pods(&with(&few(), &over)).iter().map(|pod| pod["automountServiceAccountToken"].clone()).collect();
        assert_eq!(mounts, [json!(wanted), json!(false), json!(false)], "{over}");
    }
}

#[test]
fn what_is_written_is_the_cache_alone() {
    for (pod, writable) in pods(&all()).iter().zip(["cache", "tmp", "tmp"]) {
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let open: Vec<_> = mounts.iter().filter(|mount| mount["readOnly"] != true).map(|m| &m["name"]).collect();
        assert_eq!(open, [writable]);
        // A mount by subPath would never see a Secret that changes.
        assert!(mounts.iter().all(|mount| mount["subPath"].is_null()), "{mounts:?}");
    }
}

#[test]
fn the_installation_is_what_the_values_say() {
    let found = installation_of(&few());
    assert_eq!(found.instance.as_str(), "prod");
    assert_eq!(found.repository.url.as_str(), "https://git.example.test/shop.git");
    assert_eq!((found.repository.branch.as_str(), found.repository.poll.as_secs()), ("main", 30));
    assert_eq!((found.repository.credentials_file, found.repository.forge), (None, None));
    let clusters: Vec<_> = found.clusters.iter().map(|(name, cluster)| (name.as_str(), cluster.clone())).collect();
    assert_eq!(clusters, [("home", ClusterConfig::InCluster)]);
    let names: Vec<_> = found.caps.namespaces().iter().map(|namespace| namespace.as_str()).collect();
    assert_eq!(names, ["blog", "shop"]);
    let other = json!({"cluster": {"name": "far", "kubeconfig": {"secretName": "other", "key": "config"}}});
    let found = installation_of(&with(&all(), &other));
    assert_eq!(found.repository.credentials_file, Some("/etc/tidegate/git/tidegate-git/credentials".into()));
    let clusters: Vec<_> = found.clusters.iter().map(|(name, cluster)| (name.as_str(), cluster.clone())).collect();
    assert_eq!(clusters, [("far", ClusterConfig::Kubeconfig("/etc/tidegate/kubeconfig/other/config".into()))]);
}

/// Whether a file of that path is what a volume of the pod brings: from which Secret or ConfigMap, and which key.
fn source(pod: &Value, path: &str) -> (String, String) {
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let below = |mount: &&Value| path.starts_with(&format!("{}/", mount["mountPath"].as_str().unwrap()));
    let mount = mounts.iter().find(below).unwrap_or_else(|| panic!("nothing is mounted for {path}"));
    let file = &path[mount["mountPath"].as_str().unwrap().len() + 1..];
    let volumes = pod["volumes"].as_array().unwrap();
    let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
    let (from, name) = match volume.get("secret") {
        Some(secret) => (secret, &secret["secretName"]),
        None => (&volume["configMap"], &volume["configMap"]["name"]),
    };
    let items = from["items"].as_array().unwrap();
    let item = items.iter().find(|item| item["path"] == file).unwrap_or_else(|| panic!("{path}: {volume}"));
    (name.as_str().unwrap().to_owned(), item["key"].as_str().unwrap().to_owned())
}

#[test]
fn the_files_that_are_named_are_those_that_are_mounted() {
    let values = with(&all(), &json!({"cluster": {"kubeconfig": {"secretName": "other"}}}));
    let found = installation_of(&values);
    let pods = pods(&values);
    let [pod, test, uninstall] = &pods[..] else { panic!("three pods") };
    let credentials = found.repository.credentials_file.unwrap();
    let secret = ("tidegate-git".to_owned(), "credentials".to_owned());
    assert_eq!(source(pod, credentials.to_str().unwrap()), secret);
    assert_eq!(source(test, credentials.to_str().unwrap()), secret);
    assert_eq!(source(uninstall, credentials.to_str().unwrap()), secret);
    let forge = found.repository.forge.unwrap();
    let Access::Token(token) = forge.access else { panic!("{:?}", forge.access) };
    assert_eq!(source(pod, token.to_str().unwrap()), ("bot".to_owned(), "token".to_owned()));
    assert_eq!(forge.api, "https://git.example.test/api/v1");
    let webhook = found.repository.webhook_secret_file.unwrap();
    assert_eq!(source(pod, webhook.to_str().unwrap()), ("hook".to_owned(), "secret".to_owned()));
    assert_eq!(found.webhook_address, "0.0.0.0:8081");
    for other in [test, uninstall] {
        let more = ["forge", "webhook"].map(|what| format!("/etc/tidegate/{what}"));
        assert!(!more.iter().any(|path| other.to_string().contains(path)), "a secret is where it is not needed");
    }
    let signing = found.signing.unwrap();
    assert_eq!(source(pod, signing.key_file.to_str().unwrap()), ("key".to_owned(), "ssh-privatekey".to_owned()));
    for other in [test, uninstall] {
        assert!(!other.to_string().contains("/etc/tidegate/signing"), "a key is where it is not needed");
    }
    let [Provider::Prometheus(metrics), Provider::Webhook(tester)] = &found.providers.values().collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", found.providers)
    };
    for (file, secret, key) in [
        (&metrics.credentials_file, "metrics", "login"),
        (&tester.credentials_file, "tester", "login"),
        (&tester.hmac_key_file, "tester", "hmac"),
    ] {
        let file = file.as_ref().unwrap().to_str().unwrap();
        assert_eq!(source(pod, file), (secret.to_owned(), key.to_owned()));
    }
    assert_eq!(source(pod, "/etc/tidegate/kubeconfig/other/kubeconfig"), ("other".to_owned(), "kubeconfig".to_owned()));
    for pod in [pod, test, uninstall] {
        let environment = pod["containers"][0]["env"].as_array().unwrap();
        let roots = environment.iter().find(|variable| variable["name"] == "SSL_CERT_FILE").unwrap();
        let found = source(pod, roots["value"].as_str().unwrap());
        assert_eq!(found, ("authority".to_owned(), "ca.crt".to_owned()));
    }
    // Not there yet, it is told of by the controller; a pod that does not start could not.
    let optional = |volume: &Value| volume["secret"].is_null() || volume["secret"]["optional"] == true;
    assert!(pod["volumes"].as_array().unwrap().iter().all(optional));
}

#[test]
fn a_repository_behind_ssh_has_its_files_where_git_is_reached_and_signers_where_they_are_judged() {
    let repository = json!({
        "url": "ssh://git@git.example.test/acme/shop.git",
        "credentials": {"secretName": ""},
        "ssh": {"secretName": "deploy"},
        "allowedSigners": {"configMapName": "people"},
        "keyring": {"secretName": "people"},
    });
    let values = with(&all(), &json!({"repository": repository}));
    let found = installation_of(&values).repository;
    let ssh = found.ssh.unwrap();
    let (key, hosts) = (ssh.key_file.to_str().unwrap(), ssh.known_hosts_file.to_str().unwrap());
    let pods = pods(&values);
    let [pod, test, uninstall] = &pods[..] else { panic!("three pods") };
    for pod in [pod, test, uninstall] {
        assert_eq!(source(pod, key), ("deploy".to_owned(), "ssh-privatekey".to_owned()));
        assert_eq!(source(pod, hosts), ("deploy".to_owned(), "known_hosts".to_owned()));
        assert_eq!(breaks_of_the_profile(pod), Vec::<String>::new(), "{pod:#}");
    }
    for pod in [test, uninstall] {
        let (_, said) = said(pod, &[]);
        assert!(said.contains(&format!("cannot open the private key {key}")), "{said}");
        let lists = ["/etc/tidegate/signers", "/etc/tidegate/keyring"];
        assert!(lists.iter().all(|list| !pod.to_string().contains(list)), "it judges nobody's signature");
    }
    let signers = found.signers_file.unwrap();
    assert_eq!(source(pod, signers.to_str().unwrap()), ("people".to_owned(), "allowed_signers".to_owned()));
    let keyring = found.keyring_file.unwrap();
    assert_eq!(source(pod, keyring.to_str().unwrap()), ("people".to_owned(), "keyring.asc".to_owned()));
    let secret = json!({"repository": {"allowedSigners": {"secretName": "list", "configMapName": "", "key": "k"}}});
    let values = with(&values, &secret);
    let signers = installation_of(&values).repository.signers_file.unwrap();
    assert_eq!(source(&self::pods(&values)[0], signers.to_str().unwrap()), ("list".to_owned(), "k".to_owned()));
}

/// What the program says to the arguments of a pod, some of them replaced.
fn said(pod: &Value, replaced: &[(&str, String)]) -> (Option<i32>, String) {
    let arguments = pod["containers"][0]["args"].as_array().unwrap().iter().map(|argument| {
        let argument = argument.as_str().unwrap();
        match replaced.iter().find(|(name, _)| argument.starts_with(name)) {
            Some((name, value)) => format!("{name}{value}"),
            None => argument.to_owned(),
        }
    });
    let mut program = Command::new(crate::support::PROGRAM);
    program.args(arguments).env_remove("KUBERNETES_SERVICE_HOST");
    let output = program.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_program_takes_the_arguments_and_the_installation() {
    // The signing key is read first, and there is none here.
    let unsigned = json!({"signing": {"privateKey": {"secretName": ""}}});
    let (home, values) = (tempfile::tempdir().unwrap(), with(&all(), &unsigned));
    let objects = RELEASE.objects(&values);
    let text = find(&objects, "ConfigMap", "tide--prod")["data"]["installation.yaml"].as_str().unwrap();
    let file = home.path().join("installation.yaml");
    std::fs::write(&file, text).unwrap();
    let pods = pods(&values);
    let [pod, test, uninstall] = &pods[..] else { panic!("three pods") };
    let cache = home.path().join("cache").display().to_string();
    let (code, text) = said(pod, &[("--config=", file.display().to_string()), ("--cache=", cache)]);
    assert!(text.contains("failed to find the pod's service account"), "{text}");
    assert_eq!(code, Some(1), "a wrong argument would be 2: {text}");
    // The pod of `helm test`, whose repository has no record yet.
    let origin = Origin::init(&home.path().join("shop.git"));
    let credentials = home.path().join("credentials");
    std::fs::write(&credentials, "token\n").unwrap();
    let replaced =
        [("--repo=", origin.path().display().to_string()), ("--credentials-file=", credentials.display().to_string())];
    let (code, text) = said(test, &replaced);
    assert!(text.contains("has no branch tidegate/prod/state"), "{code:?}: {text}");
    assert_ne!(code, Some(0), "no record, no success");
    // Who never wrote a record has no open run, where nothing is declared.
    origin.commit("main", &[("README.md", Some(b"soon"))], "first");
    assert_eq!(said(uninstall, &replaced), (Some(0), String::new()));
}

#[test]
fn what_differs_in_the_installation_starts_other_pods() {
    let mark = |over: Value| {
        let objects = RELEASE.objects(&with(&few(), &over));
        let template = find(&objects, "Deployment", "tide--prod")["spec"]["template"].clone();
        template["metadata"]["annotations"]["tidegate.io/installation"].as_str().unwrap().to_owned()
    };
    assert_ne!(mark(json!({})), mark(json!({"repository": {"poll": "31s"}})));
    assert_eq!(mark(json!({})), mark(json!({"replicas": 1})));
    let forged = json!({"podAnnotations": {"tidegate.io/installation": "x", "a": "b"}});
    assert_eq!(mark(json!({})), mark(forged));
}

#[test]
fn whoever_reads_git_as_a_github_app_has_its_key_and_knows_which_it_is() {
    let values = with(&all(), &as_app(&json!({})));
    let forge = installation_of(&values).repository.forge.unwrap();
    let Access::App(app) = forge.access else { panic!("{:?}", forge.access) };
    assert_eq!((app.id.as_str(), app.installation), ("12", None));
    let key = ("apps".to_owned(), "private-key.pem".to_owned());
    let [pod, others @ ..] = &pods(&values)[..] else { panic!("three pods") };
    assert_eq!(source(pod, app.key_file.to_str().unwrap()), key);
    for other in others {
        assert_eq!(source(other, app.key_file.to_str().unwrap()), key);
        let file = "/etc/tidegate/installation/installation.yaml";
        assert!(other["containers"][0]["args"].as_array().unwrap().contains(&json!(format!("--app-of={file}"))));
        let mounts = other["containers"][0]["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|mount| mount["mountPath"] == "/etc/tidegate/installation"), "{mounts:?}");
    }
    // Behind ssh Git is let in by another key.
    let ssh =
        json!({"repository": {"url": "ssh://git@git.example.test/acme/shop.git", "ssh": {"secretName": "deploy"}}});
    let [pod, others @ ..] = &pods(&with(&values, &ssh))[..] else { panic!("three pods") };
    assert_eq!(source(pod, app.key_file.to_str().unwrap()), key);
    assert!(others.iter().all(|other| !other.to_string().contains("/etc/tidegate/app")));
}

#[test]
fn attack_73_webhooks_have_a_port_of_their_own_where_they_are_heard() {
    let ports = |values: &Value| {
        let objects = RELEASE.objects(values);
        let service = find(&objects, "Service", "tide--prod")["spec"]["ports"].clone();
        let pods = find(&objects, "Deployment", "tide--prod")["spec"]["template"]["spec"].clone();
        let names = |ports: &Value| {
            let ports = ports.as_array().unwrap().iter();
            ports.map(|port| port["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&service), names(&pods["containers"][0]["ports"]));
        names(&service)
    };
    assert_eq!(ports(&few()), ["http"]);
    assert_eq!(ports(&all()), ["http", "webhook"]);
    let over = json!({"service": {"listen": "::"}});
    assert_eq!(installation_of(&with(&all(), &over)).webhook_address, "[::]:8081");
}

/// Who may send to which port, as the NetworkPolicy has it; nobody is named where anybody may.
#[test]
fn who_may_send_webhooks_is_another_list_than_who_may_read_metrics() {
    let let_in = |over: Value| {
        let objects = RELEASE.objects(&with(&all(), &over));
        let rules = find(&objects, "NetworkPolicy", "tide--prod")["spec"]["ingress"].clone();
        let rules = rules.as_array().cloned().unwrap_or_default();
        let rule = |rule: &Value| {
            let from = rule.pointer("/from/0/namespaceSelector/matchLabels/name").cloned();
            (rule["ports"][0]["port"].clone(), from.unwrap_or_default())
        };
        rules.iter().map(rule).collect::<Vec<_>>()
    };
    let rule = |port: &str, from: Value| (json!(port), from);
    let both = [rule("http", json!("monitoring")), rule("webhook", json!("forwarders"))];
    assert_eq!(let_in(json!({})), both);
    let any = let_in(json!({"networkPolicy": {"webhook": []}}));
    assert_eq!(any, [rule("http", json!("monitoring")), rule("webhook", Value::Null)]);
    let any = let_in(json!({"networkPolicy": {"ingress": []}}));
    assert_eq!(any, [rule("http", Value::Null), rule("webhook", json!("forwarders"))]);
    assert_eq!(let_in(json!({"repository": {"webhook": {"secretName": ""}}})), [rule("http", json!("monitoring"))]);
    assert_eq!(let_in(json!({"networkPolicy": {"ingress": [], "webhook": []}})), []);
}
