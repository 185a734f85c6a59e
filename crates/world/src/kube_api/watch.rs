//! Watches: what happens to a collection, event by event. Pure: the stream that a client reads asks for what is next.

use super::asked::Asked;
use super::fields::FieldRefusal;
use super::form::Form;
use super::read::not_a_number;
use super::select::Selector;
use super::status::{self, Cause};
use super::store::{Change, Happened};
use super::world::World;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use tidegate_controller::record::state::Time;

/// How often a watch where nothing happens says so.
const BOOKMARK: TimeDelta = TimeDelta::minutes(1);

/// What becomes of an event on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    Lost,
    /// It is lost with its connection.
    Cut,
    Doubled,
    /// It comes that long after this moment, and what follows it not sooner.
    Held(TimeDelta),
}

/// What is next on a watch.
#[derive(Debug)]
pub(super) enum Next {
    Event(Vec<u8>),
    /// Nothing until the world changes or time passes.
    Wait,
    /// The server ends it.
    End,
    /// Its connection breaks.
    Broken,
}

/// One watch.
#[derive(Debug)]
pub(super) struct Watcher {
    asked: Asked,
    selector: Selector,
    form: Form,
    /// Everything up to here was told.
    cursor: u64,
    ready: VecDeque<Vec<u8>>,
    held: Option<(u64, Time)>,
    bookmarks: bool,
    /// When something was last told.
    told: Time,
    until: Option<Time>,
    over: bool,
}

impl Watcher {
    /// Opens a watch.
    pub(super) fn open(world: &World, asked: Asked, form: Form) -> Result<Self, FieldRefusal> {
        let query = &asked.query;
        let selector = Selector::parse(asked.resource, query.get("labelSelector"), query.get("fieldSelector"))?;
        check_initial(&asked)?;
        let version = query.get("resourceVersion");
        let number: u64 = match version {
            "" => 0,
            text => text.parse().map_err(|_| {
                status::unexplained(format!("resourceVersion: Invalid value: \"{text}\": {}", not_a_number(text)))
            })?,
        };
        let initial = query.flag("sendInitialEvents");
        let quiet = query.get("sendInitialEvents") == "false";
        let seconds = query.get("timeoutSeconds").parse().ok().map(TimeDelta::seconds);
        let mut watcher = Self {
            selector,
            form,
            cursor: number,
            ready: VecDeque::new(),
            held: None,
            bookmarks: query.flag("allowWatchBookmarks"),
            told: world.now,
            until: seconds.map(|seconds| world.now + seconds),
            over: false,
            asked,
        };
        if number == 0 || initial {
            watcher.cursor = world.version();
            if !quiet {
                watcher.begin(world);
            }
        }
        if initial && watcher.bookmarks {
            watcher.bookmark(world, Some("k8s.io/initial-events-end"));
        }
        Ok(watcher)
    }

    /// Tells of everything that is there as if it came just now.
    fn begin(&mut self, world: &World) {
        let found =
            world.list(self.asked.resource, &self.asked.namespace).filter(|object| self.selector.matches(object));
        self.ready = found.map(|object| self.event("ADDED", object)).collect();
    }

    /// What is next; `fate` decides on each event once.
    pub(super) fn next(&mut self, world: &World, mut fate: impl FnMut(&Asked, Happened, &Value) -> Fate) -> Next {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.told = world.now;
                return Next::Event(event);
            }
            if self.over || self.until.is_some_and(|until| world.now >= until) || !world.serves(self.asked.resource) {
                return Next::End;
            }
            match self.change(world) {
                Some(Some(change)) => {
                    if let Some(next) = self.take(world, &change, &mut fate) {
                        return next;
                    }
                }
                Some(None) if self.bookmarks && world.now - self.told >= BOOKMARK => self.bookmark(world, None),
                Some(None) => return Next::Wait,
                None => {
                    let message = format!("too old resource version: {} ({})", self.cursor, world.version());
                    let error = json!({"type": "ERROR", "object": status::expired(message).status()});
                    self.over = true;
                    self.ready.push_back(line(&error));
                }
            }
        }
    }

    /// The next change; the outer `None` if it is forgotten.
    fn change(&self, world: &World) -> Option<Option<Arc<Change>>> {
        match world.store.collection(self.asked.resource) {
            Some(collection) => Some(collection.since(self.cursor)?.next().cloned()),
            None => Some(None),
        }
    }

    /// Takes a change, unless it is held up, or the connection breaks.
    fn take(
        &mut self,
        world: &World,
        change: &Change,
        fate: &mut impl FnMut(&Asked, Happened, &Value) -> Fate,
    ) -> Option<Next> {
        let event = self.seen(change);
        let fate = match (&event, self.held) {
            (None, _) => Fate::Lost,
            (Some(_), Some((version, until))) if version == change.version => {
                if world.now < until {
                    return Some(Next::Wait);
                }
                Fate::Passes
            }
            (Some(_), _) => fate(&self.asked, change.happened, &change.object),
        };
        match (fate, event) {
            (Fate::Held(time), _) => {
                self.held = Some((change.version, world.now + time));
                return (time > TimeDelta::zero()).then_some(Next::Wait);
            }
            (Fate::Cut, _) => return Some(Next::Broken),
            (Fate::Passes, Some(event)) => self.ready.push_back(event),
            (Fate::Doubled, Some(event)) => self.ready.extend([event.clone(), event]),
            (Fate::Lost, _) | (Fate::Passes | Fate::Doubled, None) => {}
        }
        self.cursor = change.version;
        None
    }

    /// A change as this watch tells it: what enters the selection is added, what leaves it deleted.
    fn seen(&self, change: &Change) -> Option<Vec<u8>> {
        let namespace = &self.asked.namespace;
        if !namespace.is_empty() && change.object["metadata"]["namespace"] != **namespace {
            return None;
        }
        let is = change.happened != Happened::Deleted && self.selector.matches(&change.object);
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(before));
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.event("ADDED", &change.object)),
            (true, true) => Some(self.event("MODIFIED", &change.object)),
            (true, false) if change.happened == Happened::Deleted => Some(self.event("DELETED", &change.object)),
            (true, false) => {
                let mut last = change.before.as_deref().cloned().unwrap_or_default();
                last["metadata"]["resourceVersion"] = change.version.to_string().into();
                Some(self.event("DELETED", &Arc::new(last)))
            }
        }
    }

    fn event(&self, what: &str, object: &Arc<Value>) -> Vec<u8> {
        let mut text = format!("{{\"type\":\"{what}\",\"object\":").into_bytes();
        let object = self.form.object(object);
        serde_json::to_writer(&mut text, object.as_ref())
            .expect("a JSON value can be written because its keys are texts");
        text.extend_from_slice(b"}\n");
        text
    }

    fn bookmark(&mut self, world: &World, annotation: Option<&str>) {
        let resource = self.asked.resource;
        let mut metadata = json!({"resourceVersion": world.version().to_string()});
        if let Some(annotation) = annotation {
            metadata["annotations"] = json!({annotation: "true"});
        }
        let object = Arc::new(json!({"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}));
        let event = self.event("BOOKMARK", &object);
        self.cursor = world.version();
        self.ready.push_back(event);
    }
}

fn check_initial(asked: &Asked) -> Result<(), FieldRefusal> {
    let query = &asked.query;
    let (asks, how) = (!query.get("sendInitialEvents").is_empty(), query.get("resourceVersionMatch"));
    let refused = |why| Err(status::invalid_options("ListOptions", Cause::forbidden("resourceVersionMatch", why)));
    match (asks, how) {
        (true, "NotOlderThan") | (false, "") => Ok(()),
        (true, _) => refused("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (false, _) => refused("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
    }
}

fn line(value: &Value) -> Vec<u8> {
    let mut text = value.to_string().into_bytes();
    text.push(b'\n');
    text
}
