//! What a failed request means: the table of requirement X-13. Pure.
//!
//! Answers are told apart by code, reason and causes. The API gives no other sign than its text for what is listed
//! in [`text`], and only there is text looked at.

use crate::manifest::object::{Kind, ObjectRef};
use crate::record::text::with_causes;
use crate::workload::live::WriteOutcome;
use http_body_util::LengthLimitError;
use kube::core::Status;
use kube::core::response::StatusCause;
use std::error::Error as _;
use std::fmt::{self, Write as _};

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The API server says no, in its own words.
    Answered(Box<Status>),
    /// Somebody else answered, or the answer is broken: a proxy's page, a cut body.
    Garbage {
        /// The HTTP code; 0 if there is none.
        code: u16,
        /// What came.
        text: String,
    },
    /// An answer that holds more than one may.
    TooLong(String),
    /// No answer: time-out, refused connection, broken TLS.
    Silent(String),
}

/// Signs that only the text of an answer gives, each with its reason.
mod text {
    /// Go's own answer for a path that nobody serves: the group has no version installed (no CRD). It is no Status.
    pub(super) const NO_SUCH_PATH: &str = "404 page not found";

    /// Server-side apply answers content that does not fit the schema with code 500 and no reason
    /// (`structured-merge-diff` errors are not wrapped); an internal error has the reason `InternalError`.
    pub(super) fn schema_mismatch(code: u16, reason: &str, message: &str) -> bool {
        code == 500 && reason.is_empty() && message.starts_with("failed to create typed patch object")
    }

    /// Quota, RBAC and admission all answer 403 with the reason `Forbidden` and the same details.
    pub(super) fn quota(message: &str) -> bool {
        message.contains("exceeded quota")
    }

    /// As above: webhooks write "admission webhook … denied the request", policies "… denied request".
    pub(super) fn denied_by_admission(message: &str) -> bool {
        message.contains("denied the request") || message.contains("denied request")
    }

    /// The other manager of a field is named in the message of the cause, between the first quotes.
    pub(super) fn manager(cause: &str) -> Option<&str> {
        cause.strip_prefix("conflict with \"")?.split('"').next()
    }
}

/// The most that is kept of a text of foreign origin: 1 KiB (design §13.13).
const FOREIGN_LIMIT: usize = 1_024;

/// A text of foreign origin, safe to show: control and direction characters escaped, at most 1 KiB.
#[must_use]
pub fn foreign(text: &str) -> String {
    let mut shown = String::new();
    for c in text.trim().chars() {
        let before = shown.len();
        let direction =
            matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
        // Writing to a String cannot fail.
        let _ =
            if c.is_control() || direction { write!(shown, "{}", c.escape_unicode()) } else { write!(shown, "{c}") };
        if shown.len() > FOREIGN_LIMIT - '…'.len_utf8() {
            shown.truncate(before);
            shown.push('…');
            break;
        }
    }
    shown
}

impl Failure {
    /// Sorts an error of the client.
    pub(crate) fn of(error: kube::Error) -> Self {
        if let kube::Error::Api(status) = error {
            // What kube makes of an answer that is no Status (kube-client, `handle_api_errors`).
            return if status.reason == "Failed to parse error data" {
                Self::Garbage { code: status.code, text: foreign(&status.message) }
            } else {
                Self::Answered(status)
            };
        }
        let text = with_causes(&error);
        let mut causes = std::iter::successors(error.source(), |&cause| cause.source());
        let too_long = causes.any(|cause| cause.is::<LengthLimitError>());
        if matches!(error, kube::Error::SerdeError(_) | kube::Error::FromUtf8(_)) {
            Self::Garbage { code: 0, text: foreign(&text) }
        } else if too_long {
            Self::TooLong(foreign(&text))
        } else {
            Self::Silent(foreign(&text))
        }
    }

    /// The code of the answer.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status.code),
            Self::Garbage { code, .. } => Some(*code),
            Self::TooLong(_) | Self::Silent(_) => None,
        }
    }

    /// Whether less has to be asked for at once.
    pub(crate) fn is_too_long(&self) -> bool {
        matches!(self, Self::TooLong(_)) || self.code() == Some(413)
    }

    /// Whether the history that was asked for is gone, so that everything has to be listed again.
    pub(crate) fn is_expired(&self) -> bool {
        self.code() == Some(410)
    }

    /// Whether the resource is not served at all, as opposed to one object of it missing.
    pub(crate) fn is_missing_kind(&self) -> bool {
        match self {
            Self::Answered(status) => {
                status.code == 404 && status.details.as_ref().is_none_or(|details| details.kind.is_empty())
            }
            Self::Garbage { code, text } => *code == 404 && text == text::NO_SUCH_PATH,
            Self::TooLong(_) | Self::Silent(_) => false,
        }
    }

    /// Whether the object that was asked for does not exist, while its kind does.
    pub(crate) fn is_absent(&self, plural: &str) -> bool {
        match self {
            Self::Answered(status) => {
                status.code == 404 && status.details.as_ref().is_some_and(|details| details.kind == plural)
            }
            Self::Garbage { .. } | Self::TooLong(_) | Self::Silent(_) => false,
        }
    }

    /// What it means for a request about `target`.
    pub(crate) fn outcome(&self, target: &ObjectRef) -> WriteOutcome {
        if self.is_missing_kind() {
            return WriteOutcome::MissingKind(target.kind);
        }
        match self {
            Self::Answered(status) => answered(status, target.kind),
            Self::Garbage { .. } | Self::TooLong(_) | Self::Silent(_) => WriteOutcome::Retriable(self.to_string()),
        }
    }
}

/// A kind that is not served, as an API server says it of a path that it does not know.
pub(super) fn missing() -> Failure {
    Failure::Garbage { code: 404, text: text::NO_SUCH_PATH.to_owned() }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered(status) => f.write_str(&foreign(&status.message)),
            Self::Garbage { code: 0, text } => write!(f, "an answer that is none of an API server: {text}"),
            Self::Garbage { code, text } => write!(f, "HTTP {code}, but not from an API server: {text}"),
            Self::TooLong(why) | Self::Silent(why) => f.write_str(why),
        }
    }
}

fn answered(status: &Status, kind: Kind) -> WriteOutcome {
    let message = foreign(&status.message);
    match status.code {
        409 => conflict(causes(status)).unwrap_or(WriteOutcome::Stale(message)),
        // What the cluster calls a kind that is known by its names alone need not be what is guessed.
        404 if status.details.as_ref().is_some_and(|found| found.kind == kind.plural() || kind.is_other()) => {
            WriteOutcome::Stale(message)
        }
        401 => WriteOutcome::Forbidden(message),
        403 if text::quota(&status.message) => WriteOutcome::Retriable(message),
        403 if text::denied_by_admission(&status.message) => WriteOutcome::Refused(message),
        403 => WriteOutcome::Forbidden(message),
        // A uid cannot be changed: the object is another one, or none, and the one we meant is gone.
        422 if causes(status).iter().any(|cause| cause.field == "metadata.uid") => WriteOutcome::Stale(message),
        400 | 413 | 422 => WriteOutcome::Refused(message),
        429 => WriteOutcome::Retriable(message),
        400..=499 if text::denied_by_admission(&status.message) => WriteOutcome::Refused(message),
        code if text::schema_mismatch(code, &status.reason, &status.message) => WriteOutcome::Refused(message),
        // 5xx, a missing namespace, and whatever we do not know: no evidence of anything.
        _ => WriteOutcome::Retriable(message),
    }
}

fn causes(status: &Status) -> &[StatusCause] {
    status.details.as_ref().map_or(&[], |details| &details.causes)
}

/// The conflict of field managers that the causes tell of, if they do.
fn conflict(causes: &[StatusCause]) -> Option<WriteOutcome> {
    let ours = causes.iter().filter(|cause| cause.reason == "FieldManagerConflict");
    let (mut managers, mut fields) = (Vec::new(), Vec::new());
    for cause in ours {
        let manager = foreign(text::manager(&cause.message).unwrap_or(&cause.message));
        if !managers.contains(&manager) {
            managers.push(manager);
        }
        fields.push(foreign(&cause.field));
    }
    managers.sort();
    fields.sort();
    (!fields.is_empty()).then(|| WriteOutcome::Conflict { manager: managers.join(", "), fields })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn target() -> ObjectRef {
        ObjectRef { kind: Kind::Deployment, namespace: "shop".parse().unwrap(), name: "podinfo".parse().unwrap() }
    }

    fn status(value: &Value) -> Failure {
        Failure::Answered(Box::new(serde_json::from_value(value.clone()).unwrap()))
    }

    /// The variant's name is what a row of the table fixes.
    fn name(outcome: &WriteOutcome) -> &'static str {
        match outcome {
            WriteOutcome::Done(_) => "Done",
            WriteOutcome::Stale(_) => "Stale",
            WriteOutcome::Conflict { .. } => "Conflict",
            WriteOutcome::Refused(_) => "Refused",
            WriteOutcome::MissingKind(_) => "MissingKind",
            WriteOutcome::Forbidden(_) => "Forbidden",
            WriteOutcome::Retriable(_) => "Retriable",
        }
    }

    /// An answer about an object, with a cause at `field`.
    fn answer(code: u16, reason: &str, message: &str, kind: &str, field: &str) -> Failure {
        let causes =
            if field.is_empty() { json!([]) } else { json!([{"reason": "FieldValueInvalid", "field": field}]) };
        let details = json!({"kind": kind, "causes": causes});
        status(&json!({"code": code, "reason": reason, "message": message, "details": details}))
    }

    #[test]
    fn attack_55_answers_are_sorted_by_code_reason_and_causes() {
        let rows = [
            ("Stale", 409, "Conflict", "deployments", ""),
            ("Stale", 409, "AlreadyExists", "deployments", ""),
            ("Stale", 422, "Invalid", "Deployment", "metadata.uid"),
            ("Stale", 404, "NotFound", "deployments", ""),
            ("Retriable", 404, "NotFound", "namespaces", ""),
            ("MissingKind", 404, "NotFound", "", ""),
            ("Refused", 422, "Invalid", "Deployment", "spec.replicas"),
            ("Refused", 400, "BadRequest", "", ""),
            ("Refused", 413, "RequestEntityTooLarge", "", ""),
            ("Forbidden", 403, "Forbidden", "deployments", ""),
            ("Forbidden", 401, "Unauthorized", "", ""),
            ("Retriable", 405, "MethodNotAllowed", "", ""),
            ("Retriable", 429, "TooManyRequests", "", ""),
            ("Retriable", 500, "InternalError", "", ""),
            ("Retriable", 503, "ServiceUnavailable", "", ""),
            ("Retriable", 504, "Timeout", "", ""),
            ("Retriable", 0, "", "", ""),
        ];
        for (expected, code, reason, kind, field) in rows {
            let outcome = answer(code, reason, "x", kind, field).outcome(&target());
            assert_eq!(name(&outcome), expected, "{code} {reason} {kind} {field}");
        }
    }

    #[test]
    fn answers_that_only_their_text_tells_apart() {
        let mismatch = "failed to create typed patch object (a/b; apps/v1, Kind=Deployment): .spec.foo: not declared";
        let denied = "admission webhook \"w\" denied the request: no";
        let rows = [
            ("Refused", 500, "", mismatch),
            ("Retriable", 500, "InternalError", mismatch),
            ("Refused", 403, "Forbidden", denied),
            ("Refused", 418, "", denied),
            ("Refused", 403, "Forbidden", "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
            ("Retriable", 403, "Forbidden", "deployments.apps \"x\" is forbidden: exceeded quota: q, requested: …"),
            ("Retriable", 500, "InternalError", "failed calling webhook \"w\": context deadline exceeded"),
            ("Forbidden", 403, "Forbidden", "User \"u\" cannot patch resource \"deployments\" in API group \"apps\""),
        ];
        for (expected, code, reason, message) in rows {
            let outcome = answer(code, reason, message, "deployments", "").outcome(&target());
            assert_eq!(name(&outcome), expected, "{code} {message}");
        }
    }

    #[test]
    fn attack_55_59_what_is_no_answer_of_an_api_server_is_no_evidence() {
        let rows = [
            ("MissingKind", Failure::Garbage { code: 404, text: "404 page not found".into() }),
            ("Retriable", Failure::Garbage { code: 404, text: "<html>not here</html>".into() }),
            ("Retriable", Failure::Garbage { code: 502, text: "<html>bad gateway</html>".into() }),
            ("Retriable", Failure::Garbage { code: 403, text: "<html>log in</html>".into() }),
            ("Retriable", Failure::Silent("connection refused".into())),
        ];
        for (expected, failure) in rows {
            assert_eq!(name(&failure.outcome(&target())), expected, "{failure}");
        }
    }

    #[test]
    fn a_conflict_names_the_others_and_their_fields() {
        let cause =
            |message: &str, field: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
        let answer = json!({"code": 409, "reason": "Conflict", "message": "3 conflicts", "details": {"causes": [
            cause("conflict with \"kubectl\" with subresource \"scale\" using apps/v1", ".spec.replicas"),
            cause("conflict with \"hand\u{202e}\"", ".spec.paused"),
            cause("conflict with \"kubectl\" using apps/v1", ".spec.minReadySeconds"),
        ]}});
        assert_eq!(
            status(&answer).outcome(&target()),
            WriteOutcome::Conflict {
                manager: "hand\\u{202e}, kubectl".into(),
                fields: vec![".spec.minReadySeconds".into(), ".spec.paused".into(), ".spec.replicas".into()],
            }
        );
    }

    #[test]
    fn attack_59_foreign_text_is_escaped_and_cut() {
        assert_eq!(foreign("a\u{1b}[31mb\nc\u{202e}"), "a\\u{1b}[31mb\\u{a}c\\u{202e}");
        assert_eq!(foreign("grüße"), "grüße");
        for long in ["x".repeat(5_000), "ü".repeat(5_000), "\u{1b}".repeat(5_000)] {
            let shown = foreign(&long);
            assert!(shown.len() <= FOREIGN_LIMIT && shown.ends_with('…'), "{}", shown.len());
        }
    }
}
