//! The program as a person runs it, and a repository for it.

use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

/// What a program printed, and how it ended.
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Said {
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> String {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self.out
    }

    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.ends(0)).unwrap()
    }
}

/// Runs a program without a terminal, with the settings of a person who lives there.
pub(crate) async fn spawn(home: &Path, command: &mut Command) -> Said {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Said { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap() }
}

/// The example repository's rollout of podinfo, in that namespace, with short times.
pub(crate) fn example(namespace: &str) -> Vec<(String, String)> {
    let policy = "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  tenants:\n    shop: {path: teams/shop, \
                  namespaces: [NAMESPACE], clusters: [home]}\n";
    let rollout = "apiVersion: tidegate.io/v1alpha1\nkind: Rollout\nmetadata: {name: podinfo, namespace: NAMESPACE}\nspec:\n  \
                   manifests: [podinfo.yaml]\n  target: {kind: Deployment, name: podinfo}\n  \
                   traffic: {gatewayAPI: {httpRoute: podinfo, service: podinfo}, settle: 0s, drain: 0s}\n  phases:\n  \
                   - name: tenth\n    before: {approval: pullRequest}\n    expose: {weight: 10}\n    soak: 1s\n  \
                   promotion: {bake: 1s}\n  onFailure: {revert: none}\n";
    vec![
        ("tidegate.yaml".to_owned(), policy.replace("NAMESPACE", namespace)),
        ("teams/shop/podinfo/rollout.yaml".to_owned(), rollout.replace("NAMESPACE", namespace)),
        ("teams/shop/podinfo/podinfo.yaml".to_owned(), manifest()),
    ]
}

/// The example repository's manifests of podinfo: they name no namespace.
pub(crate) fn manifest() -> String {
    let path = super::root::root().join("examples-repo/teams/shop/podinfo/podinfo.yaml");
    std::fs::read_to_string(path).unwrap()
}
