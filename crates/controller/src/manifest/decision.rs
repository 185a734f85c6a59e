//! Decisions: a person's decision about one run, as a file of its own.
//!
//! Path and content say the same thing twice, so that a merged file cannot mean something else than its name shows.

use super::diagnostic::{Code, Diagnostic, quoted};
use super::files::RepoPath;
use super::ids::{Namespace, RolloutId, RunId, SetId, StepName};
use super::object::ObjectRef;
use super::yaml::{self, Dialect, is_invisible};
use super::{raw, schema};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A person's decision about one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The rollout.
    pub rollout: RolloutId,
    /// The run: the open one, else the last, else `0`; for `retry` the ended run, for `rollback` the promoted run to go
    /// back to.
    pub run: RunId,
    /// What is decided.
    pub action: DecisionAction,
    /// Why, in the person's words.
    pub reason: Option<String>,
}

/// What a person decides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum DecisionAction {
    /// Opens approval gates up to and with a step: a phase, or `promotion`.
    Approve {
        /// The step.
        through: StepName,
    },
    /// Says no: the posture stays, nothing is asked again before a resume.
    Deny,
    /// Ends the soak and the checks of a step; never readiness, gates or floors.
    Skip {
        /// The step that the run stood on when it was decided.
        step: StepName,
        /// Whether it is about all steps from there to the promotion.
        through: Through,
    },
    /// Bars entry to the next step.
    Hold,
    /// Lifts hold and deny.
    Resume,
    /// Goes back; the revision is refused.
    Abort,
    /// Lifts the refusal of the ended run that the decision names.
    Retry,
    /// Goes back to the promoted run that the decision names.
    Rollback,
    /// What is live becomes the stable version.
    Adopt {
        /// What that was when it was decided: the set of manifests that tidegate makes of it.
        live: SetId,
    },
    /// Objects go, though they are more than the policy lets go with one change.
    Delete {
        /// All that may go.
        objects: BTreeSet<ObjectRef>,
        /// The version that is to take the place of theirs; none where main has them no longer.
        successor: Option<SetId>,
    },
}

/// How far a skip reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Through {
    /// That step alone.
    Step,
    /// All steps, the promotion's bake too.
    Promotion,
}

/// The word by which a skip reaches that far.
const PROMOTION: &str = "promotion";

impl DecisionAction {
    /// The word for it, as files spell it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approve { .. } => "approve",
            Self::Deny => "deny",
            Self::Skip { .. } => "skip",
            Self::Hold => "hold",
            Self::Resume => "resume",
            Self::Abort => "abort",
            Self::Retry => "retry",
            Self::Rollback => "rollback",
            Self::Adopt { .. } => "adopt",
            Self::Delete { .. } => "delete",
        }
    }
}

/// The longest reason, in characters.
pub const MAX_REASON: usize = 1_024;
/// The most objects that one decision lets go.
pub const MAX_OBJECTS: usize = 1_000;

/// The name of a decision's file without its directory and number: `7-9ac41f02-tenth`, `7-9ac41f02-abort`.
fn stem(decision: &Decision) -> String {
    let last = match &decision.action {
        DecisionAction::Approve { through } => through.as_str(),
        DecisionAction::Deny
        | DecisionAction::Skip { .. }
        | DecisionAction::Hold
        | DecisionAction::Resume
        | DecisionAction::Abort
        | DecisionAction::Retry
        | DecisionAction::Rollback
        | DecisionAction::Adopt { .. }
        | DecisionAction::Delete { .. } => decision.action.word(),
    };
    format!("{}-{last}", decision.run)
}

/// The step that the name of an approval's file says.
#[must_use]
pub fn approves(path: &RepoPath, run: &RunId) -> Option<StepName> {
    let last = path.file_name().strip_suffix(".yaml")?.strip_prefix(run.as_str())?.strip_prefix('-')?;
    last.parse().ok()
}

/// Reads a decision.
///
/// # Errors
/// All that is wrong with it, a path that does not fit its content included.
pub fn parse(path: &RepoPath, bytes: &[u8]) -> Result<Decision, Vec<Diagnostic>> {
    let parsed = yaml::parse(path, bytes, Dialect::Own);
    let raw: raw::Decision = schema::read(&parsed)?;
    let at = |pointer: &str, code, found: &str, expected: &str| {
        let mark = parsed.documents.first().map(|root| root.locate(pointer)).unwrap_or_default();
        vec![parsed.source.at(mark, code, found, expected)]
    };
    let rollout = RolloutId { namespace: raw.metadata.namespace, name: raw.metadata.name };
    let (run, reason) = (raw.spec.run.clone(), raw.spec.reason.clone());
    let action = action_of(raw.spec, &rollout.namespace)
        .map_err(|Mistake { pointer, code, found, expected }| at(&pointer, code, &found, expected))?;
    let decision = Decision { rollout, run, action, reason };
    let expected = format!("{}/{}.yaml", decision.rollout, stem(&decision));
    if fits(path, &decision) {
        Ok(decision)
    } else {
        let found = format!("the file is called {} and says something else", quoted(path.as_str()));
        Err(at("/spec/run", Code::DecisionPath, &found, &format!("the path {expected}")))
    }
}

/// What is wrong with the fields of an action.
struct Mistake {
    pointer: String,
    code: Code,
    found: String,
    expected: &'static str,
}

/// The action with what it needs, and with nothing else.
fn action_of(spec: raw::DecisionSpec, namespace: &Namespace) -> Result<DecisionAction, Mistake> {
    let raw::DecisionSpec { run: _, action, through, step, live, objects, successor, reason: _ } = spec;
    let mistake = |pointer: &str, code, found: &str, expected| Mistake {
        pointer: pointer.to_owned(),
        code,
        found: found.to_owned(),
        expected,
    };
    let lacks = |found, expected| mistake("/spec/action", Code::Schema, found, expected);
    let surplus = |pointer, found, expected| mistake(pointer, Code::UnknownField, found, expected);
    if through.is_some() && !matches!(action, raw::Action::Approve | raw::Action::Skip) {
        return Err(surplus("/spec/through", "only an approval or a skip reaches through steps", "no field through"));
    }
    if action == raw::Action::Skip && through.as_ref().is_some_and(|through| through.as_str() != PROMOTION) {
        let found = "a skip reaches through its own step, or through all";
        return Err(mistake("/spec/through", Code::Schema, found, "promotion, or no field through"));
    }
    if step.is_some() && action != raw::Action::Skip {
        return Err(surplus("/spec/step", "only a skip is about the soak of a step", "no field step"));
    }
    if live.is_some() && action != raw::Action::Adopt {
        return Err(surplus("/spec/live", "only an adoption is about what is live", "no field live"));
    }
    if objects.is_some() && action != raw::Action::Delete {
        return Err(surplus("/spec/objects", "only a deletion lets objects go", "no field objects"));
    }
    if successor.is_some() && action != raw::Action::Delete {
        return Err(surplus("/spec/successor", "only a deletion is for a version to come", "no field successor"));
    }
    Ok(match action {
        raw::Action::Approve => {
            let far = lacks("nothing says how far this approval reaches", "through: a phase, or promotion");
            DecisionAction::Approve { through: through.ok_or(far)? }
        }
        raw::Action::Skip => {
            let which = lacks("nothing says which step's soak ends", "step: the step that the run stands on");
            let through = if through.is_some() { Through::Promotion } else { Through::Step };
            DecisionAction::Skip { step: step.ok_or(which)?, through }
        }
        raw::Action::Adopt => {
            let what = lacks("nothing says what is adopted", "live: the 40 hex digits that `tidegate adopt` writes");
            DecisionAction::Adopt { live: live.ok_or(what)? }
        }
        raw::Action::Delete => {
            let what = lacks("nothing says what may go", "objects: the list that `tidegate delete` writes");
            DecisionAction::Delete { objects: objects_of(objects.ok_or(what)?, namespace)?, successor }
        }
        raw::Action::Deny => DecisionAction::Deny,
        raw::Action::Hold => DecisionAction::Hold,
        raw::Action::Resume => DecisionAction::Resume,
        raw::Action::Abort => DecisionAction::Abort,
        raw::Action::Retry => DecisionAction::Retry,
        raw::Action::Rollback => DecisionAction::Rollback,
    })
}

/// The objects of a list, which is in order: so that there is one text for each, in which people find what they look for.
fn objects_of(listed: Vec<raw::Named>, namespace: &Namespace) -> Result<BTreeSet<ObjectRef>, Mistake> {
    let mut objects = BTreeSet::new();
    let mut last: Option<(String, String)> = None;
    for (n, raw::Named { kind, name }) in listed.into_iter().enumerate() {
        let mistake = |found: String, expected| Mistake {
            pointer: format!("/spec/objects/{n}"),
            code: Code::Schema,
            found,
            expected,
        };
        if !kind.is_of_sets() {
            return Err(mistake(format!("no rollout has a {kind}"), "a kind that manifests may have"));
        }
        let key = (kind.text(), name.to_string());
        if last.as_ref() == Some(&key) {
            return Err(mistake(format!("{kind} {name} is listed twice"), "each object once"));
        }
        if last.as_ref().is_some_and(|last| *last > key) {
            let expected = "alphabetical order by kind, then by name, as `tidegate delete --dry-run` prints it";
            return Err(mistake(format!("{kind} {name} belongs before the one above it"), expected));
        }
        last = Some(key);
        objects.insert(ObjectRef { kind, namespace: namespace.clone(), name });
    }
    Ok(objects)
}

/// Objects in the order in which a decision lists them.
#[must_use]
pub fn listed(objects: &BTreeSet<ObjectRef>) -> Vec<&ObjectRef> {
    let mut listed: Vec<&ObjectRef> = objects.iter().collect();
    listed.sort_by_cached_key(|object| (object.kind.text(), object.name.clone()));
    listed
}

/// Whether the path is `<ns>/<name>/<stem>[-<n>].yaml`; approvals take no number, since they count once.
fn fits(path: &RepoPath, decision: &Decision) -> bool {
    let prefix = format!("{}/{}", decision.rollout, stem(decision));
    let Some(rest) = path.as_str().strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".yaml")) else {
        return false;
    };
    let numbered = |n: &str| n.parse::<u32>().is_ok_and(|number| number.to_string() == n);
    let approval = matches!(decision.action, DecisionAction::Approve { .. });
    rest.is_empty() || (!approval && rest.strip_prefix('-').is_some_and(numbered))
}

/// The file of a decision: its path and its text. `n` tells repeated decisions apart; approvals have none.
///
/// Characters that cannot be seen, or that no file of ours may hold, are left out of the reason, which is cut to
/// [`MAX_REASON`].
#[must_use]
pub fn print(decision: &Decision, n: Option<u32>) -> (RepoPath, String) {
    let Decision { rollout, run, action, reason } = decision;
    let number = match (action, n) {
        (DecisionAction::Approve { .. }, _) | (_, None) => String::new(),
        (_, Some(n)) => format!("-{n}"),
    };
    let path = format!("{rollout}/{}{number}.yaml", stem(decision));
    let mut text = format!("apiVersion: {}\nkind: Decision\n", raw::ApiVersion::TEXT);
    // Names are quoted: a namespace may be called `on`, and a run id `0` is a text.
    let _ = writeln!(text, "metadata: {{name: \"{}\", namespace: \"{}\"}}", rollout.name, rollout.namespace);
    let _ = write!(text, "spec:\n  run: \"{run}\"\n  action: {}\n", action.word());
    if let DecisionAction::Approve { through } = action {
        let _ = writeln!(text, "  through: \"{through}\"");
    }
    if let DecisionAction::Skip { step, through } = action {
        let _ = writeln!(text, "  step: \"{step}\"");
        if *through == Through::Promotion {
            let _ = writeln!(text, "  through: {PROMOTION}");
        }
    }
    if let DecisionAction::Adopt { live } = action {
        let _ = writeln!(text, "  live: \"{live}\"");
    }
    if let DecisionAction::Delete { objects, successor } = action {
        text.push_str("  objects:\n");
        for ObjectRef { kind, namespace: _, name } in listed(objects) {
            let _ = writeln!(text, "  - {{kind: {}, name: \"{name}\"}}", kind.text());
        }
        let _ = successor.iter().try_for_each(|successor| writeln!(text, "  successor: \"{successor}\""));
    }
    // JSON's quoting is YAML's, but for these control characters: JSON leaves them as they are.
    let kept = |c: &char| !is_invisible(*c) && !matches!(c, '\u{7f}'..='\u{9f}');
    let reason: String = reason.iter().flat_map(|r| r.chars()).filter(kept).take(MAX_REASON).collect();
    if !reason.trim().is_empty() {
        let _ = writeln!(text, "  reason: {}", serde_json::Value::from(reason));
    }
    (path.parse().expect("names and run ids make a path"), text)
}

#[cfg(test)]
mod tests {
    use super::{Code, Decision, DecisionAction, ObjectRef, parse, print};
    use crate::manifest::object::Kind;

    fn decision(action: DecisionAction) -> Decision {
        Decision {
            rollout: "shop/podinfo".parse().unwrap(),
            run: "7-9ac41f02".parse().unwrap(),
            action,
            reason: Some("errors \"flat\"\u{202e}\u{7f}\n\u{85}for 10m: yes".to_owned()),
        }
    }

    fn object(kind: Kind, name: &str) -> ObjectRef {
        ObjectRef { kind, namespace: "shop".parse().unwrap(), name: name.parse().unwrap() }
    }

    #[test]
    fn a_decision_reads_as_it_was_printed() {
        let (through, live) = ("tenth".parse().unwrap(), "ab".repeat(20).parse().unwrap());
        for action in [
            DecisionAction::Approve { through },
            DecisionAction::Deny,
            DecisionAction::Skip { step: "tenth".parse().unwrap(), through: super::Through::Step },
            DecisionAction::Skip { step: "tenth".parse().unwrap(), through: super::Through::Promotion },
            DecisionAction::Hold,
            DecisionAction::Resume,
            DecisionAction::Abort,
            DecisionAction::Retry,
            DecisionAction::Rollback,
            DecisionAction::Adopt { live },
            DecisionAction::Delete {
                objects: [
                    object(Kind::Service, "old"),
                    object(Kind::ConfigMap, "on"),
                    object(Kind::ConfigMap, "old.settings"),
                    object("ServiceMonitor.monitoring.coreos.com/v1".parse().unwrap(), "old"),
                    object("PersistentVolumeClaim.v1".parse().unwrap(), "data"),
                ]
                .into(),
                successor: None,
            },
            DecisionAction::Delete {
                objects: [object(Kind::Service, "old")].into(),
                successor: Some("cd".repeat(20).parse().unwrap()),
            },
        ] {
            for n in [None, Some(2)] {
                let mut wanted = decision(action.clone());
                let (path, text) = print(&wanted, n);
                wanted.reason = Some("errors \"flat\"\nfor 10m: yes".to_owned());
                assert_eq!(parse(&path, text.as_bytes()), Ok(wanted), "{path}\n{text}");
            }
        }
        let mut odd = decision(DecisionAction::Hold);
        (odd.rollout, odd.run, odd.reason) = ("on/no".parse().unwrap(), "0".parse().unwrap(), None);
        let (path, text) = print(&odd, None);
        assert_eq!(path.as_str(), "on/no/0-hold.yaml");
        assert_eq!(parse(&path, text.as_bytes()), Ok(odd));
    }

    #[test]
    fn attack_86_a_path_and_its_content_agree() {
        let (_, text) = print(&decision(DecisionAction::Approve { through: "tenth".parse().unwrap() }), None);
        for path in [
            "shop/podinfo/7-9ac41f02-half.yaml",
            "shop/podinfo/7-9ac41f02-tenth-2.yaml",
            "shop/podinfo/8-9ac41f02-tenth.yaml",
            "shop/other/7-9ac41f02-tenth.yaml",
            "x/shop/podinfo/7-9ac41f02-tenth.yaml",
            "shop/podinfo/7-9ac41f02-tenth.yml",
        ] {
            let errors = parse(&path.parse().unwrap(), text.as_bytes()).unwrap_err();
            assert_eq!(errors.iter().map(|d| d.code).collect::<Vec<_>>(), [Code::DecisionPath], "{path}");
        }
        let (_, text) = print(&decision(DecisionAction::Hold), None);
        for path in ["shop/podinfo/7-9ac41f02-hold-02.yaml", "shop/podinfo/7-9ac41f02-hold-.yaml"] {
            assert!(parse(&path.parse().unwrap(), text.as_bytes()).is_err(), "{path}");
        }
    }

    #[test]
    fn an_approval_says_how_far_it_reaches_and_nothing_else_does() {
        let path = "shop/podinfo/7-9ac41f02-hold.yaml".parse().unwrap();
        let (_, text) = print(&decision(DecisionAction::Hold), None);
        let wrong = text.replace("action: hold", "action: approve");
        assert_eq!(parse(&path, wrong.as_bytes()).unwrap_err()[0].code, Code::Schema);
        let wrong = text.replace("action: hold", "action: hold\n  through: tenth");
        assert_eq!(parse(&path, wrong.as_bytes()).unwrap_err()[0].code, Code::UnknownField);
        let wrong = text.replace("action: hold", "action: ponder");
        assert_eq!(parse(&path, wrong.as_bytes()).unwrap_err()[0].code, Code::Schema);
    }

    #[test]
    fn an_adoption_says_what_was_live_and_nothing_else_does() {
        let path = "shop/podinfo/7-9ac41f02-hold.yaml".parse().unwrap();
        let (_, text) = print(&decision(DecisionAction::Hold), None);
        let wrong = text.replace("action: hold", "action: adopt");
        assert_eq!(parse(&path, wrong.as_bytes()).unwrap_err()[0].code, Code::Schema);
        let wrong = text.replace("action: hold", &format!("action: hold\n  live: {}", "ab".repeat(20)));
        assert_eq!(parse(&path, wrong.as_bytes()).unwrap_err()[0].code, Code::UnknownField);
    }

    #[test]
    fn a_word_to_delete_lists_each_object_once_in_order_and_nothing_else_does() {
        let path = "shop/podinfo/7-9ac41f02-delete.yaml".parse().unwrap();
        let all = [object(Kind::ConfigMap, "b"), object(Kind::ConfigMap, "a"), object(Kind::Service, "a")];
        let (_, text) = print(&decision(DecisionAction::Delete { objects: all.into(), successor: None }), None);
        let wrong = |old: &str, new: &str| {
            assert!(text.contains(old), "{text}");
            let found = parse(&path, text.replace(old, new).as_bytes()).unwrap_err();
            format!("{}:{} {}\n", found[0].line, found[0].column, found[0].found)
        };
        let told = [
            wrong("name: \"b\"", "name: \"a\""),
            wrong("name: \"a\"}\n  - {kind: ConfigMap", "name: \"c\"}\n  - {kind: ConfigMap"),
            wrong("kind: Service", "kind: Pod"),
            wrong("kind: Service", "kind: Namespace"),
            wrong("name: \"b\"", "name: \"b\", namespace: shop"),
            wrong("name: \"b\"", "name: \"B\""),
            wrong("action: delete", "action: hold"),
        ];
        insta::assert_snapshot!(told.concat());
        let (_, none) = print(&decision(DecisionAction::Delete { objects: [].into(), successor: None }), None);
        assert!(
            parse(&path, none.as_bytes()).is_err()
                && parse(&path, none.replace("  objects:\n", "").as_bytes()).is_err()
        );
        let numbered = "shop/podinfo/7-9ac41f02-delete-2.yaml".parse().unwrap();
        assert!(parse(&numbered, text.as_bytes()).is_ok());
    }
}
