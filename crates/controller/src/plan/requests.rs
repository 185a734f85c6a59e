//! Our own requests: whether what lies under the name of one says what we have asked, and nothing else.
//!
//! Anybody who may push can write to these branches, and a pull request goes on saying what we wrote on its page. So what a
//! branch would bring is compared before people are asked by it; a head that would bring anything else is void.

use super::deletions;
use super::draft::Draft;
use super::evidence::Request;
use super::input::{Git, HeadContent, RequestBranch};
use super::proof;
use super::report::{Reason, Wait};
use crate::gate::approval as gates;
use crate::gate::decisions::{Accepted, DecisionFile, loosens, through};
use crate::gate::proof::makes_way;
use crate::manifest::decision::DecisionAction;
use crate::manifest::files::RepoPath;
use crate::manifest::ids::{BlobId, CommitId, RunId, StepName};
use crate::manifest::oid;
use crate::record::branches::{self, Asks, Head, approval};
use crate::record::history::{self, voids};
use crate::record::state::{Consumed, Pull, Run, Void};
use crate::record::text::plain;
use std::collections::{BTreeMap, BTreeSet};

/// Who brought the word of a request that is void to the decisions branch.
const NOBODY: &str = "nobody";

/// What a commit changes: none for what it takes away.
type Files = BTreeMap<RepoPath, Option<BlobId>>;

/// What lies under the name of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lies {
    /// Nothing.
    Nothing,
    /// What we have asked.
    Ours(CommitId),
    /// Nobody knows yet; why.
    Unread(CommitId, String),
    /// Something that asks for nothing; why, if the record does not say so already.
    Void(CommitId, Option<String>),
}

/// The name of the branch of a request.
#[must_use]
pub fn name(draft: &Draft<'_>, run: &RunId, asks: Asks) -> String {
    let head = Head { rollout: draft.input.id.clone(), run: run.clone(), asks };
    head.branch(&draft.input.me.instance)
}

/// What lies under the name of the request for a step.
#[must_use]
pub fn advance(draft: &Draft<'_>, run: &Run, through: &StepName) -> Lies {
    let Some(RequestBranch { head, content }) = lying(draft, &run.id, Asks::Advance(through.clone())) else {
        return Lies::Nothing;
    };
    if voids(&draft.state, &run.id, through).any(|void| void.head.as_ref() == Some(head)) {
        return Lies::Void(head.clone(), None);
    }
    let (path, blob) = asked(draft, run, through);
    let wanted = BTreeMap::from([(path, Some(blob))]);
    judge(head, content, Some(&wanted))
}

/// What lies under the name of the request to let objects go.
#[must_use]
pub fn deletion(draft: &Draft<'_>, run: &RunId) -> Lies {
    let Some(RequestBranch { head, content }) = lying(draft, run, Asks::Delete) else { return Lies::Nothing };
    let wanted = deletion_asked(draft).map(|(path, blob)| BTreeMap::from([(path, Some(blob))]));
    judge(head, content, wanted.as_ref())
}

/// How the request to let objects go is named among steps.
#[must_use]
pub fn delete() -> StepName {
    StepName::fixed(history::DELETE)
}

/// What a request for such a decision would ask, if we ask for such decisions.
#[must_use]
pub fn kind(action: &DecisionAction) -> Option<Asks> {
    let deletes = matches!(action, DecisionAction::Delete { .. });
    if deletes { Some(Asks::Delete) } else { through(action).cloned().map(Asks::Advance) }
}

/// How we ask for a decision, and have asked for it before.
#[must_use]
pub fn to_the_letter(draft: &Draft<'_>, asks: &Asks) -> Option<Request> {
    let blob = |(path, text): (RepoPath, String)| (path, oid::blob(text.as_bytes()));
    let (id, state) = (&draft.input.id, &draft.state);
    match asks {
        Asks::Advance(step) => {
            let run = state.run.as_ref()?;
            let void = voids(state, &run.id, step).count();
            let letters = (0..=void).map(|n| blob(approval(id, &run.id, step, n))).collect();
            Some(Request { letters, head: run.pulls.get(step).map(|pull| pull.head.clone()) })
        }
        Asks::Delete => {
            let (asked, run) = (state.deletions.asked.as_ref()?, state.current());
            let before = history::deletion_paths(state, &run);
            let letters = (0..=before).map(|n| blob(branches::deletion(id, &run, asked.what(), n))).collect();
            Some(Request { letters, head: asked.pull.as_ref().map(|pull| pull.head.clone()) })
        }
        Asks::Revert => None,
    }
}

/// What lies under the name of the request to undo a run's change.
#[must_use]
pub fn revert(draft: &Draft<'_>, run: &RunId) -> Lies {
    match lying(draft, run, Asks::Revert) {
        None => Lies::Nothing,
        Some(RequestBranch { head, content: content @ HeadContent::Read(change) }) => {
            judge(head, content, change.undoing.as_ref())
        }
        Some(RequestBranch { head, content: content @ (HeadContent::Unread(_) | HeadContent::Odd(_)) }) => {
            judge(head, content, None)
        }
    }
}

/// That it is not known what a new head of a request's branch would bring.
#[must_use]
pub fn unread(branch: &str, why: &str) -> Wait {
    Wait::new(Reason::Evidence, format!("nobody knows yet what {branch} would bring: {}", plain(why)))
}

/// Takes note of a request whose branch would bring something else: it is asked anew, by another decision. As long as nobody
/// has merged any, there is one such note, so that pushing again and again makes no record grow.
pub fn spoil(draft: &mut Draft<'_>, run: &Run, through: &StepName, head: CommitId, why: &str) -> Void {
    let void = Void { why: plain(why), through: Some(through.clone()), head: Some(head) };
    let file = asked(draft, run, through);
    take_note(draft, &run.id, "approve", file, void.clone());
    if let Some(run) = &mut draft.state.run {
        run.pulls.remove(through);
    }
    draft.note(format!("the request for {through} is void"));
    void
}

/// The same of the request to let objects go.
pub fn spoil_deletion(draft: &mut Draft<'_>, run: &RunId, head: CommitId, why: &str) {
    if let Some(file) = deletion_asked(draft) {
        let void = Void { why: plain(why), through: None, head: Some(head) };
        take_note(draft, run, history::DELETE, file, void);
    }
    take_back_deletion(draft);
    draft.note("the request to let objects go is void");
}

/// Takes back that people were asked to let objects go; the head of that request.
pub fn take_back_deletion(draft: &mut Draft<'_>) -> Option<CommitId> {
    let name = name(draft, &draft.state.current(), Asks::Delete);
    let pull = draft.state.deletions.asked.as_mut().and_then(|asked| asked.pull.take());
    let there = draft.input.proposals.get(&name).map(|branch| branch.head.clone());
    there.or(pull.map(|pull| pull.head))
}

/// The same where a decision lies at its path that does not count: it could not be merged beside that.
pub fn beside(draft: &mut Draft<'_>, path: &RepoPath) -> Option<CommitId> {
    let is_in_the_way = deletion_asked(draft).is_some_and(|(asked, _)| asked == *path);
    if is_in_the_way { take_back_deletion(draft) } else { None }
}

/// One note for all heads in a row that nobody has merged.
fn take_note(draft: &mut Draft<'_>, run: &RunId, action: &str, (path, blob): (RepoPath, BlobId), void: Void) {
    let at = draft.now();
    let is_void = |decision: &&mut Consumed| {
        let same = decision.void.as_ref().is_some_and(|known| known.through == void.through);
        decision.run == *run && decision.action == action && same
    };
    match draft.state.consumed.iter_mut().rfind(is_void) {
        Some(decision) if decision.by == NOBODY => {
            decision.at = at;
            decision.void = Some(void);
        }
        Some(_) | None => draft.state.consumed.push(Consumed {
            path,
            blob,
            action: action.to_owned(),
            run: run.clone(),
            proof: "none".to_owned(),
            by: NOBODY.to_owned(),
            at,
            proven: None,
            void: Some(void),
        }),
    }
}

/// Takes those of these words as void that let the rollout go further and came by a request which asked for something else: who
/// may push to its branch is not who may decide, and its page goes on saying what we wrote there. For where nothing else proves
/// whose a decision is.
pub fn disown(draft: &mut Draft<'_>, decisions: &mut Vec<Accepted>) {
    let displaced = displaced(draft);
    let unsure = displaced.first().map(|(_, Pull { branch, .. })| {
        format!("{branch} was replaced or deleted as it came, and had asked for something else")
    });
    let unsure = unsure.or_else(|| {
        let step = spoiled(draft)?;
        Some(format!("somebody else had written to the request for {step}, which was not asked for anew yet"))
    });
    let further = decisions.iter().filter(|decision| loosens(&decision.decision.action));
    let whys = further
        .filter_map(|decision| Some((decision.consumed.path.clone(), smuggled(draft, decision, unsure.as_ref())?)));
    let whys: BTreeMap<RepoPath, String> = whys.collect();
    if whys.is_empty() {
        return;
    }
    for mut decision in decisions.extract_if(.., |decision| whys.contains_key(&decision.consumed.path)) {
        let through = through(&decision.decision.action).cloned();
        decision.consumed.void =
            whys.get(&decision.consumed.path).map(|why| Void { why: plain(why), through, head: None });
        proof::void(draft, decision);
    }
    // That such a branch is gone is no answer, unless what it had asked for is said in the same moment.
    let answered: BTreeSet<Asks> = decisions.iter().filter_map(|decision| answers(draft, decision)).collect();
    let why = "somebody else has written to its branch, and another word came by it";
    for (asks, Pull { branch, head, checks: _ }) in displaced.into_iter().filter(|(asks, _)| !answered.contains(asks)) {
        let head = draft.input.proposals.get(&branch).map_or(head, |there| there.head.clone());
        let (open, run) = (is_open(draft, &asks), draft.state.run.clone());
        match (asks, run) {
            _ if !open => {}
            (Asks::Advance(through), Some(run)) => drop(spoil(draft, &run, &through, head, why)),
            (Asks::Delete, _) => {
                let current = draft.state.current();
                spoil_deletion(draft, &current, head, why);
            }
            (Asks::Advance(_), None) | (Asks::Revert, _) => {}
        }
    }
}

/// Takes what lies at the path of a request, and cannot be read, as a decision that does not count: the request could not be merged beside
/// it, so it is asked anew. Where what a request was made on top of is taken away, it is asked anew too.
pub fn clear(draft: &mut Draft<'_>) {
    let decisions = &draft.input.decisions;
    if decisions.unreadable.is_some() {
        return;
    }
    let lying = |path: &RepoPath| decisions.filed.iter().find(|file| file.path == *path);
    for step in waiting(draft) {
        let Some(run) = draft.state.run.clone() else { return };
        match lying(&asked(draft, &run, &step).0) {
            Some(file) if file.decision.is_err() => unreadable(draft, &Asks::Advance(step), file),
            Some(_) => {}
            None => uprooted(draft, &run, &step),
        }
    }
    let deletion = deletion_asked(draft).filter(|_| deletion_waits(draft));
    if let Some(file) = deletion.and_then(|(path, _)| lying(&path)).filter(|file| file.decision.is_err()) {
        unreadable(draft, &Asks::Delete, file);
    }
}

/// A file that is no decision, where a request adds its own.
fn unreadable(draft: &mut Draft<'_>, asks: &Asks, DecisionFile { path, blob, by, .. }: &DecisionFile) {
    let is_known = history::is_consumed(&draft.state, path, blob);
    let at_start = draft.input.decisions.at_start.as_ref();
    if is_known || at_start.is_none_or(|there| there.contains(&(path.clone(), blob.clone()))) {
        return;
    }
    let (action, through, head) = match asks {
        Asks::Advance(step) => ("approve", Some(step.clone()), proof::request(draft, step)),
        Asks::Delete => (history::DELETE, None, take_back_deletion(draft)),
        Asks::Revert => return,
    };
    let void = Void { why: plain(&format!("{path} cannot be read as a decision")), through, head };
    draft.note(format!("what lies at {path}, which a request adds, is no decision"));
    let (run, at) = (draft.state.current(), draft.now());
    let (path, blob, by) = (path.clone(), blob.clone(), plain(by));
    let (action, proof) = (action.to_owned(), "none".to_owned());
    draft.state.consumed.push(Consumed { path, blob, action, run, proof, by, at, proven: None, void: Some(void) });
}

/// A request that changes a decision which did not count: no host merges that once somebody has taken the decision away.
fn uprooted(draft: &mut Draft<'_>, run: &Run, step: &StepName) {
    let (path, _) = asked(draft, run, step);
    let is_about = |void: &Void| void.through.as_ref() == Some(step);
    let mut decisions = draft.state.consumed.iter().filter(|decision| decision.run == run.id);
    let last = decisions.rfind(|decision| decision.void.as_ref().is_some_and(is_about));
    let is_gone = last.is_some_and(|decision| decision.by != NOBODY && decision.path == path);
    if let Some(pull) = run.pulls.get(step).filter(|_| is_gone) {
        spoil(draft, run, step, pull.head.clone(), "the word was taken away that it was to come in the place of");
    }
}

/// What a decision answers to the letter as its request asks, or would ask now.
fn answers(draft: &Draft<'_>, decision: &Accepted) -> Option<Asks> {
    let asks = kind(&decision.decision.action)?;
    let letter = match &asks {
        Asks::Advance(step) => asked(draft, draft.state.run.as_ref()?, step),
        Asks::Delete => deletion_asked(draft)?,
        Asks::Revert => return None,
    };
    (letter == (decision.consumed.path.clone(), decision.consumed.blob.clone())).then_some(asks)
}

/// Whether the record names such a request.
fn is_open(draft: &Draft<'_>, asks: &Asks) -> bool {
    match asks {
        Asks::Advance(step) => draft.state.run.as_ref().is_some_and(|run| run.pulls.contains_key(step)),
        Asks::Delete => draft.state.deletions.asked.as_ref().is_some_and(|asked| asked.pull.is_some()),
        Asks::Revert => false,
    }
}

/// Why a decision is not what a request asked that it came by. Where Git does not tell how it came, it may have come by one that somebody
/// else has written to: that is `unsure`.
fn smuggled(draft: &Draft<'_>, decision: &Accepted, unsure: Option<&String>) -> Option<String> {
    let path = &decision.consumed.path;
    let as_asked = answers(draft, decision);
    if as_asked.as_ref().is_some_and(|asks| is_open(draft, asks)) {
        return None;
    }
    // One of ours, which the record does not name yet.
    let ours = as_asked.map(|asks| name(draft, &draft.state.current(), asks));
    let mut came_by = draft.input.decisions.requests.get(path).into_iter().flatten();
    if let Some(branch) = came_by.find(|branch| ours.as_ref() != Some(*branch)) {
        return Some(format!("it came by {branch}, which was to ask for something else"));
    }
    let file =
        draft.input.decisions.filed.iter().find(|file| file.path == *path && file.blob == decision.consumed.blob);
    let heads: Vec<&CommitId> = file.into_iter().flat_map(|file| file.brought.iter().chain(&file.merged)).collect();
    let is_void = |void: &Void| void.head.as_ref().is_some_and(|head| heads.contains(&head));
    if draft.state.consumed.iter().filter_map(|decision| decision.void.as_ref()).any(is_void) {
        return Some("it came by a commit that somebody else had pushed to a request".to_owned());
    }
    unsure.cloned()
}

/// The steps that wait for a decision. None of a run that a person has denied.
fn waiting(draft: &Draft<'_>) -> Vec<StepName> {
    let Some((run, plan)) = draft.state.run.as_ref().zip(draft.plan.as_deref()) else { return Vec::new() };
    if run.denied || draft.input.git != Git::Fresh {
        return Vec::new();
    }
    let ahead = gates::ahead(plan, draft.state.phase.position().map(|position| &position.step));
    let waits = |through: &StepName| !gates::covers(plan, &run.approved, through);
    ahead.into_iter().filter(waits).collect()
}

/// Those of them, and the request to let objects go, that were asked for by heads that do not lie there any more.
fn displaced(draft: &Draft<'_>) -> Vec<(Asks, Pull)> {
    let lies = |pull: &Pull| draft.input.proposals.get(&pull.branch).is_some_and(|branch| branch.head == pull.head);
    let of_step = |step: StepName| Some((draft.state.run.as_ref()?.pulls.get(&step)?.clone(), step));
    let steps = waiting(draft).into_iter().filter_map(of_step).map(|(pull, step)| (Asks::Advance(step), pull));
    let asked = draft.state.deletions.asked.as_ref().filter(|_| deletion_waits(draft));
    let name = name(draft, &draft.state.current(), Asks::Delete);
    let pull = asked.and_then(|asked| asked.pull.clone()).filter(|pull| pull.branch == name);
    let deletion = pull.map(|pull| (Asks::Delete, pull));
    steps.chain(deletion).filter(|(_, pull)| !lies(pull)).collect()
}

/// Whether people are asked to let objects go.
fn deletion_waits(draft: &Draft<'_>) -> bool {
    draft.input.git == Git::Fresh && deletions::is_asked(draft, &draft.state.current())
}

/// One of them, or the deletions, whose request somebody else has written to, and that is not asked for anew yet: its page may still be
/// merged, and Git does not tell what was squashed.
fn spoiled(draft: &Draft<'_>) -> Option<StepName> {
    let current = draft.state.current();
    let mut decisions =
        draft.state.consumed.iter().filter(|decision| decision.run == current && decision.action == history::DELETE);
    let was_written_to = decisions.any(|decision| decision.void.as_ref().is_some_and(|void| void.head.is_some()));
    if deletion_waits(draft) && !is_open(draft, &Asks::Delete) && was_written_to {
        return Some(delete());
    }
    let run = draft.state.run.as_ref()?;
    let was_written_to = |step: &StepName| voids(&draft.state, &run.id, step).any(|void| void.head.is_some());
    waiting(draft).into_iter().find(|step| !is_open(draft, &Asks::Advance(step.clone())) && was_written_to(step))
}

/// The file that the request to let objects go adds now.
fn deletion_asked(draft: &Draft<'_>) -> Option<(RepoPath, BlobId)> {
    let (asked, run) = (draft.state.deletions.asked.as_ref()?, draft.state.current());
    let before = history::deletion_paths(&draft.state, &run);
    let (path, text) = branches::deletion(&draft.input.id, &run, asked.what(), before);
    Some((path, oid::blob(text.as_bytes())))
}

/// The file that the request for a step adds now.
fn asked(draft: &Draft<'_>, run: &Run, through: &StepName) -> (RepoPath, BlobId) {
    let (path, text) = approval(&draft.input.id, &run.id, through, voids(&draft.state, &run.id, through).count());
    (path, oid::blob(text.as_bytes()))
}

fn lying<'d>(draft: &Draft<'d>, run: &RunId, asks: Asks) -> Option<&'d RequestBranch> {
    draft.input.proposals.get(&name(draft, run, asks))
}

fn judge(head: &CommitId, content: &HeadContent, wanted: Option<&Files>) -> Lies {
    let why = match content {
        HeadContent::Unread(why) => return Lies::Unread(head.clone(), why.clone()),
        HeadContent::Read(change) if !change.alone => "it would bring other commits too".to_owned(),
        HeadContent::Read(change) => {
            let is_asked =
                |(path, blob): &(&RepoPath, &Option<BlobId>)| wanted.and_then(|files| files.get(*path)) == Some(*blob);
            let gives_way =
                |path: &RepoPath| wanted.is_some_and(|files| files.keys().any(|file| makes_way(file, path)));
            let mut others = change.files.iter().filter(|file| !is_asked(file));
            let strange = others.find(|(path, blob)| blob.is_some() || !gives_way(path));
            let has_all = wanted.is_some_and(|files| files.keys().all(|path| change.files.contains_key(path)));
            match strange {
                None if has_all => return Lies::Ours(head.clone()),
                None => "it lacks what was asked".to_owned(),
                Some((path, _)) => format!("it would change {path}"),
            }
        }
        HeadContent::Odd(why) => why.clone(),
    };
    Lies::Void(head.clone(), Some(format!("somebody else has written to its branch: {why}")))
}
