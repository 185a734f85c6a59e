//! A Rollout of Argo Rollouts as one of ours.

mod baseline;
mod checks;
mod fields;
mod router;
mod steps;

use super::draft::{Draft, Imported, Phase, Providers};
use super::fields::{Notes, OBJECT, Outcome, Row, note};
use super::input::{Document, Field, Input};
use super::{live, merge, notes_of_other, undone, unmeasured};
pub(super) use router::{lines as routers, without};
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::scaler;

use checks::{Made, Samples, Shared};
use router::Router;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The group of its objects.
pub(super) const GROUP: &str = "argoproj.io";

/// Its kinds with their fields; the cluster's templates are like those of a namespace.
pub(super) const TABLES: &[(&str, &[Row])] = &[
    ("Rollout", fields::ROLLOUT),
    ("AnalysisTemplate", fields::TEMPLATE),
    ("ClusterAnalysisTemplate", fields::TEMPLATE),
];

/// One Rollout on its way.
struct Rollout<'a> {
    document: &'a Document,
    input: &'a Input,
    notes: Notes,
    draft: Draft,
    router: Router,
    made: Made,
}

/// Imports what is Argo's.
pub(super) fn import(input: &Input) -> Imported {
    let mut shared = Shared { providers: Providers::default(), used: BTreeMap::new() };
    let (mut drafts, mut fields) = (Vec::new(), Vec::new());
    let own = || input.documents.iter().filter(|document| document.group() == GROUP);
    for document in own().filter(|document| document.kind == "Rollout") {
        let mut rollout = Rollout::new(document, input);
        rollout.convert(&mut shared);
        fields.extend(note(document, &[OBJECT, fields::ROLLOUT], &rollout.notes));
        fields.extend(unmeasured(document, &rollout.draft));
        drafts.push(rollout.draft);
    }
    for document in own().filter(|document| document.kind != "Rollout") {
        let key = (document.kind.clone(), document.namespace.clone(), document.name.clone());
        fields.extend(notes_of_other(document, TABLES, shared.used.remove(&key)));
    }
    merge(input, Some(GROUP), drafts, shared.providers, fields)
}

impl<'a> Rollout<'a> {
    fn new(document: &'a Document, input: &'a Input) -> Self {
        let (notes, draft, made) = (Notes::default(), Draft::of(document), Made::new());
        Self { document, input, notes, draft, router: Router::Replicas, made }
    }

    fn spec(&self, field: &str) -> Field<'a> {
        self.document.at(&format!("/spec/{field}"))
    }

    fn canary(&self, field: &str) -> Field<'a> {
        self.spec(&format!("strategy/canary/{field}"))
    }

    fn blue_green(&self, field: &str) -> Field<'a> {
        self.spec(&format!("strategy/blueGreen/{field}"))
    }

    /// A number of seconds that a field says.
    fn seconds(&mut self, field: &Field<'_>) -> Option<u64> {
        let seconds = field.count().map(u64::from);
        if seconds.is_none() {
            self.notes.odd(field, "a number of seconds");
        }
        seconds
    }

    fn convert(&mut self, shared: &mut Shared) {
        self.target();
        self.draft.suspend = self.spec("paused").is_true();
        self.draft.progress_deadline = self.seconds(&self.spec("progressDeadlineSeconds"));
        let second = if self.spec("strategy/blueGreen").is_there() {
            self.preview(shared);
            self.blue_green("previewService")
        } else {
            self.traffic();
            self.steps(shared);
            self.canary("canaryService")
        };
        let second = second.text().filter(|name| !self.draft.refers.iter().any(|(_, known, _)| known == name));
        self.draft.second = second.map(str::to_owned);
    }

    /// The Deployment: the one that it refers to, or one of the same template.
    fn target(&mut self) {
        let reference = self.spec("workloadRef");
        let name = reference.get("name").text().filter(|name| !name.is_empty());
        self.draft.target = name.unwrap_or(&self.document.name).to_owned();
        let target = self.draft.target.clone();
        self.draft.refers.push((Kind::Deployment, target.clone(), "the workload"));
        let parts = ["replicas", "selector", "template", "minReadySeconds", "revisionHistoryLimit"];
        if reference.is_there() {
            if !matches!(reference.get("kind").text(), Some("Deployment") | None) {
                let text = "only a Deployment is a target of its own here; the rollout names a Deployment of that name";
                self.notes.say(&reference.get("kind"), Outcome::NotBuilt, text);
            }
            self.referred(&target);
            for part in parts {
                self.notes.say(&self.spec(part), Outcome::DoneOtherwise, format!("the Deployment {target} says it"));
            }
        } else if self.among(Kind::Deployment, &target).is_some() {
            for part in parts {
                self.notes.say(
                    &self.spec(part),
                    Outcome::NotNeeded,
                    format!("the Deployment {target} is among the files, and says it"),
                );
            }
        } else {
            let deployment = self.deployment(&target);
            self.draft.objects.push(deployment);
        }
    }

    /// How many pods a Deployment has that it refers to: the Rollout says it, and Argo Rollouts keeps the Deployment at none.
    fn referred(&mut self, target: &str) {
        let replicas = self.spec("replicas");
        if let Some(scaler) = self.scaler() {
            self.notes.say(&replicas, Outcome::NotNeeded, format!("the autoscaler {} says how many", scaler.name));
            return;
        }
        self.draft.replicas = replicas.count();
        // Without a number it is one.
        self.draft.size = Some(1);
        if self.among(Kind::Deployment, target).is_some() {
            self.notes.say(
                &replicas,
                Outcome::Imported,
                format!("the Deployment {target}, in place of its own number"),
            );
        } else {
            self.notes.say(&replicas, Outcome::DoneOtherwise, format!("say it in the Deployment {target}"));
        }
    }

    fn deployment(&mut self, name: &str) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), self.draft.namespace.clone().into());
        let own = live::value(self.document);
        let said = |field: String| own.pointer(&field).filter(|value| !value.is_null()).cloned();
        for part in ["labels", "annotations"] {
            let field = format!("/metadata/{part}");
            if let Some(texts) = said(field.clone()) {
                metadata.insert(part.to_owned(), texts);
                self.notes.say(&self.document.at(&field), Outcome::Imported, "the Deployment");
            }
        }
        let mut spec = Map::new();
        for part in ["replicas", "minReadySeconds", "revisionHistoryLimit", "selector", "template"] {
            spec.extend(said(format!("/spec/{part}")).map(|value| (part.to_owned(), value)));
        }
        if let Some(scaler) = self.scaler() {
            spec.shift_remove("replicas");
            let text = format!("the autoscaler {} says how many", scaler.name);
            self.notes.say(&self.spec("replicas"), Outcome::NotNeeded, text);
        }
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    }

    /// An object among the input.
    fn among(&self, kind: Kind, name: &str) -> Option<&'a Document> {
        let namespace = &self.document.namespace;
        self.input.documents.iter().find(|d| d.manifest() == Some(kind) && d.name == name && d.namespace == *namespace)
    }

    /// The autoscaler among the input that says how many pods there are: no number stands beside it in what is made.
    fn scaler(&self) -> Option<&'a Document> {
        let workloads = [("Rollout", &self.document.name), ("Deployment", &self.draft.target)];
        workloads.into_iter().find_map(|(kind, name)| undone::scaler(self.input, &self.document.namespace, kind, name))
    }

    /// The pods that the stable version has, as far as the files say: the fewest that its autoscaler leaves, else as many as are declared.
    fn replicas(&self) -> u32 {
        if let Some(found) = self.scaler() {
            let least = found.manifest().and_then(scaler::bounds).and_then(|[least, _]| found.at(least).count());
            return least.unwrap_or(1).max(1);
        }
        let own = self.spec("replicas").count();
        own.or_else(|| self.among(Kind::Deployment, &self.draft.target)?.at("/spec/replicas").count()).unwrap_or(1)
    }

    /// The only Service among the input that leads to its pods.
    fn selecting(&self) -> Option<String> {
        let template = self.spec("template/metadata/labels");
        let labels = match self.among(Kind::Deployment, &self.draft.target) {
            Some(deployment) if !template.is_there() => deployment.at("/spec/template/metadata/labels"),
            _ => template,
        };
        let selects = |d: &&Document| {
            let selector = d.at("/spec/selector").entries();
            d.manifest() == Some(Kind::Service)
                && d.namespace == self.document.namespace
                && !selector.is_empty()
                && selector.iter().all(|(key, value)| *key == undone::HASH || labels.get(key).words() == value.words())
        };
        let mut found = self.input.documents.iter().filter(selects);
        match (found.next(), found.next()) {
            (Some(one), None) => Some(one.name.clone()),
            _ => None,
        }
    }

    /// Blue/green: nobody is let in, then everybody.
    fn preview(&mut self, shared: &mut Shared) {
        self.router = Router::Service;
        self.notes.say(&self.spec("strategy/canary"), Outcome::NotNeeded, "blueGreen goes before it");
        let service = self.blue_green("activeService").text().unwrap_or(&self.draft.target).to_owned();
        self.draft.refers.push((Kind::Service, service.clone(), "the Service that users meet"));
        self.draft.traffic = json!({"service": service});
        let before = self.blue_green("prePromotionAnalysis");
        let checks = self.analysis(&before, Samples::AsSaid, shared);
        let by_itself = self.blue_green("autoPromotionEnabled");
        let waits = by_itself.is_there() && !by_itself.is_true();
        let soak = self.seconds(&self.blue_green("autoPromotionSeconds")).unwrap_or(0);
        if waits {
            self.draft.promotion.before.insert("approval".to_owned(), "pullRequest".into());
        }
        let soak = if waits { 0 } else { soak };
        if waits {
            let text = "an approval stands before the promotion; give it a soak if it shall wait for both";
            self.notes.say(&self.blue_green("autoPromotionSeconds"), Outcome::Differs, text);
        }
        let expose = Map::from_iter([("preview".to_owned(), json!("fullSize"))]);
        let soak = soak.max(self.draft.needs(&checks));
        self.draft.phases.push(Phase { wish: "preview".to_owned(), expose, soak, checks, ..Phase::default() });
        let after = self.blue_green("postPromotionAnalysis");
        let checks = self.analysis(&after, Samples::AsSaid, shared);
        // The old version stays for 30 s if nothing is said.
        let bake = self.seconds(&self.blue_green("scaleDownDelaySeconds")).unwrap_or(30);
        self.draft.promotion.bake = bake.max(self.draft.needs(&checks));
        self.draft.promotion.checks = checks;
    }
}
