//! A cluster as a value: its objects, its clock, and what the API server does with a request. Pure.
//!
//! Nothing happens by itself and nothing is random: uids and versions are counted, and time is what the caller says. The
//! same requests in the same order give the same world. A clone is a world of its own and cheap (see [`super::store`]).

use super::asked::{ApiVerb, Asked};
use super::fields::FieldRefusal;
use super::options::How;
use super::resource::{RESOURCES, Resource, Trait};
use super::store::{Store, within};
use super::write::Change;
use super::{decode, status};
use chrono::{SecondsFormat, TimeDelta};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegate_controller::record::state::Time;

/// A cluster as a value.
#[derive(Debug, Clone)]
pub struct World {
    pub(super) now: Time,
    pub(super) store: Store,
    /// How many objects were made so far.
    pub(super) made: u64,
    /// The version up to which no garbage is left.
    pub(super) collected: u64,
    /// The custom resources that are not installed, by version and plural: two groups may call one alike.
    missing: Arc<BTreeSet<(&'static str, &'static str)>>,
}

impl World {
    /// A cluster with the namespaces `default` and `kube-system`, at that time.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self::numbered(now, 0)
    }

    /// Another one, whose uids go on from there: that of its `kube-system` tells it from the first.
    #[must_use]
    pub fn numbered(now: Time, made: u64) -> Self {
        let absent = RESOURCES.iter().filter(|resource| resource.is(Trait::Absent));
        let missing = Arc::new(absent.map(|resource| (resource.api_version, resource.plural)).collect());
        let mut world = Self { now, store: Store::default(), made, collected: 0, missing };
        for name in ["kube-system", "default"] {
            world.make_namespace(name);
        }
        world
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: TimeDelta) {
        self.now += time;
    }

    /// The version of the last change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.store.version()
    }

    /// Whether nothing happened to the objects of a resource since `version`, as far as that is known.
    #[must_use]
    pub fn is_still(&self, resource: &Resource, version: u64) -> bool {
        self.store.collection(resource).is_none_or(|collection| collection.is_still(version))
    }

    /// Whether a resource is served.
    #[must_use]
    pub fn serves(&self, resource: &Resource) -> bool {
        !self.missing.contains(&(resource.api_version, resource.plural))
    }

    /// Removes a custom resource with all its objects, as deleting its definition does.
    pub fn uninstall(&mut self, resource: &'static Resource) {
        if resource.is(Trait::Custom) {
            Arc::make_mut(&mut self.missing).insert((resource.api_version, resource.plural));
            self.store.drop_collection(resource);
            // What it owned is not told of as garbage by any change.
            self.collected = 0;
        }
    }

    /// Serves a custom resource again.
    pub fn install(&mut self, resource: &'static Resource) {
        Arc::make_mut(&mut self.missing).remove(&(resource.api_version, resource.plural));
    }

    /// Forgets all history, as the compaction of etcd does: watches and pages from before get 410.
    pub fn compact(&mut self) {
        self.store.forget();
    }

    /// One object; `namespace` is empty for what belongs to none.
    #[must_use]
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.store.get(resource, namespace, name)
    }

    /// All objects of a resource in a namespace, or in all if it is empty, in order of namespace and name.
    pub fn list<'a>(&'a self, resource: &Resource, namespace: &str) -> impl Iterator<Item = &'a Arc<Value>> {
        let objects = self.store.collection(resource).map(|collection| within(collection.objects(), namespace));
        objects.into_iter().flatten().map(|(_, object)| object)
    }

    /// Makes a namespace, if it is not there.
    pub fn make_namespace(&mut self, name: &str) {
        let object = json!({"metadata": {"name": name}});
        // It is there already, or it is made: nothing else can come of it.
        drop(self.create("v1", "Namespace", "world", object));
    }

    /// Creates an object, as a request of that manager does.
    ///
    /// # Errors
    /// What the API server refuses, in its words.
    pub fn create(
        &mut self,
        api_version: &str,
        kind: &str,
        manager: &str,
        object: Value,
    ) -> Result<Arc<Value>, FieldRefusal> {
        let asked = self.asked(ApiVerb::Create, api_version, kind, &object, "")?;
        let how = by(manager);
        let object = decode::checked(asked.resource, object, how.strict)?;
        self.created(&asked, &how, object)
    }

    /// Puts an object where it was in another world, as a backup does: uid, generation and status stay, its version is new.
    ///
    /// # Errors
    /// That it is of no kind that is served here.
    pub fn restore(&mut self, object: &Value) -> Result<Arc<Value>, FieldRefusal> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let resource = Resource::of_kind(text("apiVersion"), text("kind")).filter(|found| self.serves(found));
        let resource = resource.ok_or_else(status::no_such_resource)?;
        Ok(self.store.put(resource, object.clone()))
    }

    /// Replaces an object, or what the subresource names of it, as a request of that manager does.
    ///
    /// # Errors
    /// What the API server refuses, in its words.
    pub fn update(&mut self, object: Value, subresource: &str, manager: &str) -> Result<Arc<Value>, FieldRefusal> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let asked = self.asked(ApiVerb::Update, text("apiVersion"), text("kind"), &object, subresource)?;
        let how = by(manager);
        self.changed(&asked, &how, Change::Replace(object)).map(|(_, object)| object)
    }

    /// Deletes an object at once, with its dependents in the background, as a kubelet ends a Pod.
    ///
    /// # Errors
    /// What the API server refuses, in its words.
    pub fn delete(&mut self, object: &Value) -> Result<(), FieldRefusal> {
        self.end(object, &json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0}))
    }

    /// Deletes an object in its own time, which a Pod that runs takes.
    ///
    /// # Errors
    /// What the API server refuses, in its words.
    pub fn terminate(&mut self, object: &Value) -> Result<(), FieldRefusal> {
        self.end(object, &json!({"propagationPolicy": "Background"}))
    }

    fn end(&mut self, object: &Value, options: &Value) -> Result<(), FieldRefusal> {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let asked = self.asked(ApiVerb::Delete, &text("apiVersion"), &text("kind"), object, "")?;
        self.deleted(&asked, &by("world"), options).map(drop)
    }

    fn asked(
        &self,
        verb: ApiVerb,
        api_version: &str,
        kind: &str,
        object: &Value,
        subresource: &str,
    ) -> Result<Asked, FieldRefusal> {
        let resource = Resource::of_kind(api_version, kind).filter(|found| self.serves(found));
        let resource = resource.ok_or_else(status::no_such_resource)?;
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let name = if verb == ApiVerb::Create { String::new() } else { text("name") };
        let namespace = text("namespace");
        Ok(Asked { verb, resource, namespace, name, subresource: subresource.to_owned(), query: Default::default() })
    }

    /// The uid of the next object; one that nothing ever gets, for a dry run.
    pub(super) fn uid(&self, dry_run: bool) -> String {
        let first = if dry_run { "ffffffff" } else { "00000000" };
        format!("{first}-0000-4000-8000-{:012x}", self.made + 1)
    }

    /// The time as it is written on objects.
    pub(super) fn stamp(&self) -> String {
        self.now.to_rfc3339_opts(SecondsFormat::Secs, true)
    }
}

/// How a write comes from inside of the world.
fn by(manager: &str) -> How {
    How { manager: manager.to_owned(), dry_run: false, strict: false, force: false }
}
