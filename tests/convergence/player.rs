//! Plays the chapters of one rollout: people who wait until it rests, change something, and answer what they are asked.

use crate::convergence::behind;
use crate::convergence::check::{Checker, KINDS};
use crate::convergence::host::{DECISIONS, Host, MAIN};
use crate::convergence::story::{Chapter, During, Edit, Part};
use crate::scenarios::live;
use chrono::TimeDelta;
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use tidegate::manifest::ids::{RolloutId, RunId};
use tidegate::record::history;
use tidegate::record::state::{Outcome, Phase, Position, RolloutState, Serving, Time};
use tidegate::world::kube_api::World;
use tidegate::world::kube_api::resource::Resource;

/// The longest that a chapter may take.
const PATIENCE: i64 = 3 * 3_600;

pub(crate) struct Player {
    part: Part,
    id: RolloutId,
    chapters: VecDeque<Chapter>,
    playing: Option<Playing>,
    /// The number of the last version that was made.
    version: u32,
    /// What main says.
    main: String,
    /// What is promoted, and what was before.
    promoted: Vec<String>,
    replicas: u64,
    suspend: bool,
    broken: bool,
    said: BTreeSet<String>,
    deeds: Vec<Deed>,
    /// What the webhook of all says from now on.
    verdict: Option<&'static str>,
}

struct Playing {
    chapter: Chapter,
    began: Time,
    last_run: Option<RunId>,
    /// What shall run in the end.
    ends_with: String,
    during: Progress,
    /// The run that goes on, whatever main changes directly.
    goes_on: Option<RunId>,
}

/// How far what happens on the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Ahead,
    Until(Time),
    Over,
}

/// What a step of a player came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pace {
    Busy,
    Done,
    Stuck(String),
}

impl Player {
    pub(crate) fn new(part: &Part) -> Self {
        let mut player = Self {
            id: format!("shop/{}", part.shape.name).parse().unwrap(),
            chapters: part.chapters.iter().copied().collect(),
            playing: None,
            version: 1,
            main: "1".to_owned(),
            promoted: vec!["1".to_owned()],
            replicas: part.shape.replicas,
            suspend: false,
            broken: false,
            said: BTreeSet::new(),
            deeds: Vec::new(),
            verdict: None,
            part: part.clone(),
        };
        player.make_pods();
        player
    }

    /// The files of the rollout as they shall be on main.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let (shape, name) = (&self.part.shape, self.part.shape.name);
        let mut files = vec![
            (format!("shop/{name}.rollout.yaml"), shape.rollout(&self.main, self.suspend, self.broken)),
            (format!("shop/{name}.yaml"), shape.manifests(&self.main, self.replicas)),
        ];
        if shape.is_tried_out() {
            files.push((format!("shop/{name}-job.yaml"), shape.job(&self.main)));
        }
        files
    }

    /// Whether the rollout rests, as promoted last.
    pub(crate) fn rests(&self, checker: &Checker) -> bool {
        let tag = self.promoted.last().unwrap();
        checker.records.get(&self.id).is_some_and(at_rest) && checker.rests(&self.id, tag, self.replicas)
    }

    /// One look at the world.
    pub(crate) fn step(&mut self, host: &Host, checker: &mut Checker, now: Time) -> Pace {
        let Some(record) = checker.records.get(&self.id).cloned() else { return Pace::Busy };
        self.answer(host, &record, now);
        if self.part.shape.scaled && at_rest(&record) && checker.pods(&self.id) > self.replicas {
            self.measure(self.replicas);
        }
        let Some(mut playing) = self.playing.take() else {
            return self.next(host, checker, &record, now);
        };
        if (now - playing.began).num_seconds() > PATIENCE {
            let standing = checker.standing(&self.id);
            let conditions: Vec<&str> = record.conditions.iter().map(|found| found.reason.as_str()).collect();
            let what = format!("{} does not come to an end: {standing}; {conditions:?}", playing.chapter.edit);
            return Pace::Stuck(what);
        }
        self.meanwhile(&mut playing, host, checker, &record, now);
        let waits =
            matches!(playing.during, Progress::Until(_)) || (playing.during == Progress::Ahead && record.run.is_some());
        let ran = record.last_run.as_ref().map(|run| &run.id) != playing.last_run.as_ref();
        let plain = matches!(playing.chapter.edit, Edit::Replicas(_));
        let done = at_rest(&record) && (ran || plain) && checker.rests(&self.id, &playing.ends_with, self.replicas);
        if done && !waits {
            let ended = record.last_run.as_ref().map(|run| &run.id);
            if playing.goes_on.is_some() && playing.goes_on.as_ref() != ended {
                return Pace::Stuck(format!("run {ended:?} was made of what main changes directly"));
            }
            if *self.promoted.last().unwrap() != playing.ends_with {
                self.promoted.push(playing.ends_with);
            }
        } else {
            self.playing = Some(playing);
        }
        Pace::Busy
    }

    fn next(&mut self, host: &Host, checker: &Checker, record: &RolloutState, now: Time) -> Pace {
        if !self.rests(checker) {
            return Pace::Busy;
        }
        let Some(chapter) = self.chapters.pop_front() else { return Pace::Done };
        let last_run = record.last_run.as_ref().map(|run| run.id.clone());
        let mut ends_with = self.promoted.last().unwrap().clone();
        match chapter.edit {
            Edit::Good => {
                self.make("");
                if !matches!(chapter.during, Some(During::Abort | During::BrakeRevert | During::MainBack)) {
                    ends_with = self.main.clone();
                }
            }
            Edit::Errors => self.make("-errors"),
            Edit::Crash => self.make("-crash"),
            Edit::Untested => self.make("-untested"),
            Edit::Replicas(replicas) => self.replicas = replicas,
            Edit::Retry => {
                let refused = record.refused.last().map(|refused| refused.run.clone());
                if let Some(run) = refused {
                    self.say(host, &run, "retry", now);
                }
            }
            Edit::Rollback => {
                let promoted = record.history.iter().rev().filter(|past| past.outcome == Outcome::Promoted);
                let run = promoted.map(|past| past.run.clone()).nth(1).unwrap_or_else(RunId::zero);
                self.promoted.pop();
                ends_with = self.promoted.last().unwrap().clone();
                self.promoted.push(self.main.clone());
                self.say(host, &run, "rollback", now);
            }
        }
        if !matches!(chapter.edit, Edit::Retry | Edit::Rollback) {
            self.push(host, &chapter.edit.to_string(), now);
        }
        let during = if chapter.during.is_some() { Progress::Ahead } else { Progress::Over };
        self.playing = Some(Playing { chapter, began: now, last_run, ends_with, during, goes_on: None });
        Pace::Busy
    }

    fn make(&mut self, fate: &str) {
        self.version += 1;
        self.main = format!("{}{fate}", self.version);
        self.make_pods();
    }

    /// People make what the version on main leads to, where a Service is the target.
    fn make_pods(&mut self) {
        if self.part.shape.leads.is_some() {
            let (name, tag) = (self.part.shape.name, self.main.clone());
            self.deeds.push(Box::new(move |world| behind::make(world, name, &tag)));
        }
    }

    fn push(&self, host: &Host, subject: &str, now: Time) {
        host.commit(MAIN, &self.files(), subject, now);
    }

    /// A word of people's, once.
    fn say(&mut self, host: &Host, run: &RunId, action: &str, now: Time) {
        self.decide(host, run, action, &format!("action: {action}"), now);
    }

    fn decide(&mut self, host: &Host, run: &RunId, file: &str, what: &str, now: Time) {
        // Said again, a word has a number.
        let (mut path, mut number) = (format!("{}/{run}-{file}.yaml", self.id), 1);
        while self.said.contains(&path) && !what.contains("approve") {
            number += 1;
            path = format!("{}/{run}-{file}-{number}.yaml", self.id);
        }
        if self.said.insert(path.clone()) {
            let name = self.part.shape.name;
            let text = format!(
                "apiVersion: tidegate.io/v1alpha1\nkind: Decision\nmetadata: {{name: {name}, namespace: shop}}\n\
                 spec: {{run: \"{run}\", {what}}}\n"
            );
            host.commit(DECISIONS, &[(path, text)], file, now);
        }
    }

    /// Approves what is asked.
    fn answer(&mut self, host: &Host, record: &RolloutState, now: Time) {
        let Some(run) = &record.run else { return };
        let asked: Vec<_> = run.pulls.keys().filter(|step| !run.approved.contains(step)).cloned().collect();
        for step in asked {
            self.decide(host, &run.id, step.as_str(), &format!("action: approve, through: {step}"), now);
        }
    }

    /// What happens once the run stands on its first phase, and its end.
    fn meanwhile(
        &mut self,
        playing: &mut Playing,
        host: &Host,
        checker: &mut Checker,
        record: &RolloutState,
        now: Time,
    ) {
        let Some(during) = playing.chapter.during else { return };
        // The first phase, or a later one where it was left as soon as Git had it.
        let phases = &self.part.shape.phases;
        let exposed = |position: &Position| {
            position.clock.exposed.is_some() && phases.iter().any(|phase| phase.name == position.step.as_str())
        };
        let there = record.run.is_some()
            && matches!(record.phase, Phase::Progressing(_) | Phase::Waiting { .. })
            && record.phase.position().is_some_and(exposed);
        match playing.during {
            Progress::Ahead if there => {
                self.begin(during, playing, host, checker, record, now);
                playing.during =
                    during.lasts().map_or(Progress::Over, |time| Progress::Until(now + TimeDelta::seconds(time)));
            }
            Progress::Until(end) if now >= end => {
                self.end(during, host, checker, record, now);
                playing.during = Progress::Over;
            }
            Progress::Ahead | Progress::Until(_) | Progress::Over => {}
        }
    }

    fn begin(
        &mut self,
        during: During,
        playing: &mut Playing,
        host: &Host,
        checker: &mut Checker,
        record: &RolloutState,
        now: Time,
    ) {
        let run = record.run.as_ref().map_or_else(RunId::zero, |run| run.id.clone());
        match during {
            During::Suspend => {
                self.suspend = true;
                self.push(host, "suspend", now);
            }
            During::BrokenFile => {
                self.broken = true;
                self.push(host, "a mistake", now);
            }
            During::Hold => self.say(host, &run, "hold", now),
            During::Deny => self.say(host, &run, "deny", now),
            // In an incident people say the one or the other.
            During::Abort if self.version.is_multiple_of(2) => {
                self.say(host, &history::served(record), "rollback", now);
            }
            During::Abort => self.say(host, &run, "abort", now),
            During::Supersede => {
                self.make("");
                playing.ends_with = self.main.clone();
                self.push(host, "another version", now);
            }
            During::MainBack => {
                self.main = self.promoted.last().unwrap().clone();
                self.push(host, "the version before", now);
            }
            During::WebhookHolds => {
                checker.held = Some(now);
                self.verdict = Some("hold");
            }
            During::BrakeHold => self.brake(checker, "hold", now),
            During::BrakeRevert => self.brake(checker, "revert", now),
            During::HandRaises => self.raise(checker),
            During::HandScales => self.rescale(checker),
            During::HandLeads => self.lead(checker),
            During::Busy => {
                checker.touched(&self.id);
                self.measure(self.replicas + 1);
            }
            During::Resize => {
                self.replicas += 1;
                playing.goes_on = Some(run);
                self.push(host, "one pod more", now);
            }
            During::Falters if checker.falters(&self.id, now) => {
                self.pods(self.part.shape.candidate(&self.main), false, 1);
            }
            During::Falters => {}
            During::Starves => {
                checker.starves(&self.id, Some(now));
                self.pods(self.stable(), false, usize::try_from(self.replicas / 2).unwrap());
            }
        }
    }

    fn stable(&self) -> String {
        self.part.shape.stable(self.promoted.last().unwrap())
    }

    /// So many pods of a Deployment stop being ready, or are ready again.
    fn pods(&mut self, deployment: String, ready: bool, most: usize) {
        self.deeds.push(Box::new(move |world| live::pods(world, &deployment, ready, most).unwrap()));
    }

    fn end(&mut self, during: During, host: &Host, checker: &mut Checker, record: &RolloutState, now: Time) {
        match during {
            During::Suspend => {
                self.suspend = false;
                self.push(host, "go on", now);
            }
            During::BrokenFile => {
                self.broken = false;
                self.push(host, "mended", now);
            }
            During::Hold | During::Deny => {
                if let Some(run) = &record.run {
                    let run = run.id.clone();
                    self.say(host, &run, "resume", now);
                }
            }
            During::WebhookHolds => {
                checker.held = None;
                self.verdict = Some("good");
            }
            During::BrakeHold | During::BrakeRevert => self.brake(checker, "", now),
            During::Busy => self.measure(self.replicas),
            During::Falters => {
                checker.recovers(&self.id, now);
                self.pods(self.part.shape.candidate(&self.main), true, usize::MAX);
            }
            During::Starves => {
                checker.starves(&self.id, None);
                self.pods(self.stable(), true, usize::MAX);
            }
            During::Abort
            | During::Supersede
            | During::MainBack
            | During::HandRaises
            | During::HandScales
            | During::HandLeads
            | During::Resize => {}
        }
    }

    /// Sets the brake of this rollout; an empty word takes it away.
    fn brake(&mut self, checker: &mut Checker, word: &str, now: Time) {
        let key = format!("shop.{}", self.part.shape.name);
        if word.is_empty() {
            checker.braked.remove(self.part.shape.name);
        } else {
            checker.braked.insert(self.part.shape.name.to_owned(), now);
        }
        let word: Value = if word.is_empty() { Value::Null } else { word.into() };
        self.deeds.push(Box::new(move |world| {
            let maps = Resource::of_kind("v1", "ConfigMap").unwrap();
            let found = world.get(maps, "tidegate", "tidegate-brake").map(|found| (**found).clone());
            let mut brake = found.clone().unwrap_or_else(
                || json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tidegate-brake", "namespace": "tidegate"}}),
            );
            let mut data = brake["data"].as_object().cloned().unwrap_or_default();
            if word.is_null() { drop(data.remove(&key)) } else { drop(data.insert(key, word)) };
            brake["data"] = data.into();
            match found {
                Some(_) => drop(world.update(brake, "", "hand").unwrap()),
                None => drop(world.create("v1", "ConfigMap", "hand", brake).unwrap()),
            }
        }));
    }

    /// A hand sends all requests to the candidate.
    fn raise(&mut self, checker: &mut Checker) {
        checker.touched(&self.id);
        let (router, name) = (self.part.shape.router, self.part.shape.name);
        let (plural, route) = router.route(name).unwrap();
        let service = self.part.shape.own(self.promoted.last().unwrap());
        self.change(plural, route, move |route| router.raise(&service, route));
    }

    /// A hand gives stable another pod.
    fn rescale(&mut self, checker: &mut Checker) {
        checker.touched(&self.id);
        let more = self.replicas + 1;
        let (_, plural) = self.part.shape.target();
        let scale = move |workload: &mut Value| workload["spec"]["replicas"] = more.into();
        self.change(plural, self.stable(), scale);
    }

    /// A hand leads the Service that is the target where the new version leads.
    fn lead(&mut self, checker: &mut Checker) {
        checker.touched(&self.id);
        let (shape, tag) = (&self.part.shape, self.main.clone());
        let (leads, name) = (shape.leads.unwrap(), shape.name);
        self.change("services", name.to_owned(), move |service| leads.lead(service, name, &tag));
    }

    /// The autoscaler measures that stable needs so many pods; its bounds are looked after by itself.
    fn measure(&mut self, pods: u64) {
        let stable = self.stable();
        self.deeds.push(Box::new(move |world| {
            let scale = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": stable, "namespace": "shop"},
                "spec": {"replicas": pods},
            });
            world.update(scale, "scale", "hand").unwrap();
        }));
    }

    /// A hand changes what people's requests meet: the route, or stable's pods.
    fn change(&mut self, plural: &'static str, name: String, change: impl FnOnce(&mut Value) + 'static) {
        let (api, kind, _) = KINDS.into_iter().find(|(_, _, known)| *known == plural).unwrap();
        self.deeds.push(Box::new(move |world| {
            let resource = Resource::of_kind(api, kind).unwrap();
            let Some(found) = world.get(resource, "shop", &name) else { return };
            let mut object = (**found).clone();
            change(&mut object);
            world.update(object, "", "hand").unwrap();
        }));
    }

    /// What the webhook says from now on, if it is something else.
    pub(crate) fn verdict(&mut self) -> Option<&'static str> {
        self.verdict.take()
    }

    /// What hands do to the cluster now.
    pub(crate) fn deeds(&mut self) -> Vec<Deed> {
        std::mem::take(&mut self.deeds)
    }
}

/// Something that a hand does to the cluster.
pub(crate) type Deed = Box<dyn FnOnce(&mut World)>;

fn at_rest(record: &RolloutState) -> bool {
    let rests = match record.phase {
        Phase::Steady { .. } => true,
        // It says why as well.
        Phase::Failed { standing: Serving::Stable, .. } => !record.conditions.is_empty(),
        _ => false,
    };
    rests && record.run.is_none()
}
