//! Reading: one object, or many, page by page. Pure.

use super::asked::Asked;
use super::fields::FieldRefusal;
use super::form::Form;
use super::resource::{Resource, Trait};
use super::select::Selector;
use super::status::{self, Cause};
use super::store::{Objects, within};
use super::world::World;
use super::{scale, store};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

/// What is answered to a page that began before the history that is known.
const PAGE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a \
    new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the \
    results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or \
    deleted between the time the first chunk was returned and now may show up in the list.";

/// Where a list goes on: at which version, after which key.
struct Place {
    version: u64,
    after: String,
}

impl Place {
    fn print(&self) -> String {
        let hex: String = self.after.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{hex}", self.version)
    }

    fn parse(token: &str) -> Option<Self> {
        let (version, hex) = token.split_once('-')?;
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
        let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
        Some(Self { version: version.parse().ok()?, after: String::from_utf8(bytes?).ok()? })
    }
}

impl World {
    /// One object; at `stale`, if that is given.
    pub(super) fn read(&self, asked: &Asked, stale: Option<u64>) -> Result<Arc<Value>, FieldRefusal> {
        let wanted = asked.query.get("resourceVersion");
        if !wanted.is_empty() {
            let wanted: u64 = wanted.parse().map_err(|_| {
                status::unexplained(format!("resourceVersion: Invalid value: \"{wanted}\": {}", not_a_number(wanted)))
            })?;
            self.check_not_ahead(wanted)?;
        }
        let objects = self.objects(asked.resource, stale)?;
        let found = objects.get(store::key(&asked.namespace, &asked.name).as_str());
        let found = found.ok_or_else(|| status::not_found(asked.resource, &asked.name))?;
        Ok(if asked.subresource == "scale" { scale::of(found) } else { found.clone() })
    }

    /// A list, or a page of it, as text.
    pub(super) fn listed(&self, asked: &Asked, form: Form, stale: Option<u64>) -> Result<Vec<u8>, FieldRefusal> {
        let query = &asked.query;
        let selector = Selector::parse(asked.resource, query.get("labelSelector"), query.get("fieldSelector"))?;
        let limit = match query.get("limit") {
            "" => 0,
            text => text
                .parse::<i64>()
                .map_err(|_| status::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax")))?,
        };
        let (version, exact) = self.list_version(asked, stale)?;
        let place = match query.get("continue") {
            "" => None,
            token => Some(Place::parse(token).ok_or_else(|| {
                status::bad_request("invalid continue token: continue key is not valid: it is none of this server's")
            })?),
        };
        let version = place.as_ref().map_or(version, |place| place.version);
        let objects = self.store.at(asked.resource, version).ok_or_else(|| match (&place, exact) {
            (Some(_), _) => status::expired(PAGE_EXPIRED),
            (None, _) => status::expired("The resourceVersion for the provided list is too old."),
        })?;
        let limit = usize::try_from(limit).unwrap_or(0);
        Ok(page(asked, form, &objects, &selector, version, limit, place.as_ref()))
    }

    /// At which version a list is answered, and whether exactly that one was asked for.
    fn list_version(&self, asked: &Asked, stale: Option<u64>) -> Result<(u64, bool), FieldRefusal> {
        let query = &asked.query;
        let (wanted, how) = (query.get("resourceVersion"), query.get("resourceVersionMatch"));
        let refused = |why| Err(status::invalid_options("ListOptions", Cause::forbidden("resourceVersionMatch", why)));
        if !how.is_empty() && wanted.is_empty() {
            return refused("resourceVersionMatch is forbidden unless resourceVersion is provided");
        }
        if !how.is_empty() && !query.get("continue").is_empty() {
            return refused("resourceVersionMatch is forbidden when continue is provided");
        }
        let current = stale.unwrap_or(self.store.version());
        if wanted.is_empty() {
            return Ok((current, false));
        }
        let number: u64 = wanted.parse().map_err(|_| {
            let why = not_a_number(wanted);
            status::bad_request(format!(
                "invalid resource version: resourceVersion: Invalid value: \"{wanted}\": {why}"
            ))
        })?;
        self.check_not_ahead(number)?;
        Ok(if how == "Exact" { (number, true) } else { (current, false) })
    }

    pub(super) fn check_not_ahead(&self, version: u64) -> Result<(), FieldRefusal> {
        let current = self.store.version();
        if version > current { Err(status::too_new(version, current)) } else { Ok(()) }
    }

    /// The objects of a resource, now or as they were at a version that is still known.
    fn objects(&self, resource: &Resource, stale: Option<u64>) -> Result<Cow<'_, Objects>, FieldRefusal> {
        let version = stale.unwrap_or(self.store.version());
        let objects = self.store.at(resource, version);
        objects.ok_or_else(|| status::expired(format!("the state at {version} is forgotten")))
    }
}

/// What Go says of a text that is no number.
pub(super) fn not_a_number(text: &str) -> String {
    format!("strconv.ParseUint: parsing \"{text}\": invalid syntax")
}

fn page(
    asked: &Asked,
    form: Form,
    objects: &Objects,
    selector: &Selector,
    version: u64,
    limit: usize,
    place: Option<&Place>,
) -> Vec<u8> {
    let after = place.map(|place| place.after.as_str());
    let rest: Box<dyn Iterator<Item = (&Arc<str>, &Arc<Value>)>> = match after {
        Some(after) => {
            let prefix = if asked.namespace.is_empty() { String::new() } else { store::key(&asked.namespace, "") };
            let from = objects.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
            Box::new(from.take_while(move |(key, _)| key.starts_with(&prefix)))
        }
        None => Box::new(within(objects, &asked.namespace)),
    };
    let mut rest = rest.peekable();
    let mut items = Vec::new();
    let mut last = None;
    while limit == 0 || items.len() < limit {
        let Some((key, object)) = rest.next() else { break };
        if selector.matches(object) {
            items.push(form.item(asked.resource, object));
        }
        last = Some(key);
    }
    let mut metadata = json!({"resourceVersion": version.to_string()});
    if asked.resource.is(Trait::Custom) && form == Form::Whole {
        metadata["continue"] = "".into();
    }
    if let (Some(last), true) = (last, rest.peek().is_some()) {
        metadata["continue"] = Place { version, after: last.to_string() }.print().into();
        if selector.is_empty() {
            metadata["remainingItemCount"] = rest.count().into();
        }
    }
    let (kind, api_version) = form.list(asked.resource);
    let head = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata}).to_string();
    let mut text = head.into_bytes();
    text.truncate(text.len() - 1);
    text.extend_from_slice(b",\"items\":[");
    text.extend(items.join(&b','));
    text.extend_from_slice(b"]}");
    text
}
