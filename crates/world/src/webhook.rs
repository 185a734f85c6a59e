//! A webhook of the world in a process: it says what it was told to say.

use futures::future::{BoxFuture, ready};
use serde_json::json;
use std::sync::{Mutex, PoisonError};
use tidegate_controller::analysis::call::{Call, CallKind, Notification, WebhookVerdict, answer};
use tidegate_controller::analysis::provider::Judges;
use tidegate_controller::analysis::reading::Reading;

/// Calls every version good until it is told otherwise.
#[derive(Default)]
pub struct SimulatedWebhook {
    /// A verdict and its reason.
    says: Mutex<Option<(String, String)>>,
    /// What it was told since somebody asked, in words.
    told: Mutex<Vec<String>>,
}

impl SimulatedWebhook {
    /// From now on it says this.
    pub fn say(&self, verdict: &str, reason: &str) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = Some((verdict.to_owned(), reason.to_owned()));
    }
}

impl SimulatedWebhook {
    /// What it was told since the last call.
    pub fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Judges for SimulatedWebhook {
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Reading<WebhookVerdict>> {
        let says = self.says.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let CallKind::Event(Notification { hook, event, outcome }) = &call.asks {
            let ended = outcome.map(|outcome| format!(", {outcome:?}")).unwrap_or_default();
            let line = format!("{hook}: {event:?} {} of {}{ended}", call.about.step, call.about.rollout.name);
            self.told.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        let (verdict, reason) = says.unwrap_or_else(|| ("good".to_owned(), String::new()));
        let said = json!({"run": call.about.run, "step": call.about.step, "verdict": verdict, "reason": reason});
        Box::pin(ready(answer(call, said.to_string().as_bytes())))
    }
}
