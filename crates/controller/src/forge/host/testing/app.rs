//! The same host for a GitHub App.

use super::Server;
use axum::http::Method;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Server {
    /// Lets time pass on the host.
    pub(crate) fn pass(&self, time: TimeDelta) {
        self.state().app.as_mut().unwrap().1 += time;
    }

    /// What is answered to whoever reads or writes check runs: to an App that may do so, as it says.
    pub(super) fn checks(
        &self,
        method: &str,
        below: &[&str],
        query: &BTreeMap<String, String>,
        sent: &Value,
    ) -> (u16, Value) {
        let mut state = self.state();
        if state.app.as_ref().is_none_or(|(app, _)| app.granted["checks"] != "write") {
            return (403, json!({"message": "Resource not accessible by integration"}));
        }
        state.checks.answer(method, below, query, sent).unwrap_or_else(|| (404, json!({"message": "Not Found"})))
    }

    /// What an App is answered, if it is let in alone; nothing if the call is about something else.
    pub(super) fn to_app(&self, method: &Method, path: &str, authorization: &str, body: &[u8]) -> Option<(u16, Value)> {
        let mut state = self.state();
        let (app, now) = state.app.as_mut()?;
        let path = path.strip_prefix("/api/v3/")?;
        app.answer(method.as_str(), path, authorization, &serde_json::from_slice(body).unwrap_or_default(), *now)
    }
}
