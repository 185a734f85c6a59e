//! Creating and changing objects, in the order in which the API server checks and completes them. Pure.

use super::asked::{ApiVerb, Asked};
use super::fields::{self, FieldRefusal, FieldWriter, Operation};
use super::options::How;
use super::resource::{Resource, Trait};
use super::status::{self, Cause};
use super::world::World;
use super::{decode, kinds, metadata, patch, scale};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tidegate_controller::manifest::object::at;

/// How an object is to be changed.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// It becomes this.
    Replace(Value),
    /// RFC 7386.
    Merge(Value),
    /// RFC 6902.
    Json(Vec<Value>),
    /// Server-side apply.
    Apply(Value),
}

impl World {
    /// Creates an object.
    pub(super) fn created(&mut self, asked: &Asked, how: &How, mut sent: Value) -> Result<Arc<Value>, FieldRefusal> {
        self.place(asked, &sent)?;
        let name = text(&sent, "/metadata/name");
        self.admit(asked, &name)?;
        if name.is_empty() && !text(&sent, "/metadata/generateName").is_empty() {
            sent["metadata"]["name"] = self.generated(&text(&sent, "/metadata/generateName")).into();
        }
        self.make(asked, how, Operation::Update, sent)
    }

    /// Makes an object of what was sent, whose place is settled.
    fn make(
        &mut self,
        asked: &Asked,
        how: &How,
        operation: Operation,
        mut sent: Value,
    ) -> Result<Arc<Value>, FieldRefusal> {
        let resource = asked.resource;
        let version = text(&sent, "/metadata/resourceVersion");
        let metadata = fields_of(&mut sent, "metadata");
        let generation = metadata.remove("generation");
        for key in ["resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "selfLink"] {
            metadata.remove(key);
        }
        metadata.remove("deletionGracePeriodSeconds");
        if resource.is(Trait::Status) {
            fields_of_all(&mut sent).remove("status");
        }
        sent["apiVersion"] = resource.api_version.into();
        sent["kind"] = resource.kind.into();
        let mut object = self.written(asked, how, operation, None, sent)?;
        kinds::complete(resource.kind, &mut object, self.made);
        let (uid, stamp) = (self.uid(how.dry_run), self.stamp());
        let metadata = fields_of(&mut object, "metadata");
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), stamp.into());
        if !asked.namespace.is_empty() {
            metadata.insert("namespace".to_owned(), asked.namespace.as_str().into());
        }
        // Where nobody counts, a number that was sent stays.
        let generation = if resource.is(Trait::Generation) { Some(1.into()) } else { generation };
        if let Some(generation) = generation {
            metadata.insert("generation".to_owned(), generation);
        }
        let name = text(&object, "/metadata/name");
        let causes = metadata::check(resource, &object, None);
        if !causes.is_empty() {
            return Err(status::invalid(resource, &name, &causes));
        }
        if asked.verb == ApiVerb::Create && !matches!(&*version, "" | "0") {
            return Err(status::unexplained("resourceVersion should not be set on objects to be created"));
        }
        if self.store.get(resource, &asked.namespace, &name).is_some() {
            return Err(status::already_exists(resource, &name));
        }
        if how.dry_run {
            return Ok(Arc::new(object));
        }
        self.made += 1;
        Ok(self.store.put(resource, object))
    }

    /// Changes an object; with the code of the answer, which tells whether it was created.
    pub(super) fn changed(
        &mut self,
        asked: &Asked,
        how: &How,
        change: Change,
    ) -> Result<(u16, Arc<Value>), FieldRefusal> {
        let found = self.store.get(asked.resource, &asked.namespace, &asked.name).cloned();
        let Some(live) = found else { return self.absent(asked, how, change).map(|object| (201, object)) };
        if asked.subresource == "scale" {
            return self.scaled(asked, how, &live, &change).map(|object| (200, scale::of(&object)));
        }
        self.modified(asked, how, &live, change).map(|object| (200, object))
    }

    /// A change of what is absent: some may create it.
    fn absent(&mut self, asked: &Asked, how: &How, change: Change) -> Result<Arc<Value>, FieldRefusal> {
        let (resource, name) = (asked.resource, &asked.name);
        let whole = asked.subresource.is_empty();
        match change {
            Change::Apply(sent) if whole => {
                self.same(asked, &sent)?;
                self.place(asked, &sent)?;
                self.admit(asked, name)?;
                let uid = text(&sent, "/metadata/uid");
                if !uid.is_empty() {
                    let why = format!(
                        "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                    );
                    return Err(status::conflict(resource, name, &why));
                }
                self.make(asked, how, Operation::Apply { force: how.force }, sent)
            }
            Change::Replace(sent) if whole && resource.is(Trait::CreateOnUpdate) => {
                self.same(asked, &sent)?;
                self.place(asked, &sent)?;
                let uid = text(&sent, "/metadata/uid");
                if !uid.is_empty() {
                    return Err(status::conflict(resource, name, &other_uid(asked, &uid, "")));
                }
                self.admit(asked, name)?;
                self.make(asked, how, Operation::Update, sent)
            }
            Change::Replace(sent) => {
                self.same(asked, &sent)?;
                Err(status::not_found(resource, name))
            }
            Change::Apply(_) | Change::Merge(_) | Change::Json(_) => Err(status::not_found(resource, name)),
        }
    }

    fn modified(
        &mut self,
        asked: &Asked,
        how: &How,
        live: &Arc<Value>,
        change: Change,
    ) -> Result<Arc<Value>, FieldRefusal> {
        let resource = asked.resource;
        let replaces = matches!(change, Change::Replace(_));
        let operation = match change {
            Change::Apply(_) => Operation::Apply { force: how.force },
            Change::Replace(_) | Change::Merge(_) | Change::Json(_) => Operation::Update,
        };
        let mut sent = after(live, change)?;
        if !replaces && operation == Operation::Update {
            sent = patched(resource, sent, how.strict)?;
        }
        self.same(asked, &sent)?;
        self.place(asked, &sent)?;
        let [uid, version] = ["/metadata/uid", "/metadata/resourceVersion"].map(|at| text(&sent, at));
        let live_uid = text(live, "/metadata/uid");
        if replaces && !uid.is_empty() && uid != live_uid {
            return Err(status::conflict(resource, &asked.name, &other_uid(asked, &uid, &live_uid)));
        }
        sent["apiVersion"] = resource.api_version.into();
        sent["kind"] = resource.kind.into();
        let mut object = self.written(asked, how, operation, Some(live), sent)?;
        check_version(asked, &version, live)?;
        keep_identity(resource, &mut object, live);
        kinds::keep(resource.kind, &mut object, live, self.made);
        if resource.is(Trait::Generation) && asked.subresource != "status" {
            let more = i64::from(kinds::asks_for_more(resource.kind, &object, live));
            object["metadata"]["generation"] = (live["metadata"]["generation"].as_i64().unwrap_or(0) + more).into();
        }
        if !uid.is_empty() {
            object["metadata"]["uid"] = uid.into();
        }
        let causes = metadata::check(resource, &object, Some(live));
        if !causes.is_empty() {
            return Err(status::invalid(resource, &asked.name, &causes));
        }
        if same_content(&object, live) {
            return Ok(live.clone());
        }
        Ok(self.settle(asked, how, object))
    }

    /// Stores a changed object, or removes it if nothing holds it any more.
    fn settle(&mut self, asked: &Asked, how: &How, object: Value) -> Arc<Value> {
        if how.dry_run {
            return Arc::new(object);
        }
        let metadata = &object["metadata"];
        let held = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
        let waits = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
        let emptied = asked.resource.kind != "Namespace" || object["spec"]["finalizers"] == json!([]);
        if !metadata["deletionTimestamp"].is_null() && !held && !waits && emptied {
            self.store.remove(asked.resource, &object);
            return Arc::new(object);
        }
        self.store.put(asked.resource, object)
    }

    /// A change of a Deployment's or ReplicaSet's size through its `Scale`.
    fn scaled(
        &mut self,
        asked: &Asked,
        how: &How,
        live: &Arc<Value>,
        change: &Change,
    ) -> Result<Arc<Value>, FieldRefusal> {
        let before = scale::of(live);
        let wanted = after(&before, change.clone())?;
        self.same(asked, &wanted)?;
        check_version(asked, &text(&wanted, "/metadata/resourceVersion"), live)?;
        let mut object = live.as_ref().clone();
        if !matches!(wanted["spec"], Value::Null | Value::Object(_)) {
            return Err(status::bad_request(format!("spec: expected a Scale's, got {}", wanted["spec"])));
        }
        object["spec"]["replicas"] = wanted["spec"]["replicas"].clone();
        if object["spec"]["replicas"].is_null() {
            object["spec"]["replicas"] = 0.into();
        }
        if !object["spec"]["replicas"].is_i64() {
            let size = &object["spec"]["replicas"];
            return Err(status::bad_request(format!("spec.replicas: expected a whole number, got {size}")));
        }
        let whole = Asked { subresource: String::new(), verb: ApiVerb::Patch, ..asked.clone() };
        let mut object = self.written(asked, how, Operation::Update, Some(live), object)?;
        keep_identity(asked.resource, &mut object, live);
        scale::undate(&mut object);
        if let Some(cause) = negative(&object) {
            return Err(status::invalid_as("autoscaling", "Scale", &asked.name, &[cause]));
        }
        if same_content(&object, live) {
            return Ok(live.clone());
        }
        object["metadata"]["generation"] = (live["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
        Ok(self.settle(&whole, how, object))
    }

    /// The object with its ownership and defaults.
    fn written(
        &self,
        asked: &Asked,
        how: &How,
        operation: Operation,
        live: Option<&Value>,
        sent: Value,
    ) -> Result<Value, FieldRefusal> {
        let subresource = Some(asked.subresource.as_str()).filter(|subresource| !subresource.is_empty());
        let schema = asked.resource.schema().ok_or_else(status::no_such_resource)?;
        let writer = FieldWriter { manager: &how.manager, operation, subresource, now: self.now };
        fields::unchecked(schema, live, sent, &writer).map(|written| written.object)
    }

    /// Checks that what was sent is for the namespace of the request.
    fn place(&self, asked: &Asked, sent: &Value) -> Result<(), FieldRefusal> {
        let namespace = text(sent, "/metadata/namespace");
        if !namespace.is_empty() && namespace != asked.namespace {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(status::bad_request(message));
        }
        Ok(())
    }

    /// Checks that what was sent is about the object that the path names.
    fn same(&self, asked: &Asked, sent: &Value) -> Result<(), FieldRefusal> {
        let (name, path) = (text(sent, "/metadata/name"), &asked.name);
        if name.is_empty() {
            let message =
                format!("the name of the object ({path} based on URL) was undeterminable: name must be provided");
            return Err(status::bad_request(message));
        }
        if name != *path {
            let message = format!("the name of the object ({name}) does not match the name on the URL ({path})");
            return Err(status::bad_request(message));
        }
        Ok(())
    }

    /// Checks that the namespace takes new objects.
    fn admit(&self, asked: &Asked, name: &str) -> Result<(), FieldRefusal> {
        let namespaces = Resource::at("v1", "namespaces").expect("listed because its row is in the table");
        let namespace = &asked.namespace;
        if namespace.is_empty() {
            return Ok(());
        }
        let Some(found) = self.store.get(namespaces, "", namespace) else {
            return Err(status::not_found(namespaces, namespace));
        };
        if found["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        let cause = json!({
            "reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated"),
        });
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        Err(status::forbidden(asked.resource, name, &why, json!([cause])))
    }

    /// A name that begins so and that no other object of this world gets.
    fn generated(&self, prefix: &str) -> String {
        // Without vowels and what looks like them, as the API server's own names.
        const SIGNS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut number = self.made;
        let mut name = prefix.to_owned();
        for _ in 0..5 {
            let place = number % SIGNS.len() as u64;
            name.push(char::from(SIGNS[usize::try_from(place).unwrap_or_default()]));
            number /= SIGNS.len() as u64;
        }
        name
    }
}

/// What a patch made, if it is still an object of that kind.
fn patched(resource: &Resource, object: Value, strict: bool) -> Result<Value, FieldRefusal> {
    let shown = Value::from(object.to_string());
    decode::checked(resource, object, strict).map_err(|refusal| {
        let why = refusal.message.split_once(": ").map_or("", |(_, why)| why);
        status::invalid_as("", "", "", &[Cause::invalid("patch", &shown, why)])
    })
}

/// The object that a change makes of `live`; for an apply, what was sent.
fn after(live: &Value, change: Change) -> Result<Value, FieldRefusal> {
    match change {
        Change::Replace(sent) | Change::Apply(sent) => Ok(sent),
        Change::Merge(sent) => {
            let mut object = live.clone();
            patch::merge(&mut object, &sent);
            Ok(object)
        }
        Change::Json(operations) => {
            let mut object = live.clone();
            patch::apply(&mut object, &operations).map_err(|patch::Impossible| status::unprocessable())?;
            Ok(object)
        }
    }
}

fn check_version(asked: &Asked, version: &str, live: &Value) -> Result<(), FieldRefusal> {
    let (resource, name) = (asked.resource, &asked.name);
    if version.is_empty() || version == "0" {
        if resource.is(Trait::Versioned) && asked.verb == ApiVerb::Update && asked.subresource != "scale" {
            let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
            return Err(status::invalid_as(resource.group(), resource.plural, name, &[cause]));
        }
        return Ok(());
    }
    if version.parse::<u64>().is_err() {
        return Err(status::unexplained(format!("strconv.ParseUint: parsing \"{version}\": invalid syntax")));
    }
    if version == text(live, "/metadata/resourceVersion") { Ok(()) } else { Err(status::modified(resource, name)) }
}

/// What the API server says of another uid, with the key under which it stores the object.
fn other_uid(asked: &Asked, uid: &str, live: &str) -> String {
    let Asked { resource, namespace, name, .. } = asked;
    // Definitions are stored below their group; some built-in resources below an older name.
    let folder = match resource.plural {
        "services" => "services/specs".to_owned(),
        "nodes" => "minions".to_owned(),
        plural if resource.is(Trait::Custom) => format!("{}/{plural}", resource.group()),
        plural => plural.to_owned(),
    };
    let place = if namespace.is_empty() { String::new() } else { format!("/{namespace}") };
    format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{folder}{place}/{name}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {live}"
    )
}

/// Puts back what no update changes.
fn keep_identity(resource: &Resource, object: &mut Value, live: &Value) {
    object["apiVersion"] = resource.api_version.into();
    object["kind"] = resource.kind.into();
    let metadata = fields_of(object, "metadata");
    for key in [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        match live["metadata"].get(key) {
            Some(value) => metadata.insert(key.to_owned(), value.clone()),
            None => metadata.remove(key),
        };
    }
}

/// Whether two states of an object differ in nothing but when their fields were last written.
fn same_content(object: &Value, live: &Value) -> bool {
    let same = |left: &Value, right: &Value, but: &str| match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let rest = |fields: &Map<String, Value>| fields.keys().filter(|key| *key != but).count();
            rest(left) == rest(right) && left.iter().all(|(key, value)| key == but || right.get(key) == Some(value))
        }
        _ => left == right,
    };
    let (ours, theirs) = (fields::managed_fields(object), fields::managed_fields(live));
    same(object, live, "metadata")
        && same(&object["metadata"], &live["metadata"], "managedFields")
        && ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs, "time"))
}

fn negative(object: &Value) -> Option<Cause> {
    let replicas = &object["spec"]["replicas"];
    let negative = replicas.as_i64().is_some_and(|number| number < 0);
    negative.then(|| Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"))
}

fn text(object: &Value, pointer: &str) -> String {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The fields of a member that must be a map.
fn fields_of<'a>(object: &'a mut Value, member: &str) -> &'a mut Map<String, Value> {
    let member = &mut object[member];
    if !member.is_object() {
        *member = json!({});
    }
    fields_of_all(member)
}

fn fields_of_all(object: &mut Value) -> &mut Map<String, Value> {
    object.as_object_mut().expect("a map because a body that is none was refused")
}
