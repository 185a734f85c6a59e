//! Logging in to a cluster.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use std::path::Path;

/// A client that logs in as a kubeconfig says.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

/// That kubeconfig for who has this token and is at home in that namespace.
pub(crate) fn for_token(kubeconfig: &Path, token: &str, home: &str) -> String {
    let mut config: Value = serde_yaml::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"token": token});
    config["contexts"][0]["context"]["namespace"] = home.into();
    serde_yaml::to_string(&config).unwrap()
}
