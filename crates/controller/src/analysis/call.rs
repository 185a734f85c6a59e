//! What a webhook is asked, and what its answer says. Pure: what is sent and what is read are texts.
//!
//! A question says of which version it is, and since when this is in force, so that the same question can be asked again at
//! any time: by a process that started anew, or by two of them.

use super::reading::Reading;
use crate::manifest::desired::WebhookCall;
use crate::manifest::diagnostic::quoted;
use crate::manifest::hook::Event;
use crate::manifest::ids::{CheckName, Revision, RolloutId, RunId, StepName};
use crate::manifest::raw::ApiVersion;
use crate::record::state::{Outcome, Time};
use crate::record::text::plain;
use serde::Deserialize;
use serde_json::json;

/// Which version a question is about, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// The rollout.
    pub rollout: RolloutId,
    /// The run that brings the version.
    pub run: RunId,
    /// The step that it stands on, or waits for.
    pub step: StepName,
    /// The version.
    pub revision: Revision,
}

/// A question to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Who is asked, and with which words of its own.
    pub webhook: WebhookCall,
    /// About what.
    pub about: About,
    /// What is asked.
    pub asks: CallKind,
    /// Since when the step has been in force, or is waited for.
    pub since: Time,
    /// The moment that the question is about.
    pub at: Time,
}

impl Call {
    /// Whether both are questions of one check of a rollout, or of a gate before it: one is stood before at a time.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.asks == other.asks
    }
}

/// What a webhook is asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// Is the version good, by this check?
    Check(CheckName),
    /// May the run enter the step?
    Gate,
    /// Nothing: it is told.
    Event(Notification),
}

/// What a hook is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notification {
    /// Which hook.
    pub hook: CheckName,
    /// What happened.
    pub event: Event,
    /// How the run ended.
    pub outcome: Option<Outcome>,
}

/// What a webhook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookVerdict {
    /// The version is good.
    Good,
    /// It is bad, for this reason.
    Bad(String),
    /// Nothing yet, for this reason.
    Hold(String),
}

/// The text of a question.
#[must_use]
pub fn body(call: &Call) -> String {
    let Call { webhook, about: About { rollout, run, step, revision }, asks, since, at } = call;
    let kind = match asks {
        CallKind::Check(_) => "Check",
        CallKind::Gate => "Gate",
        CallKind::Event(_) => "Event",
    };
    let mut question = json!({
        "apiVersion": ApiVersion::TEXT,
        "kind": kind,
        "rollout": {"namespace": rollout.namespace, "name": rollout.name},
        "run": run,
        "step": step,
        "revision": revision,
        "since": since,
        "at": at,
        "metadata": webhook.metadata,
    });
    match asks {
        CallKind::Check(name) => question["check"] = json!(name),
        CallKind::Gate => {}
        CallKind::Event(Notification { hook, event, outcome }) => {
            let event = json!(event);
            let key = format!("{rollout}/{run}/{hook}/{}/{step}", event.as_str().unwrap_or_default());
            question["hook"] = json!(hook);
            question["event"] = event;
            question["key"] = json!(key);
            if let Some(outcome) = outcome {
                question["outcome"] = json!(outcome);
            }
        }
    }
    question.to_string()
}

/// An answer; what else is in it is left alone.
#[derive(Deserialize)]
struct Answer {
    run: String,
    step: String,
    #[serde(default)]
    verdict: String,
    #[serde(default)]
    reason: String,
}

/// What an answer to a question says. It names the run and the step that it is about: an answer that stands still, or
/// lay in a cache, says nothing.
#[must_use]
pub fn answer(call: &Call, body: &[u8]) -> Reading<WebhookVerdict> {
    let unusable = |why: &str| Reading::Unusable(plain(why));
    let Answer { run, step, verdict, reason } = match serde_json::from_slice(body) {
        Ok(answer) => answer,
        Err(error) => return unusable(&format!("the answer is not the JSON that is wanted: {error}")),
    };
    if run != call.about.run.as_str() || step != call.about.step.as_str() {
        let found = format!("the answer is about run {} and step {}", quoted(&run), quoted(&step));
        return unusable(&format!("{found}, not about run {} and step {}", call.about.run, call.about.step));
    }
    match verdict.as_str() {
        // Whoever is told has nothing to say.
        _ if matches!(call.asks, CallKind::Event(_)) => Reading::Said(WebhookVerdict::Good),
        "good" => Reading::Said(WebhookVerdict::Good),
        "bad" => Reading::Said(WebhookVerdict::Bad(plain(&reason))),
        "hold" => Reading::Said(WebhookVerdict::Hold(plain(&reason))),
        other => unusable(&format!("the verdict {} is none of good, bad and hold", quoted(other))),
    }
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::{About, Call, CallKind};
    use crate::manifest::desired::WebhookCall;
    use crate::record::state::Time;

    /// A question of run 7 on `tenth`, which has been in force since second 0.
    pub(crate) fn call(at: Time) -> Call {
        let metadata = [("suite".to_owned(), "smoke".to_owned())].into();
        Call {
            webhook: WebhookCall { provider: "tester".parse().unwrap(), metadata },
            about: About {
                rollout: "shop/podinfo".parse().unwrap(),
                run: "7-9ac41f02".parse().unwrap(),
                step: "tenth".parse().unwrap(),
                revision: format!("v1:sha256:{}", "07".repeat(32)).parse().unwrap(),
            },
            asks: CallKind::Check("smoke".parse().unwrap()),
            since: Time::from_timestamp(0, 0).unwrap(),
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::text::CAP;

    fn asked() -> Call {
        fixture::call(Time::from_timestamp_millis(60_250).unwrap())
    }

    fn said(body: &[u8]) -> Reading<WebhookVerdict> {
        answer(&asked(), body)
    }

    fn unusable(body: &[u8]) -> String {
        let Reading::Unusable(why) = said(body) else { panic!("{:?}", String::from_utf8_lossy(body)) };
        assert!(why.len() <= CAP && !why.contains(char::is_control), "{why}");
        why
    }

    fn with(verdict: &str) -> String {
        json!({"run": "7-9ac41f02", "step": "tenth", "verdict": verdict, "reason": "a  reason\u{1b}[31m"}).to_string()
    }

    #[test]
    fn a_question_says_what_it_is_about() {
        let revision = format!("v1:sha256:{}", "07".repeat(32));
        let wanted = format!(
            "{{\"apiVersion\":\"tidegate.io/v1alpha1\",\"kind\":\"Check\",\
             \"rollout\":{{\"namespace\":\"shop\",\"name\":\"podinfo\"}},\"run\":\"7-9ac41f02\",\"step\":\"tenth\",\
             \"revision\":\"{revision}\",\"since\":\"1970-01-01T00:00:00Z\",\
             \"at\":\"1970-01-01T00:01:00.250Z\",\"metadata\":{{\"suite\":\"smoke\"}},\"check\":\"smoke\"}}"
        );
        assert_eq!(body(&asked()), wanted);
        let gate = wanted.replace("\"kind\":\"Check\"", "\"kind\":\"Gate\"").replace(",\"check\":\"smoke\"", "");
        assert_eq!(body(&Call { asks: CallKind::Gate, ..asked() }), gate);
        let more = "\"hook\":\"chat\",\"event\":\"ended\",\"key\":\"shop/podinfo/7-9ac41f02/chat/ended/tenth\",\"outcome\":\"Failed\"";
        let event = wanted.replace("\"Check\"", "\"Event\"").replace("\"check\":\"smoke\"", more);
        assert_eq!(body(&told()), event);
    }

    fn told() -> Call {
        let outcome = Some(Outcome::Failed);
        let told = Notification { hook: "chat".parse().unwrap(), event: Event::Ended, outcome };
        Call { asks: CallKind::Event(told), ..asked() }
    }

    #[test]
    fn who_is_told_says_no_more_than_what_it_was_told_of() {
        let taken = |body: &str| answer(&told(), body.as_bytes()) == Reading::Said(WebhookVerdict::Good);
        assert!(taken(r#"{"run":"7-9ac41f02","step":"tenth"}"#) && taken(&with("bad")));
        assert!(!taken("{}") && !taken("") && !taken(&with("good").replace("7-9", "6-9")));
    }

    #[test]
    fn an_answer_is_good_bad_or_hold_with_a_reason_that_hides_nothing() {
        let reason = "a reason\\u{1b}[31m".to_owned();
        assert_eq!(said(with("good").as_bytes()), Reading::Said(WebhookVerdict::Good));
        assert_eq!(said(with("bad").as_bytes()), Reading::Said(WebhookVerdict::Bad(reason.clone())));
        assert_eq!(said(with("hold").as_bytes()), Reading::Said(WebhookVerdict::Hold(reason)));
        let short = br#"{"verdict":"bad","run":"7-9ac41f02","step":"tenth","more":[{}]}"#;
        assert_eq!(said(short), Reading::Said(WebhookVerdict::Bad(String::new())));
        let long = with("bad").replace("a  reason", &"ä".repeat(9_000));
        let Reading::Said(WebhookVerdict::Bad(reason)) = said(long.as_bytes()) else { panic!("{long}") };
        assert!(reason.len() <= CAP && reason.ends_with('…'), "{reason}");
    }

    #[test]
    fn c_34_an_answer_to_something_else_says_nothing() {
        let wanted =
            "the answer is about run \"6-9ac41f02\" and step \"tenth\", not about run 7-9ac41f02 and step tenth";
        assert_eq!(unusable(with("bad").replace("7-9", "6-9").as_bytes()), wanted);
        for (old, new) in [("tenth", "half"), ("tenth", "tenth "), ("tenth", "Tenth"), ("7-9ac41f02", "7")] {
            let why = unusable(with("bad").replace(old, new).as_bytes());
            assert!(why.starts_with("the answer is about run "), "{why}");
        }
        for verdict in ["Good", "", "GOOD", "good ", "ok", "\u{202e}doog"] {
            let why = unusable(with(verdict).as_bytes());
            assert!(why.ends_with(" is none of good, bad and hold"), "{why}");
        }
    }

    #[test]
    fn what_is_no_answer_is_of_no_use() {
        let twice = with("good").replace("\"step\"", "\"verdict\":\"bad\",\"step\"");
        let deep = with("good").replace("\"step\"", &format!("\"more\":{},\"step\"", "[".repeat(100_000)));
        let huge = with("good").replace("\"good\"", &format!("\"{}\"", "x".repeat(1_000_000)));
        let number = with("good").replace("\"good\"", "1");
        let texts = ["", "{}", "null", "true", "good", "<html>log in</html>", "{\"verdict\":\"good\"}"];
        for text in texts.into_iter().chain([&*twice, &*deep, &*huge, &*number]) {
            unusable(text.as_bytes());
        }
        let mut bytes = with("good").into_bytes();
        bytes[40] = 0xff;
        unusable(&bytes);
        unusable(&[0; 64]);
        unusable(&[with("good").as_bytes(), b"{}"].concat());
    }
}
