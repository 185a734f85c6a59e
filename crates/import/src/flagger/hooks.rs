//! Webhooks of a Canary that are not asked at each interval: before a step, and the others.

use super::fields::HOOK;
use super::{Canary, Router, TRAFFIC_INCREASE};
use crate::draft::{Gates, Phase, Providers};
use crate::fields::{Notes, Outcome};
use crate::input::Field;
use serde_json::{Map, Value, json};

/// The most hooks of a rollout.
const MOST_HOOKS: usize = 10;

impl Canary<'_> {
    /// Webhooks that are neither asked at each interval nor hold a step.
    pub(super) fn hooks(&mut self, providers: &mut Providers) {
        let mut names = Vec::new();
        for hook in self.webhooks() {
            match hook.get("type").text().unwrap_or("rollout") {
                "rollout" | "rollback" | "confirm-rollout" | "confirm-promotion" | TRAFFIC_INCREASE => {}
                "pre-rollout" if matches!(self.router, Router::Replicas | Router::Pods) => {
                    self.notes.say(
                        &hook,
                        Outcome::NotBuilt,
                        "by pods nobody can try the new version before users meet it",
                    );
                }
                "pre-rollout" => names.extend(self.webhook(&hook, providers)),
                "event" => self.note(&hook, &[], providers),
                "post-rollout" => self.note(&hook, &["ended"], providers),
                _ => self.notes.odd(&hook, "a type that Flagger has"),
            }
        }
        if names.is_empty() {
            return;
        }
        // Flagger asks these in each of its phases.
        names.extend(self.rollbacks.iter().cloned());
        let expose = Map::from_iter([("preview".to_owned(), json!("fullSize"))]);
        let before =
            Phase { wish: "pre-rollout".to_owned(), expose, soak: self.interval, checks: names, ..Phase::default() };
        self.draft.phases.insert(0, before);
    }

    /// A webhook that is told how a run fares; of everything, or of these events.
    fn note(&mut self, hook: &Field<'_>, events: &[&str], providers: &mut Providers) {
        if self.draft.hooks.len() >= MOST_HOOKS {
            self.notes.say(hook, Outcome::NotBuilt, format!("a rollout has at most {MOST_HOOKS} hooks"));
            return;
        }
        let Some(call) = call(hook, providers, &mut self.notes) else { return };
        self.notes.say(&hook.get("url"), Outcome::Differs, HOOK);
        self.notes.say(&hook.get("type"), Outcome::Imported, "spec.hooks");
        self.notes.say(&hook.get("name"), Outcome::Imported, "the name of the hook and of its provider");
        self.draft.hook(hook.get("name").text().unwrap_or("webhook"), call, events);
    }

    /// Webhooks that hold a step: one for each.
    pub(super) fn gates(&mut self, providers: &mut Providers) {
        for hook in self.webhooks() {
            let phases = &mut self.draft.phases;
            let mut steps: Vec<&mut Gates> = match hook.get("type").text() {
                Some("confirm-rollout") if phases.is_empty() => vec![&mut self.draft.promotion.before],
                Some("confirm-rollout") => phases.iter_mut().take(1).map(|phase| &mut phase.before).collect(),
                Some("confirm-promotion") => vec![&mut self.draft.promotion.before],
                Some(TRAFFIC_INCREASE) => {
                    let weights = phases.iter_mut().filter(|phase| phase.expose.contains_key("weight"));
                    weights.map(|phase| &mut phase.before).collect()
                }
                _ => continue,
            };
            steps.retain(|gates| !gates.contains_key("webhook"));
            if steps.is_empty() {
                let text = "one webhook stands before a step, and there is one, or there is no such step";
                self.notes.say(&hook, Outcome::NotBuilt, text);
                continue;
            }
            if let Some(call) = call(&hook, providers, &mut self.notes) {
                steps.into_iter().for_each(|gates| drop(gates.insert("webhook".to_owned(), call.clone())));
            }
        }
    }
}

/// How a webhook is asked.
pub(super) fn call(hook: &Field<'_>, providers: &mut Providers, notes: &mut Notes) -> Option<Value> {
    let Some(url) = hook.get("url").text().filter(|url| !url.is_empty()) else {
        notes.odd(hook, "a url");
        return None;
    };
    let provider = providers.named("webhook", url, hook.get("name").text().unwrap_or("webhook"));
    let mut metadata = Map::new();
    for (key, value) in hook.get("metadata").entries() {
        match value.words().filter(|text| text.chars().count() <= 1_024 && metadata.len() < 32) {
            Some(text) => drop(metadata.insert(key.to_owned(), text.into())),
            None => notes.odd(&value, "at most 32 texts of at most 1024 characters"),
        }
    }
    let mut call = json!({"provider": provider});
    if !metadata.is_empty() {
        call["metadata"] = metadata.into();
    }
    Some(call)
}
