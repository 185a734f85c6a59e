//! Lists, page by page: what a page holds is cut down as it is read, so that no list is in memory as a whole as the API server sends it.

use super::failure::Failure;
use super::request;
use super::watch::Watch;
use crate::manifest::object::Object;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// How many objects are asked for at once, if that is no more than one answer may hold.
pub(super) const PAGE: usize = 200;

/// Why what has grown the most is not kept.
pub(super) const TOO_MUCH: &str = "all objects that are watched take too much memory, and these have grown the most";

/// A page of a list.
#[derive(Default)]
struct Page {
    metadata: PageMeta,
    items: Option<Vec<Object>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default, rename = "resourceVersion")]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
}

impl Watch {
    /// Lists everything, with the resourceVersion of the list. A page that is too long is asked for in halves. All together may take no more than
    /// [`Watch::room`].
    pub(super) async fn list(&mut self) -> Result<(Vec<Object>, String), Failure> {
        let (mut items, mut next) = (Vec::new(), String::new());
        self.kept = 0;
        self.stays();
        loop {
            let page = match self.page_of(&next).await {
                Err(failure) if failure.is_too_long() && self.page > 1 => {
                    self.page /= 2;
                    continue;
                }
                page => page?,
            };
            let page_items = page.items.unwrap_or_default();
            self.kept += page_items.iter().map(|item| size(item.value())).sum::<usize>();
            if self.kept > self.room {
                return Err(Failure::TooLong(format!("its objects take more than {} MiB", self.room >> 20)));
            }
            if !self.stays() {
                return Err(Failure::TooLong(TOO_MUCH.to_owned()));
            }
            items.extend(page_items);
            if page.metadata.next.is_empty() {
                // Perhaps what was large is gone when everything is listed again.
                self.page = PAGE.min(self.page * 2);
                let version = page.metadata.resource_version;
                return if version.is_empty() {
                    Err(no_list("it has no resourceVersion"))
                } else {
                    Ok((items, version))
                };
            }
            next = page.metadata.next;
        }
    }

    async fn page_of(&self, next: &str) -> Result<Page, Failure> {
        let path = self.cluster.collection(self.kind, &self.namespace).await?;
        let limit = self.page.to_string();
        let mut query = vec![("limit", limit.as_str())];
        let selector = self.selector();
        if let Some(selector) = &selector {
            query.push(("fieldSelector", selector));
        }
        if !next.is_empty() {
            query.push(("continue", next));
        }
        // What stops everything is read before all else.
        let _turn = if self.only.is_none() { Some(self.lists.acquire().await) } else { None };
        let text = self.cluster.text(request::get(&path, &query)).await?;
        let page = PageOf(self).deserialize(&mut serde_json::Deserializer::from_str(&text));
        page.map_err(|error| no_list(&error.to_string()))
            .and_then(|page| if page.items.is_some() { Ok(page) } else { Err(no_list("it has no items")) })
    }
}

/// About how much memory a value takes.
pub(super) fn size(value: &Value) -> usize {
    const OF_ITS_OWN: usize = 80;
    OF_ITS_OWN
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(fields) => fields.iter().map(|(key, value)| OF_ITS_OWN + key.len() + size(value)).sum(),
        }
}

fn no_list(why: &str) -> Failure {
    Failure::Garbage { code: 200, text: format!("no list: {why}") }
}

/// Reads a page.
struct PageOf<'a>(&'a Watch);

impl<'de> DeserializeSeed<'de> for PageOf<'_> {
    type Value = Page;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Page, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PageOf<'_> {
    type Value = Page;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Page, A::Error> {
        let mut page = Page::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => page.metadata = map.next_value()?,
                "items" => page.items = Some(map.next_value_seed(ItemsOf(self.0))?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(page)
    }
}

/// Reads the objects of a page, and keeps of each what is kept.
struct ItemsOf<'a>(&'a Watch);

impl<'de> DeserializeSeed<'de> for ItemsOf<'_> {
    type Value = Vec<Object>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Object>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ItemsOf<'_> {
    type Value = Vec<Object>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Object>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Value>()? {
            items.extend(self.0.object(item));
        }
        Ok(items)
    }
}
