//! What the bed's fake kubelets do not do: run the commands of the chart's pods. A test does it itself, on this machine, with a
//! pod's arguments, environment, mounted Secrets and ConfigMaps, and its ServiceAccount's token. The image is not used: the
//! program is the one that was built for the tests.

use crate::support::cluster::{Bed, for_token};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// The pods of one release's own namespace.
pub(super) struct Kubelet<'a> {
    bed: &'a Bed,
    client: &'a Client,
    home: &'a str,
    /// What a pod sees as its root, for each pod.
    roots: tempfile::TempDir,
}

impl Drop for Kubelet<'_> {
    /// What the containers of a test that fails have said is part of its story.
    fn drop(&mut self) {
        for pod in std::fs::read_dir(self.roots.path()).into_iter().flatten().flatten() {
            if std::thread::panicking() {
                let log = std::fs::read_to_string(pod.path().join("log")).unwrap_or_default();
                eprintln!("log of {}:\n{log}", pod.file_name().display());
            }
        }
    }
}

/// A container that was started.
pub(super) struct Container {
    child: Child,
    log: PathBuf,
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) output: String,
}

impl<'a> Kubelet<'a> {
    pub(super) fn new(bed: &'a Bed, client: &'a Client, home: &'a str) -> Self {
        Self { bed, client, home, roots: tempfile::tempdir().unwrap() }
    }

    async fn get(&self, what: &str, name: &str) -> Value {
        let found = self.bed.kubectl(&["-n", self.home, "get", what, name, "-o", "json"], "").await;
        serde_json::from_str(&found).unwrap()
    }

    /// Starts the container of a pod.
    async fn start(&self, name: &str, spec: &Value) -> Container {
        let root = self.roots.path().join(name);
        for volume in spec["volumes"].as_array().unwrap() {
            self.mount(spec, volume, &root).await;
        }
        let container = &spec["containers"][0];
        if spec["automountServiceAccountToken"] == true {
            self.log_in(spec, &root).await;
        }
        let inside = |text: &str| {
            let (option, value) = text.split_once('=').map_or(("", text), |(option, value)| (option, value));
            let value = if value.starts_with('/') { format!("{}{value}", root.display()) } else { value.to_owned() };
            if option.is_empty() { value } else { format!("{option}={value}") }
        };
        let mut command = Command::new(crate::support::PROGRAM);
        for argument in container["args"].as_array().unwrap() {
            let argument = inside(argument.as_str().unwrap());
            // Pods have an address each; here they have one machine.
            command.arg(if argument.starts_with("--listen=") { "--listen=127.0.0.1:0" } else { &argument });
        }
        for variable in container["env"].as_array().unwrap() {
            let value = variable["value"].as_str().map_or_else(
                || {
                    assert_eq!(variable["valueFrom"]["fieldRef"]["fieldPath"], "metadata.name");
                    name.to_owned()
                },
                inside,
            );
            command.env(variable["name"].as_str().unwrap(), value);
        }
        let log = root.join("log");
        let file = std::fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file).kill_on_drop(true);
        Container { child: command.spawn().unwrap(), log }
    }

    /// Makes the files of a volume where a container finds them.
    async fn mount(&self, spec: &Value, volume: &Value, root: &Path) {
        let mounts = spec["containers"][0]["volumeMounts"].as_array().unwrap();
        let mount = mounts.iter().find(|mount| mount["name"] == volume["name"]).unwrap();
        let at = PathBuf::from(format!("{}{}", root.display(), mount["mountPath"].as_str().unwrap()));
        std::fs::create_dir_all(&at).unwrap();
        if let Some(secret) = volume.get("secret") {
            let name = secret["secretName"].as_str().unwrap();
            let found = Api::<Secret>::namespaced(self.client.clone(), self.home).get_opt(name).await.unwrap();
            assert!(found.is_some() || secret["optional"] == true, "no Secret {name}");
            let data = found.and_then(|found| found.data).unwrap_or_default();
            for item in secret["items"].as_array().unwrap().iter().filter(|_| !data.is_empty()) {
                let bytes = &data[item["key"].as_str().unwrap()].0;
                std::fs::write(at.join(item["path"].as_str().unwrap()), bytes).unwrap();
            }
        } else if let Some(map) = volume.get("configMap") {
            let found = self.get("configmap", map["name"].as_str().unwrap()).await;
            for (key, text) in found["data"].as_object().unwrap() {
                // What its files name is below the same root.
                let text = text.as_str().unwrap().replace(": /etc/", &format!(": {}/etc/", root.display()));
                let text = text.replace(": 0.0.0.0:8081", ": 127.0.0.1:0");
                std::fs::write(at.join(key), text).unwrap();
            }
        } else {
            assert!(volume.get("emptyDir").is_some(), "{volume}");
        }
    }

    /// Where the API server is and who asks: in a pod that is at a fixed place, which this machine has for nobody.
    async fn log_in(&self, spec: &Value, root: &Path) {
        let account = spec["serviceAccountName"].as_str().unwrap();
        let token = self.bed.kubectl(&["-n", self.home, "create", "token", account], "").await;
        let file = root.join("kubeconfig");
        std::fs::write(&file, for_token(&self.bed.kubeconfig(), token.trim(), self.home)).unwrap();
        let installation = root.join("etc/tidegate/installation/installation.yaml");
        let text = std::fs::read_to_string(&installation).unwrap();
        assert!(text.contains("inCluster: {}"), "{text}");
        let text = text.replace("inCluster: {}", &format!("kubeconfigFile: {}", file.display()));
        std::fs::write(installation, text).unwrap();
    }

    /// Starts the controller of a Deployment, as one of its pods would.
    pub(super) async fn controller(&self, deployment: &str, pod: &str) -> Container {
        let deployment = self.get("deployment", deployment).await;
        self.start(pod, &deployment["spec"]["template"]["spec"]).await
    }

    /// Runs each pod of that kind (`test`, `uninstall`) as it appears, and tells the API server how it ended, for as long as
    /// `work` goes on. What `work` came to, and the pods.
    pub(super) async fn running<T>(&self, kind: &str, work: impl Future<Output = T>) -> (T, Vec<Ended>) {
        let mut ended = Vec::new();
        let pods = async {
            loop {
                self.run_next(kind, &mut ended).await;
            }
        };
        let done = tokio::select! {
            done = work => done,
            () = pods => unreachable!("it never ends"),
        };
        (done, ended)
    }

    /// How it ended is known here before the API server hears of it: what waits for the pod may be done while it is told.
    async fn run_next(&self, kind: &str, ended: &mut Vec<Ended>) {
        let of_kind = ListParams::default().labels(&format!("app.kubernetes.io/name=tidegate-{kind}"));
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.home);
        let waits = |pod: &Pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Pending"));
        // Whoever asks for it waits for its end with patience of its own.
        let pod = loop {
            if let Some(pod) = pods.list(&of_kind).await.unwrap().into_iter().find(waits) {
                break pod;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        let name = pod.name_any();
        let spec = serde_json::to_value(&pod.spec).unwrap();
        let mut container = self.start(&name, &spec).await;
        let code = container.child.wait().await.unwrap().code();
        let output = container.log();
        let now = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
        let terminated = json!({
            "exitCode": code, "reason": "Completed", "message": output, "startedAt": now, "finishedAt": now,
        });
        let container = &spec["containers"][0];
        let phase = if code == Some(0) { "Succeeded" } else { "Failed" };
        let status = json!({"status": {"phase": phase, "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "", "ready": false, "restartCount": 0,
            "state": {"terminated": terminated},
        }]}});
        ended.push(Ended { code, output });
        pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status)).await.unwrap();
    }
}

impl Container {
    /// What it has said so far.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Ends it as a node does, and waits for its end.
    pub(super) async fn terminate(mut self) {
        let pid = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").arg(&pid).status().await.unwrap().success());
        let status = self.child.wait().await.unwrap();
        assert!(status.success(), "{status}\n{}", self.log());
    }
}
