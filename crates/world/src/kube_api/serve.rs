//! From a request to its answer. Pure: bytes in, bytes out, and the world changed.

use super::asked::{ApiVerb, Asked};
use super::decode::Sent;
use super::delete::{self, Gone};
use super::fields::FieldRefusal;
use super::form::Form;
use super::options;
use super::select::Selector;
use super::status;
use super::watch::Watcher;
use super::world::World;
use serde_json::{Value, json};
use std::sync::Arc;

/// The parts of a request that matter beside its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope<'a> {
    pub(super) accept: &'a str,
    pub(super) agent: &'a str,
    pub(super) sent: Sent<'a>,
}

/// An answer.
#[derive(Debug)]
pub(super) enum Answer {
    Json(u16, Vec<u8>),
    Watch(Box<Watcher>),
}

impl Answer {
    fn object(code: u16, object: &Value) -> Self {
        Self::Json(code, serde_json::to_vec(object).expect("a JSON value can be written because its keys are texts"))
    }
}

impl World {
    /// Answers a request about objects; reads are answered from the state at `stale`, if that is given.
    pub(super) fn answer(
        &mut self,
        asked: &Asked,
        envelope: &Envelope<'_>,
        stale: Option<u64>,
    ) -> Result<Answer, FieldRefusal> {
        let form = Form::of(envelope.accept);
        let sent = envelope.sent;
        match asked.verb {
            ApiVerb::Get => Ok(Answer::object(200, &form.object(&self.read(asked, stale)?))),
            ApiVerb::List => Ok(Answer::Json(200, self.listed(asked, form, stale)?)),
            ApiVerb::Watch => Ok(Answer::Watch(Box::new(Watcher::open(self, asked.clone(), form)?))),
            ApiVerb::Create => {
                let how = options::read(asked, envelope.agent, false)?;
                let object = sent.object(asked.resource, how.strict)?;
                let created = self.created(asked, &how, object)?;
                Ok(Answer::object(201, &form.object(&created)))
            }
            ApiVerb::Update | ApiVerb::Patch => {
                let patches = asked.verb == ApiVerb::Patch;
                // Whether the media type is one at all is told before anything is read.
                let change = patches.then(|| sent.patch(asked.resource)).transpose()?;
                let how = options::read(asked, envelope.agent, patches && sent.applies())?;
                let change = match change {
                    Some(change) => change,
                    None => super::write::Change::Replace(self.replacement(asked, &sent, how.strict)?),
                };
                let (code, object) = self.changed(asked, &how, change)?;
                Ok(Answer::object(code, &form.object(&object)))
            }
            ApiVerb::Delete => {
                let mut how = options::read(asked, envelope.agent, false)?;
                let options = delete_options(asked, &sent)?;
                how.dry_run |= options["dryRun"] == json!(["All"]);
                let gone = self.deleted(asked, &how, &options)?;
                let answer = delete::answer(asked, &gone);
                let shown = matches!(gone, Gone::Later(_)) || answer["kind"] == asked.resource.kind;
                let answer = if shown { form.object(&answer) } else { answer };
                Ok(Answer::object(200, &answer))
            }
            ApiVerb::DeleteCollection => self.delete_collection(asked, envelope, form),
        }
    }

    /// The body of a replacement: of a `Scale`, or of an object.
    fn replacement(&self, asked: &Asked, sent: &Sent<'_>, strict: bool) -> Result<Value, FieldRefusal> {
        if asked.subresource == "scale" {
            return serde_json::from_slice(sent.body).map_err(|error| status::bad_request(error.to_string()));
        }
        sent.object(asked.resource, strict)
    }

    fn delete_collection(
        &mut self,
        asked: &Asked,
        envelope: &Envelope<'_>,
        form: Form,
    ) -> Result<Answer, FieldRefusal> {
        let how = options::read(asked, envelope.agent, false)?;
        let query = &asked.query;
        let selector = Selector::parse(asked.resource, query.get("labelSelector"), query.get("fieldSelector"))?;
        let version = self.version().to_string();
        let gone = self.delete_all(asked, &how, &delete_options(asked, &envelope.sent)?, &selector)?;
        let items: Vec<Value> = gone.iter().map(|object| item(form, asked, object)).collect();
        let (kind, api_version) = form.list(asked.resource);
        let list = json!({
            "kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": version}, "items": items,
        });
        Ok(Answer::object(200, &list))
    }
}

fn item(form: Form, asked: &Asked, object: &Arc<Value>) -> Value {
    serde_json::from_slice(&form.item(asked.resource, object)).expect("valid because it was just written as JSON")
}

/// The options of a deletion: from the body, or else from the query.
fn delete_options(asked: &Asked, sent: &Sent<'_>) -> Result<Value, FieldRefusal> {
    if sent.body.is_empty() {
        let mut options = json!({});
        if let policy @ ("Foreground" | "Background" | "Orphan") = asked.query.get("propagationPolicy") {
            options["propagationPolicy"] = policy.into();
        }
        if let Ok(seconds) = asked.query.get("gracePeriodSeconds").parse::<i64>() {
            options["gracePeriodSeconds"] = seconds.into();
        }
        return Ok(options);
    }
    let options: Value = serde_json::from_slice(sent.body)
        .map_err(|error| status::bad_request(format!("couldn't get version/kind; json parse error: {error}")))?;
    Ok(options)
}
