//! The objects of a namespace, found by name and by what marks them as somebody's: looking for one rollout's objects costs
//! what it has, and not what all others have.

use crate::manifest::object::{Kind, OWNER, Object, ObjectRef, RETREATED};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

type Map = BTreeMap<ObjectRef, Arc<Object>>;

/// Objects by their names. Reads like the map that it is; each change keeps the index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Objects {
    all: Map,
    /// Shared, so that a copy of all costs little.
    index: BTreeMap<Key, Arc<Map>>,
}

/// What objects are found by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// Kinds of which every rollout asks.
    Kind(Kind),
    /// The owner mark.
    Owner(String),
    /// The run in the mark of a retreat.
    Retreated(String),
    /// The Service of an EndpointSlice.
    Service(String),
}

impl Key {
    fn of(object: &Object) -> impl Iterator<Item = Self> {
        let owner = object.annotation(OWNER).map(|owner| Self::Owner(owner.to_owned()));
        let run = object.annotation(RETREATED).and_then(|mark| mark.split_once('/'));
        let run = run.map(|(run, _)| Self::Retreated(run.to_owned()));
        let slice = object.reference().kind == Kind::EndpointSlice;
        let service = object.label("kubernetes.io/service-name").filter(|_| slice);
        let service = service.map(|service| Self::Service(service.to_owned()));
        [Some(Self::Kind(object.reference().kind)), owner, run, service].into_iter().flatten()
    }
}

impl Objects {
    /// Puts an object where its name says, instead of what was there.
    pub fn insert(&mut self, reference: ObjectRef, object: Arc<Object>) {
        self.remove(&reference);
        for key in Key::of(&object) {
            let found = self.index.entry(key).or_default();
            Arc::make_mut(found).insert(reference.clone(), Arc::clone(&object));
        }
        self.all.insert(reference, object);
    }

    /// Takes an object out; what it was.
    pub fn remove(&mut self, reference: &ObjectRef) -> Option<Arc<Object>> {
        let object = self.all.remove(reference)?;
        for key in Key::of(&object) {
            let Some(found) = self.index.get_mut(&key) else { continue };
            Arc::make_mut(found).remove(reference);
            if found.is_empty() {
                self.index.remove(&key);
            }
        }
        Some(object)
    }

    /// Takes out all objects of a kind.
    pub fn remove_kind(&mut self, kind: Kind) {
        let gone: Vec<ObjectRef> = self.found(&Key::Kind(kind)).map(|object| object.reference().clone()).collect();
        for reference in gone {
            self.remove(&reference);
        }
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.found(&Key::Kind(kind))
    }

    /// All objects that carry this owner mark.
    pub fn owned_by<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(&Key::Owner(owner.to_owned()))
    }

    /// All objects that carry a mark that this run went back.
    pub fn retreated<'a>(&'a self, run: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(&Key::Retreated(run.to_owned()))
    }

    /// All EndpointSlices of a Service.
    pub fn slices_of<'a>(&'a self, service: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(&Key::Service(service.to_owned()))
    }

    fn found<'a>(&'a self, key: &Key) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.index.get(key).into_iter().flat_map(|found| found.values()).map(AsRef::as_ref)
    }
}

impl Deref for Objects {
    type Target = Map;

    fn deref(&self) -> &Map {
        &self.all
    }
}

impl FromIterator<(ObjectRef, Arc<Object>)> for Objects {
    fn from_iter<I: IntoIterator<Item = (ObjectRef, Arc<Object>)>>(objects: I) -> Self {
        let mut all = Self::default();
        objects.into_iter().for_each(|(reference, object)| all.insert(reference, object));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::fixtures::object;
    use serde_json::json;

    fn route(name: &str, annotations: &serde_json::Value) -> Arc<Object> {
        Arc::new(object(Kind::HttpRoute, name, json!({"metadata": {"annotations": annotations}})))
    }

    fn names<'a>(found: impl Iterator<Item = &'a Object>) -> String {
        found.map(|object| object.reference().name.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn objects_are_found_by_what_they_carry_now() {
        let mut objects = Objects::default();
        let put = |objects: &mut Objects, object: Arc<Object>| objects.insert(object.reference().clone(), object);
        put(&mut objects, route("a", &json!({OWNER: "prod/shop/a"})));
        put(&mut objects, route("b", &json!({OWNER: "prod/shop/a", RETREATED: "7-07070707/not ready"})));
        put(&mut objects, route("c", &json!({RETREATED: "7-07070707/by hand"})));
        let slice = json!({"metadata": {"labels": {"kubernetes.io/service-name": "web"}}});
        put(&mut objects, Arc::new(object(Kind::EndpointSlice, "web-x", slice.clone())));
        put(&mut objects, Arc::new(object(Kind::Pod, "web-y", slice)));
        assert_eq!(names(objects.owned_by("prod/shop/a")), "a b");
        assert_eq!(names(objects.owned_by("prod/shop")), "");
        assert_eq!(names(objects.retreated("7-07070707")), "b c");
        assert_eq!(names(objects.slices_of("web")), "web-x");
        assert_eq!(names(objects.of_kind(Kind::Pod)), "web-y");

        // A copy stays as it was.
        let before = objects.clone();
        put(&mut objects, route("b", &json!({OWNER: "prod/shop/b"})));
        let a = objects.get(route("a", &json!({})).reference()).unwrap().reference().clone();
        assert!(objects.remove(&a).is_some() && objects.remove(&a).is_none());
        assert_eq!(names(objects.owned_by("prod/shop/a")), "");
        assert_eq!(names(objects.owned_by("prod/shop/b")), "b");
        assert_eq!(names(objects.retreated("7-07070707")), "c");
        assert_eq!(names(before.owned_by("prod/shop/a")), "a b");
        objects.remove_kind(Kind::HttpRoute);
        assert_eq!(names(objects.values().map(AsRef::as_ref)), "web-x web-y");
        let again: Objects = objects.iter().map(|(r, o)| (r.clone(), Arc::clone(o))).collect();
        assert_eq!(again, objects, "the index is that of what is there");
    }
}
