//! The objects of a namespace, found by name and by what marks them as somebody's: looking for one rollout's objects costs
//! what it has, and not what all others have.
//!
//! A copy can remember what it was asked ([`Objects::attentive`]), so that it can be told later whether anything that an answer
//! was made from has changed ([`Footprint`]).

use super::selector::PodLabels;
use crate::manifest::object::{Kind, OWNER, Object, ObjectRef, RETREATED};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

type Map = BTreeMap<ObjectRef, Arc<Object>>;

/// Objects by their names. Each change keeps the index; a copy costs nothing until one of both changes.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    held: Arc<Held>,
    /// What was asked, where that is remembered.
    asked: Option<Arc<Mutex<BTreeSet<Question>>>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Held {
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
    /// The first label that a selector demands, if it demands one.
    Selector(Kind, Option<(String, String)>),
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    Name(ObjectRef),
    Key(Key),
    All,
}

impl Key {
    fn of(object: &Object) -> impl Iterator<Item = Self> {
        let kind = object.reference().kind;
        let owner = object.annotation(OWNER).map(|owner| Self::Owner(owner.to_owned()));
        let run = object.annotation(RETREATED).and_then(|mark| mark.split_once('/'));
        let run = run.map(|(run, _)| Self::Retreated(run.to_owned()));
        let service = object.label("kubernetes.io/service-name").filter(|_| kind == Kind::EndpointSlice);
        let service = service.map(|service| Self::Service(service.to_owned()));
        let selector = demanded(object).map(|labels| {
            let first = labels.and_then(|labels| labels.iter().min_by_key(|(key, _)| *key));
            let pair = first.and_then(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
            Self::Selector(kind, pair)
        });
        [Some(Self::Kind(kind)), owner, run, service, selector].into_iter().flatten()
    }
}

/// The labels that all pods have that an object selects; none may be demanded. `None` where the kind selects no pods.
fn demanded(object: &Object) -> Option<Option<&PodLabels>> {
    let pointer = object.reference().kind.facts().pods?;
    Some(object.at(pointer).and_then(Value::as_object))
}

impl Objects {
    /// Puts an object where its name says, instead of what was there.
    pub fn insert(&mut self, reference: ObjectRef, object: Arc<Object>) {
        self.remove(&reference);
        let held = Arc::make_mut(&mut self.held);
        for key in Key::of(&object) {
            let found = held.index.entry(key).or_default();
            Arc::make_mut(found).insert(reference.clone(), Arc::clone(&object));
        }
        held.all.insert(reference, object);
    }

    /// Takes an object out; what it was.
    pub fn remove(&mut self, reference: &ObjectRef) -> Option<Arc<Object>> {
        if !self.held.all.contains_key(reference) {
            return None;
        }
        let held = Arc::make_mut(&mut self.held);
        let object = held.all.remove(reference)?;
        for key in Key::of(&object) {
            let Some(found) = held.index.get_mut(&key) else { continue };
            Arc::make_mut(found).remove(reference);
            if found.is_empty() {
                held.index.remove(&key);
            }
        }
        Some(object)
    }

    /// Takes out all objects of a kind.
    pub fn remove_kind(&mut self, kind: Kind) {
        let gone: Vec<ObjectRef> = self.of_kind(kind).map(|object| object.reference().clone()).collect();
        for reference in gone {
            self.remove(&reference);
        }
    }

    /// The object of that name.
    #[must_use]
    pub fn get(&self, reference: &ObjectRef) -> Option<&Arc<Object>> {
        self.note(|| Question::Name(reference.clone()));
        self.held.all.get(reference)
    }

    /// All objects, sorted by their names.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Arc<Object>> {
        self.note(|| Question::All);
        self.held.all.values()
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.found(Key::Kind(kind))
    }

    /// All objects that carry this owner mark.
    pub fn owned_by<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(Key::Owner(owner.to_owned()))
    }

    /// All objects that carry a mark that this run went back.
    pub fn retreated<'a>(&'a self, run: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(Key::Retreated(run.to_owned()))
    }

    /// All EndpointSlices of a Service.
    pub fn slices_of<'a>(&'a self, service: &str) -> impl Iterator<Item = &'a Object> + use<'a> {
        self.found(Key::Service(service.to_owned()))
    }

    /// All objects of a kind that may select pods with these labels, as far as one label of the selector tells.
    pub fn selecting<'a>(&'a self, kind: Kind, labels: &PodLabels) -> impl Iterator<Item = &'a Object> + use<'a> {
        let pairs = labels.iter().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        let keys: Vec<Key> = pairs.map(Some).chain([None]).map(|pair| Key::Selector(kind, pair)).collect();
        keys.into_iter().flat_map(|key| self.found(key))
    }

    fn found<'a>(&'a self, key: Key) -> impl Iterator<Item = &'a Object> + use<'a> {
        let found = self.held.index.get(&key);
        self.note(|| Question::Key(key));
        found.into_iter().flat_map(|found| found.values()).map(AsRef::as_ref)
    }

    fn note(&self, question: impl FnOnce() -> Question) {
        if let Some(asked) = &self.asked {
            asked.lock().unwrap_or_else(PoisonError::into_inner).insert(question());
        }
    }

    /// The same objects; they remember from now on what they are asked.
    #[must_use]
    pub fn attentive(&self) -> Self {
        Self { held: Arc::clone(&self.held), asked: Some(Arc::default()) }
    }

    /// The kinds that were asked for.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> BTreeSet<Kind> {
        let asked = self.asked.iter().flat_map(|asked| asked.lock().unwrap().iter().cloned().collect::<Vec<_>>());
        let kind = |question| match question {
            Question::Name(name) => Some(name.kind),
            Question::Key(Key::Kind(kind) | Key::Selector(kind, _)) => Some(kind),
            Question::Key(Key::Service(_)) => Some(Kind::EndpointSlice),
            Question::Key(Key::Owner(_) | Key::Retreated(_)) | Question::All => None,
        };
        asked.filter_map(kind).collect()
    }

    /// What was asked so far, and answered; nothing if it is not remembered.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let Some(asked) = &self.asked else { return Footprint::default() };
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        Footprint(asked.iter().map(|question| self.held.answer(question)).collect())
    }
}

impl Held {
    fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Name(name) => match self.all.get(name) {
                Some(object) => Answer::Object(Arc::clone(object)),
                None => Answer::NoObject(name.clone()),
            },
            Question::Key(key) => Answer::Found(key.clone(), self.index.get(key).cloned()),
            Question::All => Answer::All(self.all.values().cloned().collect()),
        }
    }
}

/// What was asked of objects, and what was answered. Cheap to keep and to compare: objects are the same if they are the very same
/// value, and being held here keeps their addresses from being used again.
#[derive(Debug, Default)]
pub struct Footprint(Box<[Answer]>);

#[derive(Debug)]
enum Answer {
    Object(Arc<Object>),
    NoObject(ObjectRef),
    Found(Key, Option<Arc<Map>>),
    All(Vec<Arc<Object>>),
}

impl Footprint {
    /// Whether these objects would give the same answers.
    #[must_use]
    pub fn is_in(&self, objects: &Objects) -> bool {
        let held = &objects.held;
        self.0.iter().all(|answer| match answer {
            Answer::Object(object) => held.all.get(object.reference()).is_some_and(|now| Arc::ptr_eq(now, object)),
            Answer::NoObject(name) => !held.all.contains_key(name),
            Answer::Found(key, found) => match (found, held.index.get(key)) {
                (Some(found), Some(now)) => Arc::ptr_eq(now, found),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            },
            Answer::All(all) => {
                all.len() == held.all.len() && all.iter().zip(held.all.values()).all(|(one, now)| Arc::ptr_eq(one, now))
            }
        })
    }
}

impl PartialEq for Objects {
    fn eq(&self, other: &Self) -> bool {
        self.held == other.held
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
    use crate::workload::fixtures::object;
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
        let again: Objects = objects.values().map(|o| (o.reference().clone(), Arc::clone(o))).collect();
        assert_eq!(again, objects, "the index is that of what is there");
    }

    fn selecting(kind: Kind, name: &str, spec: &serde_json::Value) -> Arc<Object> {
        Arc::new(object(kind, name, json!({"spec": spec})))
    }

    #[test]
    fn who_may_select_pods_is_found_by_one_of_their_labels() {
        let all = [
            selecting(Kind::Deployment, "a", &json!({"selector": {"matchLabels": {"app": "web", "tier": "1"}}})),
            selecting(Kind::Deployment, "b", &json!({"selector": {"matchLabels": {"app": "api"}}})),
            selecting(Kind::Deployment, "c", &json!({"selector": {"matchExpressions": []}})),
            selecting(Kind::Service, "d", &json!({"selector": {"tier": "1", "app": "web"}})),
            selecting(Kind::Service, "e", &json!({})),
            selecting(Kind::NetworkPolicy, "f", &json!({"podSelector": {"matchLabels": {"app": "web"}}})),
        ];
        let objects: Objects = all.into_iter().map(|object| (object.reference().clone(), object)).collect();
        let pods = json!({"app": "web", "other": "1"}).as_object().cloned().unwrap();
        let found = [Kind::Deployment, Kind::Service, Kind::NetworkPolicy, Kind::PodDisruptionBudget]
            .map(|kind| names(objects.selecting(kind, &pods)));
        assert_eq!(found, ["a c", "d e", "f", ""]);
    }

    #[test]
    fn a_footprint_holds_until_an_answer_would_be_another() {
        type Ask = fn(&Objects) -> usize;
        let asks: [(&str, Ask); 7] = [
            ("a", |objects| objects.get(route("a", &json!({})).reference()).iter().len()),
            ("new", |objects| objects.get(route("new", &json!({})).reference()).iter().len()),
            ("owned", |objects| objects.owned_by("prod/shop/a").count()),
            ("retreated", |objects| objects.retreated("7-07070707").count()),
            ("services", |objects| objects.of_kind(Kind::Service).count()),
            ("routes", |objects| objects.of_kind(Kind::HttpRoute).count()),
            ("all", |objects| objects.values().count()),
        ];
        let mut before = Objects::default();
        for name in ["a", "b"] {
            let made = route(name, &json!({OWNER: format!("prod/shop/{name}")}));
            before.insert(made.reference().clone(), made);
        }
        let footprints = asks.map(|(name, ask)| {
            let attentive = before.attentive();
            let _ = ask(&attentive);
            (name, attentive.footprint())
        });
        let void = |objects: &Objects| -> String {
            let void = footprints.iter().filter(|(_, footprint)| !footprint.is_in(objects));
            void.map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
        };
        let put = |object: Arc<Object>| {
            let mut after = before.clone();
            after.insert(object.reference().clone(), object);
            after
        };
        assert_eq!(void(&before), "");
        assert_eq!(void(&put(route("a", &json!({OWNER: "prod/shop/a", "x": "y"})))), "a owned routes all");
        assert_eq!(void(&put(route("b", &json!({RETREATED: "7-07070707/not ready"})))), "retreated routes all");
        assert_eq!(void(&put(route("new", &json!({OWNER: "prod/shop/a"})))), "new owned routes all");
        assert_eq!(void(&put(selecting(Kind::Service, "s", &json!({})))), "services all");
        let mut without = before.clone();
        without.remove_kind(Kind::HttpRoute);
        assert_eq!(void(&without), "a owned routes all");
        assert_eq!(void(&before), "", "what a copy goes through is not ours");
        assert!(before.footprint().is_in(&without), "who was not asked depends on nothing");
    }
}
