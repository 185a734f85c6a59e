//! What is stored, and what happened to it. Pure.
//!
//! Objects are shared, not copied: a store of ten thousand is cloned for the price of some counters, and a clone that is
//! written to copies only the one collection that it changes, and of that only the references.

use super::resource::Resource;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use tidegate_controller::manifest::object;

/// How many changes of a collection are remembered; whoever is further behind gets 410.
const HISTORY: usize = 4_096;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened {
    /// It was created.
    Added,
    /// It was changed.
    Modified,
    /// It was deleted.
    Deleted,
}

/// One change of one object.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) happened: Happened,
    pub(super) key: Arc<str>,
    /// The object as it is since; as it was last, with the version of its deletion, if it was deleted.
    pub(super) object: Arc<Value>,
    /// The object as it was before.
    pub(super) before: Option<Arc<Value>>,
}

/// The objects of one collection by their keys.
pub(super) type Objects = BTreeMap<Arc<str>, Arc<Value>>;

/// All objects of a resource, by `<namespace>/<name>`, which is also the order of a list.
#[derive(Debug, Clone, Default)]
pub(super) struct Collection {
    objects: Objects,
    changes: VecDeque<Arc<Change>>,
    /// What happened up to here is forgotten.
    forgotten: u64,
}

/// The key of an object; `namespace` is empty for those that belong to none.
pub(super) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Those objects of a namespace, or all if it is empty, in order.
pub(super) fn within<'a>(
    objects: &'a Objects,
    namespace: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<Value>)> {
    let prefix = if namespace.is_empty() { String::new() } else { key(namespace, "") };
    let from = objects.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
    from.take_while(move |(key, _)| key.starts_with(&prefix))
}

impl Collection {
    /// The objects.
    pub(super) fn objects(&self) -> &Objects {
        &self.objects
    }

    /// What happened since `version`; `None` if that is forgotten.
    pub(super) fn since(&self, version: u64) -> Option<impl Iterator<Item = &Arc<Change>>> {
        let start = self.changes.partition_point(|change| change.version <= version);
        (version >= self.forgotten).then(|| self.changes.range(start..))
    }

    /// The objects as they were at `version`; `None` if that is forgotten.
    pub(super) fn at(&self, version: u64) -> Option<Objects> {
        let since: Vec<_> = self.since(version)?.collect();
        let mut objects = self.objects.clone();
        for change in since.into_iter().rev() {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), before.clone()),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    /// Whether nothing happened since `version`.
    pub(super) fn is_still(&self, version: u64) -> bool {
        version >= self.forgotten && self.changes.back().is_none_or(|last| last.version <= version)
    }

    fn note(&mut self, change: Change) {
        if self.changes.len() == HISTORY {
            self.forgotten = self.changes.pop_front().map_or(self.forgotten, |change| change.version);
        }
        self.changes.push_back(Arc::new(change));
    }
}

/// All collections, and the version that counts their changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    collections: BTreeMap<(&'static str, &'static str), Arc<Collection>>,
    version: u64,
}

impl Store {
    /// The version of the last change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// The objects of a resource, with their history.
    pub(super) fn collection(&self, resource: &Resource) -> Option<&Collection> {
        self.collections.get(&(resource.api_version, resource.plural)).map(Arc::as_ref)
    }

    /// One object.
    pub(super) fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.collection(resource)?.objects.get(key(namespace, name).as_str())
    }

    /// The objects of a resource as they were at `version`; `None` if that is forgotten.
    pub(super) fn at(&self, resource: &Resource, version: u64) -> Option<Cow<'_, Objects>> {
        static NONE: Objects = BTreeMap::new();
        match self.collection(resource) {
            None => Some(Cow::Borrowed(&NONE)),
            Some(collection) if collection.is_still(version) => Some(Cow::Borrowed(&collection.objects)),
            Some(collection) => collection.at(version).map(Cow::Owned),
        }
    }

    /// Stores an object, which gets the next version; returns it as it is stored.
    pub(super) fn put(&mut self, resource: &'static Resource, mut object: Value) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let key: Arc<str> = key_of(&object).into();
        let object = Arc::new(object);
        let version = self.version;
        let collection = self.writable(resource);
        let before = collection.objects.insert(key.clone(), object.clone());
        let happened = if before.is_some() { Happened::Modified } else { Happened::Added };
        collection.note(Change { version, happened, key, object: object.clone(), before });
        object
    }

    /// Removes an object, and returns it as it was last, with the version of its deletion.
    pub(super) fn remove(&mut self, resource: &'static Resource, object: &Value) -> Arc<Value> {
        self.version += 1;
        let version = self.version;
        let mut last = object.clone();
        last["metadata"]["resourceVersion"] = version.to_string().into();
        let last = Arc::new(last);
        let key: Arc<str> = key_of(object).into();
        let collection = self.writable(resource);
        if let Some(before) = collection.objects.remove(&key) {
            let change =
                Change { version, happened: Happened::Deleted, key, object: last.clone(), before: Some(before) };
            collection.note(change);
        }
        last
    }

    /// Forgets what happened so far.
    pub(super) fn forget(&mut self) {
        let version = self.version;
        for collection in self.collections.values_mut() {
            let collection = Arc::make_mut(collection);
            collection.changes.clear();
            collection.forgotten = version;
        }
    }

    /// Removes a whole collection.
    pub(super) fn drop_collection(&mut self, resource: &Resource) {
        self.collections.remove(&(resource.api_version, resource.plural));
    }

    fn writable(&mut self, resource: &'static Resource) -> &mut Collection {
        Arc::make_mut(self.collections.entry((resource.api_version, resource.plural)).or_default())
    }
}

/// The key that an object has by its own name and namespace.
fn key_of(object: &Value) -> String {
    let text = |field| object::at(object, field).and_then(Value::as_str).unwrap_or_default();
    key(text("/metadata/namespace"), text("/metadata/name"))
}
