//! Files of main as people change them: a field by its path, a version by its image.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate::git::Edit;
use tidegate::manifest::files::{Entry, Files, RepoPath};

/// What a repository starts with.
const POLICY: &str = include_str!("base/tidegate.yaml");
const ROLLOUT: &str = include_str!("base/rollout.yaml");
const MANIFESTS: &str = include_str!("base/manifests.yaml");

const NODES: &str = include_str!("base/nodes.rollout.yaml");
const LAYERS: &str = include_str!("base/layers.yaml");

/// Main with some files changed.
pub(crate) struct Main {
    files: Files,
    pub(crate) edits: BTreeMap<RepoPath, Edit>,
}

impl Main {
    pub(crate) fn of(files: Files) -> Self {
        Self { files, edits: BTreeMap::new() }
    }

    fn path(name: &str) -> RepoPath {
        let dir = if ["tidegate.yaml", "fleet.yaml"].contains(&name) { "" } else { "shop/" };
        format!("{dir}{name}").parse().unwrap()
    }

    /// The text of a file.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let path = Self::path(name);
        let bytes = match (self.edits.get(&path), self.files.get(&path)) {
            (Some(Edit::Write(bytes)), _) | (None, Some(Entry::File { bytes, .. })) => bytes.to_vec(),
            _ => return None,
        };
        Some(String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn write(&mut self, name: &str, text: &str) {
        self.edits.insert(Self::path(name), Edit::Write(text.as_bytes().into()));
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<(), String> {
        self.text(name).ok_or_else(|| format!("main has no {name}"))?;
        self.edits.insert(Self::path(name), Edit::Remove);
        Ok(())
    }

    /// Replaces a text in a file, which must have it.
    pub(crate) fn replace(&mut self, name: &str, old: &str, new: &str) -> Result<(), String> {
        let text = self.text(name).ok_or_else(|| format!("main has no {name}"))?;
        if !text.contains(old) {
            return Err(format!("{name} has no {old:?}:\n{text}"));
        }
        self.write(name, &text.replace(old, new));
        Ok(())
    }

    /// Moves the files of an app into a directory.
    pub(crate) fn relocate(&mut self, app: &str, directory: &str) -> Result<(), String> {
        for name in [format!("{app}.rollout.yaml"), format!("{app}.yaml")] {
            let text = self.text(&name).ok_or_else(|| format!("main has no {name}"))?;
            self.write(&format!("{directory}/{name}"), &text);
            self.remove(&name)?;
        }
        Ok(())
    }

    /// The documents of a file.
    fn documents(&self, name: &str) -> Result<Vec<Value>, String> {
        let text = self.text(name).ok_or_else(|| format!("main has no {name}"))?;
        documents(&text)
    }

    fn write_documents(&mut self, name: &str, documents: &[Value]) {
        let texts = documents.iter().map(|document| serde_yaml::to_string(document).unwrap());
        self.write(name, &texts.collect::<Vec<_>>().join("---\n"));
    }

    /// Brings a version of an app to main; an app that is not there with all its files.
    pub(crate) fn release(&mut self, name: &str, version: &str) -> Result<(), String> {
        if self.text("tidegate.yaml").is_none() {
            self.write("tidegate.yaml", POLICY);
        }
        if self.text(&format!("{name}.yaml")).is_none() {
            self.write(&format!("{name}.rollout.yaml"), &ROLLOUT.replace("NAME", name));
            self.write(&format!("{name}.yaml"), &MANIFESTS.replace("NAME", name));
        }
        let file = format!("{name}.yaml");
        let mut documents = self.documents(&file)?;
        let workload = |document: &&mut Value| {
            ["Deployment", "StatefulSet", "DaemonSet"].iter().any(|kind| document["kind"] == *kind)
        };
        for document in documents.iter_mut().filter(workload) {
            let image = format!("{name}:{}", version.replace(' ', "-"));
            document["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
        }
        self.write_documents(&file, &documents);
        Ok(())
    }

    /// Brings a version of the configuration of nodes to main: `VERSION [fails|kills NODE …]`.
    pub(crate) fn configure(&mut self, name: &str, version: &str) -> Result<(), String> {
        if self.text("tidegate.yaml").is_none() {
            self.write("tidegate.yaml", POLICY);
        }
        if self.text(&format!("{name}.rollout.yaml")).is_none() {
            self.write(&format!("{name}.rollout.yaml"), &NODES.replace("NAME", name));
            self.write(&format!("{name}.yaml"), &LAYERS.replace("NAME", name));
        }
        let file = format!("{name}.yaml");
        let mut documents = self.documents(&file)?;
        let (version, fate) = version.split_once(' ').unwrap_or((version, ""));
        let mut files = json!({"version": version});
        if let Some((what, whom)) = fate.split_once(' ') {
            files[what] = whom.into();
        }
        documents[0]["spec"]["files"] = files;
        self.write_documents(&file, &documents);
        Ok(())
    }

    /// Brings a version of an app to main whose objects have names of their own, but for the route.
    pub(crate) fn version(&mut self, name: &str, version: &str) -> Result<(), String> {
        let own = format!("{name}-v{}", version.split(' ').next().unwrap_or_default());
        let rollout = ROLLOUT.replace("name: NAME}\n", &format!("name: {own}, layout: versioned}}\n"));
        let rollout = rollout.replace("service: NAME", &format!("service: {own}")).replace("NAME-canary", &own);
        self.write(&format!("{name}.rollout.yaml"), &rollout.replace("NAME", name));
        let route = "kind: HTTPRoute\nmetadata: {name: ";
        let manifests = MANIFESTS.replace(&format!("{route}NAME"), &format!("{route}{name}"));
        self.write(&format!("{name}.yaml"), &manifests.replace("NAME", &own));
        self.release(name, version)
    }

    /// `[KIND] PATH VALUE`: sets a field, or removes it with the value `none`. Without a path it is the whole document.
    pub(crate) fn edit(&mut self, name: &str, words: &str) -> Result<(), String> {
        let mut documents = self.documents(name)?;
        let (kind, rest) = match words.split_once(' ') {
            Some((kind, rest)) if kind.starts_with(char::is_uppercase) => (Some(kind), rest),
            _ => (None, words),
        };
        let at = documents.iter().position(|document| kind.is_none_or(|kind| document["kind"] == kind));
        let at = at.ok_or_else(|| format!("{name} has no {}", kind.unwrap_or_default()))?;
        if rest == "none" {
            documents.remove(at);
        } else {
            set(&mut documents[at], rest)?;
        }
        self.write_documents(name, &documents);
        Ok(())
    }

    /// Adds a document to a file, which may be new.
    pub(crate) fn add(&mut self, name: &str, document: &str) -> Result<(), String> {
        let mut all = self.text(name).map_or_else(|| Ok(Vec::new()), |text| documents(&text))?;
        all.push(serde_yaml::from_str(document).map_err(|error| error.to_string())?);
        self.write_documents(name, &all);
        Ok(())
    }
}

/// The documents of a text.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, String> {
    let documents = text.split("\n---\n").map(|part| serde_yaml::from_str(part).map_err(|error| error.to_string()));
    documents.collect()
}

/// The manifests of an app at a version, as people apply them by hand.
pub(crate) fn manifests(name: &str, version: &str) -> Vec<Value> {
    let mut main = Main::of(Files::new());
    main.release(name, version).unwrap();
    let mut documents = main.documents(&format!("{name}.yaml")).unwrap();
    documents.iter_mut().for_each(|document| document["metadata"]["namespace"] = "shop".into());
    documents
}

/// `PATH VALUE`: sets a field, or removes it with the value `none`. The path is dotted, or a JSON pointer.
pub(crate) fn set(document: &mut Value, words: &str) -> Result<(), String> {
    let (path, value) = words.split_once(' ').ok_or("a path and a value are needed")?;
    let value: Value = serde_yaml::from_str(value).map_err(|error| error.to_string())?;
    let mut at = document;
    let parts: Vec<String> = match path.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect(),
        None => path.split('.').map(str::to_owned).collect(),
    };
    let (last, parents) = parts.split_last().ok_or("a path is needed")?;
    for part in parents {
        at = match (at, part.parse::<usize>()) {
            (Value::Array(items), Ok(n)) => items.get_mut(n).ok_or_else(|| format!("{path}: there is no item {n}"))?,
            (other, _) => {
                if other.is_null() {
                    *other = json!({});
                }
                other
                    .as_object_mut()
                    .ok_or_else(|| format!("{path}: {part} is below no mapping"))?
                    .entry(part.clone())
                    .or_insert(Value::Null)
            }
        };
    }
    match (at, last.parse::<usize>()) {
        (Value::Array(items), Ok(n)) if n < items.len() => items[n] = value,
        (other, _) => {
            if other.is_null() {
                *other = json!({});
            }
            let fields = other.as_object_mut().ok_or_else(|| format!("{path}: {last} is below no mapping"))?;
            if value == "none" {
                fields.remove(last);
            } else {
                fields.insert(last.clone(), value);
            }
        }
    }
    Ok(())
}
