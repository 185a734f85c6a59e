//! What goes wrong on purpose: one closure sees each request and each event of a watch, and says what becomes of it.

use super::asked::{ApiVerb, Asked};
use super::fields::FieldRefusal;
use super::resource::Resource;
use super::status;
use super::store::Happened;
use chrono::TimeDelta;
use serde_json::json;

/// What a hook is shown.
#[derive(Debug, Clone, Copy)]
pub struct SeenRequest<'a> {
    /// Counts all that was shown, from 1.
    pub number: u64,
    /// Whose connection it is, see [`super::KubeApi::caller`].
    pub caller: &'a str,
    /// What it is about.
    pub resource: &'static Resource,
    /// Empty for all namespaces, and for objects that belong to none.
    pub namespace: &'a str,
    /// Empty for collections and for what is to be created.
    pub name: &'a str,
    /// Empty, `status` or `scale`.
    pub subresource: &'a str,
    /// What it is.
    pub what: What,
}

/// A request, or an event on its way to a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A request that has arrived.
    Request {
        /// What it asks.
        verb: ApiVerb,
        /// Whether it only asks what would be.
        dry_run: bool,
    },
    /// An event that a watch is about to be told.
    Event(Happened),
}

/// What becomes of it. What does not fit (an event that fails, a request that is doubled) passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FaultVerdict {
    /// Nothing goes wrong.
    #[default]
    Pass,
    /// The request fails and has no effect.
    Before(Fault),
    /// The request has its effect, but fails for whoever asked.
    After(Fault),
    /// The request reaches the server that much later on the world's clock, whether or not anybody waits for it still.
    Late(TimeDelta),
    /// The read is answered as the world was at that version; 410 if that is forgotten.
    Stale(u64),
    /// The event never arrives.
    Lose,
    /// The event is lost with its connection.
    Cut,
    /// The event arrives twice.
    Double,
    /// The event, and what follows it, arrives that much later on the world's clock.
    Delay(TimeDelta),
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// 403.
    Forbidden,
    /// 409: somebody else was faster.
    Conflict,
    /// 410.
    Expired,
    /// 429, to be asked again after a second.
    TooManyRequests,
    /// 500.
    Internal,
    /// 503.
    Unavailable,
    /// 504.
    Timeout,
    /// No answer comes, ever.
    Silence,
    /// The connection is reset.
    Reset,
}

impl Fault {
    /// What is answered; `None` where nothing is.
    pub(super) fn refusal(self, asked: &Asked) -> Option<FieldRefusal> {
        let trouble = |code, reason, message, after| Some(status::trouble(code, reason, message, after));
        match self {
            Self::Forbidden => Some(forbidden(asked)),
            Self::Conflict => Some(status::modified(asked.resource, &asked.name)),
            Self::Expired => {
                Some(status::expired(format!("too old resource version: {} (0)", asked.query.get("resourceVersion"))))
            }
            Self::TooManyRequests => {
                let message = "too many requests, please try again later";
                trouble(429, "TooManyRequests", message, Some(1))
            }
            Self::Internal => {
                trouble(500, "InternalError", "Internal error occurred: etcdserver: leader changed", None)
            }
            Self::Unavailable => {
                let message = "the server is currently unable to handle the request";
                trouble(503, "ServiceUnavailable", message, None)
            }
            Self::Timeout => {
                let message = "Timeout: request did not complete within the allotted timeout";
                trouble(504, "Timeout", message, None)
            }
            Self::Silence | Self::Reset => None,
        }
    }
}

fn forbidden(asked: &Asked) -> FieldRefusal {
    let Asked { verb, resource, namespace, name, subresource, .. } = asked;
    let part = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{namespace}\"")
    };
    let (plural, group) = (resource.plural, resource.group());
    let why = format!("User \"world\" cannot {verb} resource \"{plural}{part}\" in API group \"{group}\" {scope}");
    status::forbidden(resource, name, &why, json!([]))
}
