//! Webhooks of a Canary that are not asked at each interval: before a step, and the others.

use super::texts::HOOK;
use super::{Canary, Router, TRAFFIC_INCREASE};
use crate::draft::{BY_PODS, Gates, Phase, Providers, sparse};
use crate::fields::FieldOutcome::{Differs, Imported, NotBuilt};
use crate::fields::Notes;
use crate::input::Field;
use serde_json::{Map, Value, json};

/// The most hooks of a rollout.
const MOST_HOOKS: usize = 10;

impl Canary<'_> {
    /// Webhooks that are neither asked at each interval nor hold a step.
    pub(super) fn hooks(&mut self) {
        let mut names = Vec::new();
        for (hook, kind) in self.webhooks() {
            match kind {
                "rollout" | "rollback" | "confirm-rollout" | "confirm-promotion" | TRAFFIC_INCREASE => {}
                "pre-rollout" if matches!(self.router, Router::Replicas | Router::Pods) => {
                    self.notes.say(&hook, NotBuilt, BY_PODS);
                }
                "pre-rollout" => names.extend(self.webhook(&hook)),
                "event" => self.tell(&hook, &[]),
                "post-rollout" => self.tell(&hook, &["ended"]),
                _ => self.notes.odd(&hook, "a type that Flagger has"),
            }
        }
        if names.is_empty() {
            return;
        }
        // Flagger asks these in each of its phases.
        names.extend(self.rollbacks.iter().cloned());
        let (wish, soak) = ("pre-rollout".to_owned(), self.interval);
        self.draft.phases.insert(0, Phase { wish, soak, checks: names, ..Phase::preview() });
    }

    /// A webhook that is told how a run fares; of everything, or of these events.
    fn tell(&mut self, hook: &Field<'_>, events: &[&str]) {
        if self.draft.hooks.len() >= MOST_HOOKS {
            return self.notes.say(hook, NotBuilt, format!("a rollout has at most {MOST_HOOKS} hooks"));
        }
        let Some(call) = self.call(hook) else { return };
        self.notes.say(&hook.get("url"), Differs, HOOK);
        self.notes.say(&hook.get("type"), Imported, "spec.hooks");
        self.notes.say(&hook.get("name"), Imported, "the name of the hook and of its provider");
        self.draft.hook(hook.get("name").text().unwrap_or("webhook"), call, events);
    }

    /// Webhooks that hold a step: one for each.
    pub(super) fn gates(&mut self) {
        for (hook, kind) in self.webhooks() {
            let phases = &mut self.draft.phases;
            let mut steps: Vec<&mut Gates> = match kind {
                "confirm-rollout" if !phases.is_empty() => vec![&mut phases[0].before],
                "confirm-rollout" | "confirm-promotion" => vec![&mut self.draft.promotion.before],
                TRAFFIC_INCREASE => {
                    let weights = phases.iter_mut().filter(|phase| phase.expose.contains_key("weight"));
                    weights.map(|phase| &mut phase.before).collect()
                }
                _ => continue,
            };
            steps.retain(|gates| !gates.contains_key("webhook"));
            if steps.is_empty() {
                let text = "one webhook stands before a step, and there is one, or there is no such step";
                self.notes.say(&hook, NotBuilt, text);
            } else if let Some(call) = call(&hook, &mut self.shared.providers, &mut self.notes) {
                steps.into_iter().for_each(|gates| drop(gates.insert("webhook".to_owned(), call.clone())));
            }
        }
    }

    /// How a webhook is asked.
    pub(super) fn call(&mut self, hook: &Field<'_>) -> Option<Value> {
        call(hook, &mut self.shared.providers, &mut self.notes)
    }
}

fn call(hook: &Field<'_>, providers: &mut Providers, notes: &mut Notes) -> Option<Value> {
    let url = notes.wanted(hook, hook.get("url").text().filter(|url| !url.is_empty()), "a url")?;
    let provider = providers.named("webhook", url, hook.get("name").text().unwrap_or("webhook"));
    let mut metadata = Map::new();
    for (key, value) in hook.get("metadata").entries() {
        match value.words().filter(|text| text.chars().count() <= 1_024 && metadata.len() < 32) {
            Some(text) => drop(metadata.insert(key.to_owned(), text.into())),
            None => notes.odd(&value, "at most 32 texts of at most 1024 characters"),
        }
    }
    Some(sparse(json!({"provider": provider, "metadata": metadata})))
}
