//! A Rollout of Argo Rollouts as one of ours.

mod baseline;
mod checks;
mod conditions;
mod router;
mod steps;

use super::draft::{Draft, Imported, Phase, approval, object};
use super::fields::FieldOutcome::{self, Differs, DoneOtherwise, NotBuilt, NotNeeded};
use super::fields::Notes;
use super::input::{Document, Field, Input};
use super::router::Router;
use super::{Shared, Tool, live, undone};
use checks::{Made, Samples};
use serde_json::{Map, Value};
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::scaler;

/// One Rollout on its way.
struct Rollout<'a> {
    document: &'a Document,
    input: &'a Input,
    shared: &'a mut Shared,
    notes: Notes,
    draft: Draft,
    router: Router,
    made: Made,
}

/// Imports what is Argo's.
pub(super) fn import(input: &Input) -> Imported {
    let own = input.documents.iter().filter(|document| Tool::Argo.owns(&document.api_version));
    let own: Vec<Document> = own.cloned().collect();
    super::import(Tool::Argo, input, &own, |_, document, shared| {
        let (notes, draft, made) = (Notes::default(), Draft::of(document), Made::new());
        let mut rollout = Rollout { document, input, shared, notes, draft, router: Router::Replicas, made };
        rollout.convert();
        (rollout.draft, rollout.notes)
    })
}

/// What a Deployment says of its pods.
const OF_PODS: [&str; 5] = ["replicas", "minReadySeconds", "revisionHistoryLimit", "selector", "template"];

impl<'a> Rollout<'a> {
    fn spec(&self, field: &str) -> Field<'a> {
        self.document.spec(field)
    }

    fn canary(&self, field: &str) -> Field<'a> {
        self.spec(&format!("strategy/canary/{field}"))
    }

    fn blue_green(&self, field: &str) -> Field<'a> {
        self.spec(&format!("strategy/blueGreen/{field}"))
    }

    fn convert(&mut self) {
        self.target();
        self.draft.suspend = self.spec("paused").is_true();
        self.draft.progress_deadline = self.notes.seconds(&self.spec("progressDeadlineSeconds"));
        let second = if self.spec("strategy/blueGreen").is_there() {
            self.preview();
            self.blue_green("previewService")
        } else {
            self.traffic();
            self.steps();
            self.canary("canaryService")
        };
        let second = second.text().filter(|name| !self.draft.refers.iter().any(|(_, known, _)| known == name));
        self.draft.second = second.map(str::to_owned);
    }

    /// The Deployment: the one that it refers to, or one of the same template.
    fn target(&mut self) {
        let reference = self.spec("workloadRef");
        let name = reference.get("name").text().filter(|name| !name.is_empty());
        let target = name.unwrap_or(&self.document.name).to_owned();
        self.draft.target.clone_from(&target);
        self.draft.refers.push((Kind::Deployment, target.clone(), "the workload"));
        let (outcome, text) = if reference.is_there() {
            if !matches!(reference.get("kind").text(), Some("Deployment") | None) {
                let text = "only a Deployment is a target of its own here; the rollout names a Deployment of that name";
                self.notes.say(&reference.get("kind"), NotBuilt, text);
            }
            self.referred(&target);
            (DoneOtherwise, format!("the Deployment {target} says it"))
        } else if self.beside(Kind::Deployment, &target).is_some() {
            (NotNeeded, format!("the Deployment {target} is among the files, and says it"))
        } else {
            let deployment = self.deployment(&target);
            return self.draft.objects.push(deployment);
        };
        OF_PODS.iter().for_each(|part| self.notes.say(&self.spec(part), outcome, text.as_str()));
    }

    /// How many pods a Deployment has that it refers to: the Rollout says it, and Argo Rollouts keeps the Deployment at none.
    fn referred(&mut self, target: &str) {
        if self.is_scaled() {
            return;
        }
        let replicas = self.spec("replicas");
        self.draft.replicas = replicas.count();
        // Without a number it is one.
        self.draft.size = Some(1);
        if self.beside(Kind::Deployment, target).is_some() {
            self.notes.say(
                &replicas,
                FieldOutcome::Imported,
                format!("the Deployment {target}, in place of its own number"),
            );
        } else {
            self.notes.say(&replicas, DoneOtherwise, format!("say it in the Deployment {target}"));
        }
    }

    /// Whether an autoscaler says how many pods there are, which then is said of their number.
    fn is_scaled(&mut self) -> bool {
        let text = self.scaler().map(|scaler| format!("the autoscaler {} says how many", scaler.name));
        text.map(|text| self.notes.say(&self.spec("replicas"), NotNeeded, text)).is_some()
    }

    fn deployment(&mut self, name: &str) -> Value {
        let own = live::value(self.document);
        let said = |field: &str| own.pointer(field).filter(|value| !value.is_null()).cloned();
        let mut metadata = Map::from_iter([("name".to_owned(), name.into())]);
        metadata.insert("namespace".to_owned(), self.draft.namespace.clone().into());
        for part in ["labels", "annotations"] {
            let field = format!("/metadata/{part}");
            if let Some(texts) = said(&field) {
                metadata.insert(part.to_owned(), texts);
                self.notes.say(&self.document.at(&field), FieldOutcome::Imported, "the Deployment");
            }
        }
        let parts = OF_PODS.into_iter().filter_map(|part| Some((part.to_owned(), said(&format!("/spec/{part}"))?)));
        let mut spec: Map<String, Value> = parts.collect();
        if self.is_scaled() {
            spec.shift_remove("replicas");
        }
        object(Kind::Deployment, metadata.into(), spec)
    }

    /// A manifest beside it among the input.
    fn beside(&self, kind: Kind, name: &str) -> Option<&'a Document> {
        self.input.find(kind, &self.document.namespace, name)
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
        own.or_else(|| self.beside(Kind::Deployment, &self.draft.target)?.spec("replicas").count()).unwrap_or(1)
    }

    /// The only Service among the input that leads to its pods.
    fn selecting(&self) -> Option<&'a str> {
        let template = self.spec("template/metadata/labels");
        let labels = match self.beside(Kind::Deployment, &self.draft.target) {
            Some(deployment) if !template.is_there() => deployment.spec("template/metadata/labels"),
            _ => template,
        };
        let selects = |d: &&Document| {
            let selector = d.spec("selector").entries();
            d.is(Kind::Service, &self.document.namespace, &d.name)
                && !selector.is_empty()
                && selector.iter().all(|(key, value)| *key == undone::HASH || labels.get(key).words() == value.words())
        };
        let mut found = self.input.documents.iter().filter(selects);
        found.next().filter(|_| found.next().is_none()).map(|one| one.name.as_str())
    }

    /// Blue/green: nobody is let in, then everybody.
    fn preview(&mut self) {
        self.router = Router::Service;
        self.notes.say(&self.spec("strategy/canary"), NotNeeded, "blueGreen goes before it");
        let service = self.blue_green("activeService").text().unwrap_or(&self.draft.target).to_owned();
        self.draft.traffic = self.router.traffic("", &service);
        self.draft.refers.push((Kind::Service, service, "the Service that users meet"));
        let checks = self.analysis(&self.blue_green("prePromotionAnalysis"), Samples::AsSaid);
        let by_itself = self.blue_green("autoPromotionEnabled");
        let after = self.blue_green("autoPromotionSeconds");
        let mut soak = self.notes.seconds(&after).unwrap_or(0);
        if by_itself.is_there() && !by_itself.is_true() {
            soak = 0;
            self.draft.promotion.before.extend(approval());
            let text = "an approval stands before the promotion; give it a soak if it shall wait for both";
            self.notes.say(&after, Differs, text);
        }
        let soak = soak.max(self.draft.needs(&checks));
        self.draft.phases.push(Phase { soak, checks, ..Phase::preview() });
        let checks = self.analysis(&self.blue_green("postPromotionAnalysis"), Samples::AsSaid);
        // The old version stays for 30 s if nothing is said.
        let bake = self.notes.seconds(&self.blue_green("scaleDownDelaySeconds")).unwrap_or(30);
        self.draft.promotion.bake = bake.max(self.draft.needs(&checks));
        self.draft.promotion.checks = checks;
    }
}
