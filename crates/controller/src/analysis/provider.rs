//! Whoever answers the questions of checks.

use super::call::{Call, WebhookVerdict};
use super::judge::{Inquiry, Range};
use super::reading::{Reading, Received, Samples};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A source of measurements, such as a Prometheus. Whoever calls limits the time; a failure is a [`Reading`] too.
pub trait Measures: Send + Sync {
    /// Asks once.
    fn read<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Reading<Samples>>;
}

/// One who judges a version, such as a webhook. Whoever calls limits the time; a failure is a [`Reading`] too.
pub trait Judges: Send + Sync {
    /// Asks once.
    fn call<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Reading<WebhookVerdict>>;
}

/// Who answers, by what can be asked.
#[derive(Clone)]
pub enum ProviderClient {
    /// For measurements.
    Prometheus(Arc<dyn Measures>),
    /// For a judgement.
    Webhook(Arc<dyn Judges>),
}

/// Asks once, of whoever the installation has under that name.
pub async fn ask(provider: Option<&ProviderClient>, question: Inquiry, timeout: Duration) -> Received {
    match question {
        Inquiry::Range(range) => {
            let reading = match provider {
                Some(ProviderClient::Prometheus(prometheus)) => within(timeout, prometheus.read(&range)).await,
                Some(ProviderClient::Webhook(_)) => {
                    Reading::Unusable(format!("provider {} is a webhook, not a Prometheus", range.provider))
                }
                None => nobody(),
            };
            Received::Samples(range, reading)
        }
        Inquiry::Call(call) => {
            let reading = match provider {
                Some(ProviderClient::Webhook(webhook)) => within(timeout, webhook.call(&call)).await,
                Some(ProviderClient::Prometheus(_)) => {
                    Reading::Unusable(format!("provider {} is a Prometheus, not a webhook", call.webhook.provider))
                }
                None => nobody(),
            };
            Received::Verdict(call, reading)
        }
    }
}

fn nobody<T>() -> Reading<T> {
    Reading::Away("the installation has no provider of that name".to_owned())
}

async fn within<T>(patience: Duration, asked: BoxFuture<'_, Reading<T>>) -> Reading<T> {
    let late = |_| Reading::Away(format!("no answer within {} s", patience.as_secs()));
    timeout(patience, asked).await.unwrap_or_else(late)
}
