//! Deletions that are more than the policy lets go with one change (design §6): people are asked for all that would go, and what
//! they let go stands in the record before it goes.

use super::action::{Ask, Proposal};
use super::denial;
use super::draft::Draft;
use super::guard;
use super::idle;
use super::input::{Git, Input};
use super::proof;
use super::report::{Reason, Wait};
use super::requests::{self, Lies};
use super::tracked;
use super::versions;
use crate::gate::decisions::Accepted;
use crate::manifest::decision::{DecisionAction, MAX_OBJECTS};
use crate::manifest::desired::{Rollout, Set};
use crate::manifest::diagnostic::few;
use crate::manifest::ids::{CommitId, RunId, SetId};
use crate::manifest::object::ObjectRef;
use crate::manifest::proof::By;
use crate::record::branches::Asks;
use crate::record::state::{
    Consent, Consumed, DeletionAnswer, DeletionQuestion, DeletionVerdict, Deletions, Phase, Pull, Void,
};
use crate::record::text::plain;
use std::collections::BTreeSet;
use std::sync::Arc;

/// So many objects that would be deleted are named by a wait.
const LISTED: usize = 20;
/// How the limit is raised.
const RAISE: &str = "raise limits.maxDeletions in tidegate.yaml";

/// What is to go at rest.
#[derive(Debug, Default)]
pub struct Going {
    /// What main has no longer.
    pub removed: Removed,
    /// What goes with the version in whose place a new one is to come, where that waits for nothing else.
    pub replaced: BTreeSet<ObjectRef>,
}

/// What main has no longer.
#[derive(Debug, Clone, Default)]
pub struct Removed {
    /// All of it that is still there; none where nobody has looked, or nobody can tell.
    pub left: Option<BTreeSet<ObjectRef>>,
    /// What of it nothing uses any more.
    pub free: BTreeSet<ObjectRef>,
}

/// How objects stand that are to go with one change.
#[derive(Debug, Default)]
pub struct Sorted {
    /// Nobody has spoken of them.
    open: BTreeSet<ObjectRef>,
    /// A person has let them go.
    let_go: BTreeSet<ObjectRef>,
    /// A person said no.
    denied: BTreeSet<ObjectRef>,
    /// A person said no, and that was lifted.
    again: BTreeSet<ObjectRef>,
    /// How many the policy lets go that nobody has spoken of.
    limit: usize,
}

impl Sorted {
    /// Sorts what is to go, where that version is stable or to become it.
    #[must_use]
    pub fn of(input: &Input, said: &Deletions, version: Option<&SetId>, going: BTreeSet<ObjectRef>) -> Self {
        let mut sorted = Self { limit: input.policy.max_deletions, ..Self::default() };
        for object in going {
            match said.said_of(&object, version) {
                None => sorted.open.insert(object),
                Some(DeletionVerdict::Yes(_)) => sorted.let_go.insert(object),
                Some(DeletionVerdict::No) => sorted.denied.insert(object),
                Some(DeletionVerdict::Again) => sorted.again.insert(object),
            };
        }
        sorted
    }

    /// Whether an object stays for now.
    #[must_use]
    pub fn stays(&self, object: &ObjectRef) -> bool {
        [&self.denied, &self.again].iter().any(|all| all.contains(object))
            || self.open.contains(object) && (self.is_too_much() || object.kind.may_hold_data())
    }

    /// Whether it goes by a person's decision alone.
    #[must_use]
    pub fn goes_by_word(&self, object: &ObjectRef) -> bool {
        self.let_go.contains(object)
    }

    fn is_too_much(&self) -> bool {
        self.open.len() > self.limit
    }

    /// What people have to say yes to before it goes, of what nobody has spoken of.
    fn unspoken(&self) -> BTreeSet<ObjectRef> {
        let all = self.is_too_much();
        self.open.iter().filter(|object| all || object.kind.may_hold_data()).cloned().collect()
    }

    /// What people have to be asked about.
    fn questionable(self) -> BTreeSet<ObjectRef> {
        let unspoken = self.unspoken();
        self.again.into_iter().chain(unspoken).collect()
    }

    /// What stays, and why; none if all goes.
    #[must_use]
    pub fn wait(&self, when: &str) -> Option<Wait> {
        let named = |objects: &BTreeSet<ObjectRef>| few(objects.iter().map(ToString::to_string), LISTED, ", ");
        let unspoken = self.unspoken();
        let open = (!unspoken.is_empty()).then(|| {
            let (count, limit) = (unspoken.len(), self.limit);
            if self.is_too_much() {
                return format!(
                    "{when}{count} objects would be deleted, the policy allows {limit}: {}",
                    named(&unspoken)
                );
            }
            format!("{when}{count} objects would be deleted with the data that they may hold: {}", named(&unspoken))
        });
        let said = |objects: &BTreeSet<ObjectRef>, what| {
            let told = format!("{when}{} objects would be deleted, {what}: {}", objects.len(), named(objects));
            (!objects.is_empty()).then_some(told)
        };
        let denied = said(&self.denied, "but a person said no");
        let again = said(&self.again, "to which a person had said no before");
        let why: Vec<String> = open.into_iter().chain(denied).chain(again).collect();
        (!why.is_empty()).then(|| Wait::new(Reason::TooManyDeletions, why.join("; ")).act(RAISE))
    }
}

/// Whether people are asked by a request of that run, which is over: while one is open nobody is.
#[must_use]
pub fn is_asked(draft: &Draft<'_>, run: &RunId) -> bool {
    let rests = draft.state.run.is_none() && !matches!(draft.state.phase, Phase::Terminating { .. });
    draft.state.deletions.asked.is_some() && rests && *run == draft.state.current()
}

/// A person lifts a no. While a run is open they speak of that.
pub fn resume(draft: &mut Draft<'_>) {
    if draft.state.run.is_none() {
        draft.state.deletions.resume();
    }
}

/// A run is opened: nobody is asked until it has ended.
pub fn begin(draft: &mut Draft<'_>, set: &Set) {
    keep(draft, Some(set));
    draft.state.deletions.asked = None;
}

/// At rest: what the stable version has, or main wants and may come, is not let go any more.
pub fn renew(draft: &mut Draft<'_>) {
    let wanted = comes(draft);
    keep(draft, wanted.map(|wanted| &*wanted.set));
}

/// What the stable version has, or that set, is not let go any more: it was before that came.
fn keep(draft: &mut Draft<'_>, set: Option<&Set>) {
    let promoted = draft.state.promoted.as_ref().and_then(|promoted| draft.input.sets.get(&promoted.set));
    let sets = [promoted.map(|set| &**set), set];
    let has = |object: &ObjectRef| sets.iter().flatten().any(|set| set.objects.contains_key(object));
    draft.state.deletions.keep(has);
}

/// A decision about deletions that nobody has asked for, or that lists other objects: it does not count, and is not looked at again. It would
/// count some day, when nobody thinks of it any more.
pub fn void(draft: &mut Draft<'_>, Accepted { mut consumed, .. }: Accepted, why: &str) {
    let head = requests::beside(draft, &consumed.path);
    consumed.void = Some(Void { why: plain(why), through: None, head });
    draft.note(format!("{} does not count: {why}", consumed.action));
    draft.state.consumed.push(consumed);
}

/// At rest: asks people about what would go beyond the policy's limit, and follows their decision about just that.
pub fn settle(draft: &mut Draft<'_>, accepted: Vec<Accepted>) {
    let Going { removed, replaced } = std::mem::take(&mut draft.going);
    let Some(left) = removed.left.filter(|_| !tracked::is_unread(draft.input, &draft.waits)) else { return };
    forget(draft, &left);
    let mut question = question(draft, removed.free, replaced);
    let asked = draft.state.deletions.asked.clone();
    // Nothing follows from the request, and it is not asked for anew, until it is known whose decision it is that lies there.
    let is_same = question.as_ref().map(DeletionQuestion::what) == asked.as_ref().map(DeletionQuestion::what);
    let unprotected = question.as_ref().and_then(|_| guard::unprotected(draft));
    let waits = unprotected.is_some() && !accepted.is_empty();
    draft.waits.extend(unprotected.clone());
    if question.is_some() {
        guard::tell_unprovable(draft);
    }
    if is_same && (waits || draft.undecided.contains_key(&requests::delete())) {
        tell(draft);
        return;
    }
    for accepted in accepted {
        match covers(&accepted, question.as_ref(), asked.as_ref()) {
            // Who may write to the branch is not known yet.
            Ok(()) if unprotected.is_some() => {}
            Ok(()) => {
                if let Some(question) = question.take() {
                    follow(draft, accepted, question);
                }
            }
            Err(why) => void(draft, accepted, &why),
        }
    }
    match question {
        Some(question) => ask(draft, question),
        None => draft.state.deletions.asked = None,
    }
    tell(draft);
}

/// What people have to be asked: one thing at a time. What main has again they are not asked about, nor about more objects than a record
/// has room for.
fn question(
    draft: &Draft<'_>,
    mut removed: BTreeSet<ObjectRef>,
    replaced: BTreeSet<ObjectRef>,
) -> Option<DeletionQuestion> {
    let promoted = draft.state.promoted.as_ref().map(|promoted| &promoted.set);
    let next = comes(draft).map(|wanted| &wanted.set.id);
    removed.retain(|object| comes(draft).is_none_or(|wanted| !wanted.set.objects.contains_key(object)));
    let spoken_of: usize = draft.state.deletions.said.iter().map(|answer| answer.objects.len()).sum();
    let all = [(removed, promoted, None), (replaced, next, next.cloned())];
    all.into_iter().find_map(|(going, version, successor)| {
        let sorted = Sorted::of(draft.input, &draft.state.deletions, version, going);
        let (limit, objects) = (sorted.limit, sorted.questionable());
        let fits = !objects.is_empty() && objects.len() + spoken_of <= MAX_OBJECTS;
        fits.then_some(DeletionQuestion { objects, limit, successor, pull: None, unkept: false })
    })
}

/// What main wants, if it may come.
fn comes<'a>(draft: &Draft<'a>) -> Option<&'a Arc<Rollout>> {
    draft.wanted().filter(|wanted| idle::refused(draft, wanted).is_none())
}

/// Whether a decision lets all go that people have to be asked about, and they were asked about all of it; why not.
fn covers(
    accepted: &Accepted,
    question: Option<&DeletionQuestion>,
    asked: Option<&DeletionQuestion>,
) -> Result<(), String> {
    let DecisionAction::Delete { objects, successor } = &accepted.decision.action else { return Ok(()) };
    let question = question.ok_or("nothing is to go any more that the policy does not let go")?;
    question.answered(objects, successor.as_ref())?;
    let was_asked = asked.is_some_and(|asked| question.objects.is_subset(&asked.objects));
    if was_asked { Ok(()) } else { Err("something else would go by now, which nobody was asked about".to_owned()) }
}

/// Counts the decision. What it lets go may go once that is recorded: what people were asked, whatever else it lists.
fn follow(draft: &mut Draft<'_>, accepted: Accepted, question: DeletionQuestion) {
    let Consumed { by, at, proof, proven, .. } = accepted.consumed.clone();
    draft.state.deletions.answer(question, DeletionVerdict::Yes(Consent { by, at, proof, proven }));
    draft.count(accepted.consumed);
    draft.waits.retain(|wait| wait.reason != Reason::TooManyDeletions);
    draft.wake(draft.now());
}

/// What was said is over once none of it is there any more, or the version that it was said for does not come; and what nobody has proven,
/// where the policy asks for a proof by now.
fn forget(draft: &mut Draft<'_>, left: &BTreeSet<ObjectRef>) {
    let Some(promoted) = draft.state.promoted.as_ref().and_then(|promoted| draft.input.sets.get(&promoted.set)) else {
        return;
    };
    let wanted = comes(draft);
    let going = wanted.map(|wanted| versions::going(&draft.naming, wanted, promoted)).unwrap_or_default();
    let is_proof_asked = proof::rule(draft).is_some();
    let lasts = |DeletionAnswer { objects, successor, said }: &DeletionAnswer| {
        let lacks_proof = is_proof_asked && matches!(said, DeletionVerdict::Yes(Consent { proven: None, .. }));
        !lacks_proof
            && match successor {
                None => !objects.is_disjoint(left),
                Some(next) => wanted.is_some_and(|wanted| wanted.set.id == *next) && !objects.is_disjoint(&going),
            }
    };
    let before = draft.state.deletions.said.len();
    draft.state.deletions.said.retain(lasts);
    if draft.state.deletions.said.len() < before {
        draft.note("what was said of deletions is over");
    }
}

/// Asks, once for each list.
fn ask(draft: &mut Draft<'_>, question: DeletionQuestion) {
    let run = draft.state.current();
    let name = requests::name(draft, &run, Asks::Delete);
    let known = draft.state.deletions.asked.take();
    let unkept = known.as_ref().is_some_and(|known| known.unkept);
    let same = known.filter(|known| known.objects == question.objects && known.successor == question.successor);
    // A run that has ended since was another one's last.
    let pull = same.and_then(|known| known.pull).filter(|pull| pull.branch == name);
    draft.state.deletions.asked = Some(DeletionQuestion { pull: pull.clone(), unkept, ..question });
    let unsure = request(draft, &run, &name, pull);
    draft.waits.extend(unsure);
}

/// Makes the request, or takes note of what has become of it. What is waited for until that is known.
fn request(draft: &mut Draft<'_>, run: &RunId, name: &str, pull: Option<Pull>) -> Option<Wait> {
    let is_asked = |head: &CommitId| pull.as_ref().is_some_and(|pull| pull.head == *head);
    match requests::deletion(draft, run) {
        Lies::Ours(head) | Lies::Unread(head, _) if is_asked(&head) => {}
        Lies::Ours(head) => {
            let asked = draft.state.deletions.asked.as_mut()?;
            asked.pull = Some(Pull { branch: name.to_owned(), head, checks: Vec::new() });
            let count = asked.objects.len();
            draft.note(format!("asks whether {count} objects may go"));
        }
        Lies::Unread(_, why) => return Some(requests::unread(name, &why)),
        // What is void goes before people are asked anew. Without a request of ours it asks for what was to go before.
        Lies::Void(head, why) => {
            if pull.is_some() {
                requests::spoil_deletion(draft, run, head.clone(), why.as_deref().unwrap_or_default());
            }
            draft.void.push((name.to_owned(), head));
        }
        Lies::Nothing => match pull {
            Some(pull) => return gone(draft, &pull),
            None => {
                let ask = Ask::Delete { objects: draft.state.deletions.asked.as_ref()?.objects.clone() };
                draft.proposals.push(Proposal { rollout: draft.input.id.clone(), run: run.clone(), ask });
            }
        },
    }
    None
}

/// A branch that was deleted unmerged is a no, if whoever did it may say so. What is waited for until that is known.
fn gone(draft: &mut Draft<'_>, pull: &Pull) -> Option<Wait> {
    if draft.input.git != Git::Fresh || guard::is_deaf(draft) {
        return None;
    }
    let objection = match denial::objection(draft, pull, "objects to go") {
        Ok(objection) => objection,
        Err(wait) => return Some(wait),
    };
    match objection {
        None => {
            let question = draft.state.deletions.asked.take()?;
            draft.state.deletions.answer(question, DeletionVerdict::No);
            draft.note("the deletions were denied: their branch was deleted unmerged");
        }
        Some(why) => {
            draft.state.deletions.asked.as_mut()?.pull = None;
            draft.note(format!("the deletions are asked for again, as nobody said no who may: {why}"));
        }
    }
    None
}

/// What people can do.
fn tell(draft: &mut Draft<'_>) {
    let id = &draft.input.id;
    let act = match &draft.state.deletions {
        Deletions { asked: Some(asked), .. } => {
            let name = requests::name(draft, &draft.state.current(), Asks::Delete);
            let yes = match proof::rule(draft).map(|rule| rule.by) {
                Some(By::Reviews) => format!("approve and merge the pull request of {name}"),
                Some(By::Nothing) => guard::PROVE.to_owned(),
                Some(By::Signatures) => format!(
                    "an approver merges {name} into the decisions branch and signs the merge (git merge --no-ff -S), or: \
                     tidegate delete {id}"
                ),
                None => format!("merge {name} into the decisions branch, or: tidegate delete {id}"),
            };
            // What was denied before is asked about whatever the limit.
            let raise = if asked.objects.len() > asked.limit { format!("; or {RAISE}") } else { String::new() };
            format!("{yes}; to keep them: close it unmerged, or delete its branch{raise}")
        }
        deletions if deletions.denied().next().is_some() => {
            format!("tidegate resume {id} asks again; to keep them for good, put them back on main")
        }
        // So many are not asked about.
        _ => RAISE.to_owned(),
    };
    for wait in draft.waits.iter_mut().filter(|wait| wait.reason == Reason::TooManyDeletions) {
        wait.act = Some(act.clone());
    }
}
