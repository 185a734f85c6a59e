//! Flagger's Canary as a rollout.

mod built_in;
mod checks;
mod hooks;
mod istio;
mod layout;
mod objects;
mod phases;
mod ports;
mod provider;
mod texts;

use super::draft::{Draft, Imported};
use super::fields::FieldOutcome::{Differs, NotBuilt, NotNeeded};
use super::fields::Notes;
use super::input::{Document, Field, Input};
use super::router::{Counts, Router};
use super::{Shared, Tool, live};
use serde_json::json;
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::duration::Span;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::scaler;
use tidegate_controller::manifest::yaml::Content;

/// How Flagger goes, by what the analysis says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    /// Nothing is analysed.
    Skipped,
    /// Weights go up.
    Canary,
    /// So many intervals without users, then all.
    BlueGreen,
    /// So many intervals with some users, then all.
    AbTesting,
}

/// One Canary on its way.
struct Canary<'a> {
    document: &'a Document,
    input: &'a Input,
    shared: &'a mut Shared,
    notes: Notes,
    draft: Draft,
    strategy: Strategy,
    router: Router,
    counts: Counts,
    /// What is said of the provider if it names none.
    unsaid: Option<String>,
    /// Whether Flagger itself splits nothing with this provider, and lets nobody in before all.
    unsplit: bool,
    /// The checks that are webhooks of the type `rollback`.
    rollbacks: Vec<String>,
    /// The time between two looks, in seconds.
    interval: u64,
}

/// Imports what is Flagger's. `provider` is what Flagger runs with where a Canary does not say.
pub(super) fn import(input: &Input, provider: Option<&str>) -> Imported {
    let own = input.documents.iter().filter(|document| Tool::Flagger.owns(&document.api_version));
    let own: Vec<Document> = own.map(renamed).collect();
    let once = |refused: &BTreeMap<usize, String>| {
        super::import(Tool::Flagger, input, &own, |n, document, shared| {
            let mut canary = Canary::new(document, input, shared, provider);
            canary.convert(refused.get(&n));
            (canary.draft, canary.notes)
        })
    };
    let imported = once(&BTreeMap::new());
    // What is refused of a layout is known once all manifests are where they belong.
    let refused = layout::refused(&imported);
    if refused.is_empty() { imported } else { once(&refused) }
}

/// The document with the name that the analysis has today.
fn renamed(document: &Document) -> Document {
    let mut document = document.clone();
    let old = document.spec("canaryAnalysis").is_there() && !document.spec("analysis").is_there();
    if let (true, Content::Map(entries)) = (old, &mut document.node.content) {
        let spec = entries.iter_mut().filter(|(key, _)| key.text == "spec").map(|(_, node)| &mut node.content);
        for content in spec {
            let Content::Map(entries) = content else { continue };
            entries.retain(|(key, _)| key.text != "analysis");
            let old = entries.iter_mut().filter(|(key, _)| key.text == "canaryAnalysis");
            old.for_each(|(key, _)| "analysis".clone_into(&mut key.text));
        }
    }
    document
}

impl<'a> Canary<'a> {
    fn new(document: &'a Document, input: &'a Input, shared: &'a mut Shared, provider: Option<&'a str>) -> Self {
        let mut canary = Self {
            document,
            input,
            shared,
            notes: Notes::default(),
            draft: Draft::of(document),
            strategy: Strategy::Canary,
            router: Router::Gateway,
            counts: Counts::Unknown,
            unsaid: None,
            unsplit: false,
            rollbacks: Vec::new(),
            interval: 60,
        };
        canary.strategy = canary.strategy();
        canary.draft.kind = canary.kind();
        (canary.router, canary.counts) = canary.provider(provider);
        // Flagger looks once a minute, and every 10 s at the most.
        canary.interval = canary.notes.interval(&canary.analysis("interval"), 10);
        canary
    }

    fn spec(&self, field: &str) -> Field<'a> {
        self.document.spec(field)
    }

    /// A field of the analysis.
    fn analysis(&self, field: &str) -> Field<'a> {
        self.spec(&format!("analysis/{field}"))
    }

    /// The name of the Service that users meet: the target, if that is one.
    fn service(&self) -> String {
        let is_target = self.draft.kind == TargetKind::Service;
        let name = self.spec("service/name").text().filter(|name| !name.is_empty() && !is_target);
        name.unwrap_or(&self.draft.target).to_owned()
    }

    /// A manifest beside it among the input.
    fn beside(&self, kind: Kind, name: &str) -> Option<&'a Document> {
        self.input.find(kind, &self.document.namespace, name)
    }

    /// The target, if it is among the input.
    fn workload(&self) -> Option<&'a Document> {
        self.beside(self.draft.kind.kind(), &self.draft.target)
    }

    fn strategy(&self) -> Strategy {
        match () {
            () if self.spec("skipAnalysis").is_true() || !self.spec("analysis").is_there() => Strategy::Skipped,
            () if !self.analysis("match").items().is_empty() => Strategy::AbTesting,
            () if self.iterations() > 0 || self.steps().is_empty() => Strategy::BlueGreen,
            () => Strategy::Canary,
        }
    }

    /// `refused` is what is known to be in the way of the layout `primary`.
    fn convert(&mut self, refused: Option<&String>) {
        self.target();
        self.draft.layout = self.layout(refused);
        self.draft.suspend = self.spec("suspend").is_true();
        self.draft.progress_deadline = self.notes.seconds(&self.spec("progressDeadlineSeconds"));
        self.traffic();
        self.objects();
        match self.strategy {
            Strategy::Skipped => self.skipped(),
            Strategy::Canary => self.weights(),
            Strategy::BlueGreen => self.blue_green(),
            Strategy::AbTesting => self.some_users(),
        }
        let checks = self.checks();
        if self.strategy == Strategy::BlueGreen && self.router.route().is_some() && !self.unsplit {
            // Flagger leads all users to the new version, and looks once more before it promotes.
            self.draft.promotion.bake = self.interval;
            self.draft.promotion.checks.clone_from(&checks);
        }
        self.draft.phases.iter_mut().for_each(|phase| phase.checks.clone_from(&checks));
        self.hooks();
        self.gates();
    }

    /// Flagger asks who may begin a rollout, and tells of it, before it looks whether there is an analysis: what it goes past is the rest.
    fn skipped(&mut self) {
        let mut past = ANALYSED.map(|field| self.analysis(field)).to_vec();
        past.push(self.spec("metricsServer"));
        past.extend(self.analysis("webhooks").items().into_iter().filter(is_analysis));
        past.iter().for_each(|field| self.notes.say(field, NotNeeded, texts::SKIPPED));
    }

    /// The webhooks that Flagger calls, each with its type.
    fn webhooks(&self) -> Vec<(Field<'a>, &'a str)> {
        let all = self.analysis("webhooks").items().into_iter();
        let called = all.filter(|hook| self.strategy != Strategy::Skipped || !is_analysis(hook));
        called.map(|hook| (hook.clone(), kind_of(&hook))).collect()
    }

    /// What the target is here.
    fn kind(&mut self) -> TargetKind {
        let kind = self.spec("targetRef/kind");
        let of_knative =
            self.spec("targetRef/apiVersion").text().is_some_and(|v| v.starts_with("serving.knative.dev/"));
        let (found, outcome, text) = match kind.text() {
            Some("Deployment") => return TargetKind::Deployment,
            Some("Service") if !of_knative => (TargetKind::Service, Differs, texts::SERVICE_TARGET),
            Some("DaemonSet") => (TargetKind::DaemonSet, Differs, texts::DAEMON_SET_TARGET),
            Some(_) | None => (TargetKind::Deployment, NotBuilt, texts::OTHER_TARGET),
        };
        self.notes.say(&kind, outcome, text);
        found
    }

    fn target(&mut self) {
        let name = self.spec("targetRef/name").text().filter(|name| !name.is_empty());
        self.draft.target = name.unwrap_or(&self.document.name).to_owned();
        let kind = self.draft.kind.kind();
        self.size();
        self.draft.refers.push((kind, self.draft.target.clone(), "the target"));
        let scaler = self.spec("autoscalerRef");
        if self.draft.kind != TargetKind::Deployment {
            return self.notes.say(&scaler, NotNeeded, format!("nothing scales a {kind}"));
        }
        let Some(name) = scaler.get("name").text() else { return };
        match scaler::KINDS.into_iter().find(|kind| scaler.get("kind").text() == Some(kind.as_str())) {
            Some(kind) => self.draft.refers.push((kind, name.to_owned(), "its autoscaler")),
            None => {
                let text = "autoscalers other than a HorizontalPodAutoscaler or a ScaledObject cannot stand among the manifests";
                self.notes.say(&scaler, NotBuilt, text);
            }
        }
    }

    /// How many pods Flagger runs in the target's place: it keeps that at none between two versions.
    fn size(&mut self) {
        let (copy, namespace) = (format!("{}-primary", self.draft.target), &self.document.namespace);
        let copied = self.input.made.iter().find(|made| made.is(Kind::Deployment, namespace, &copy));
        let copied = copied.map(|copy| copy.spec("replicas").count());
        let Some(target) = self.workload().filter(|target| live::is_live(target)) else { return };
        self.draft.size = Some(copied.flatten().unwrap_or(1));
        if copied.is_none() && target.spec("replicas").count() == Some(0) {
            let text =
                format!("spec.target.name. It has no pods now, and {copy} is not among the files: say its replicas");
            self.notes.say(&self.spec("targetRef/name"), Differs, text);
        }
    }

    /// Who got the candidate keeps it, where the router can do that.
    fn affinity(&mut self) {
        let [name, age] = ["cookieName", "maxAge"].map(|field| self.analysis(&format!("sessionAffinity/{field}")));
        if !self.router.knows_requests() {
            for field in [&name, &age] {
                self.notes.say(field, NotBuilt, "only with the router gatewayAPI or istio");
            }
        } else if let Some(cookie) = name.text() {
            let age = self.max_age(&age);
            self.draft.traffic["sessionAffinity"] = json!({"cookie": cookie, "maxAge": age});
        }
    }

    /// How long browsers keep the cookie: a day if nothing is said.
    fn max_age(&mut self, field: &Field<'_>) -> Span {
        let said: Option<u64> = field.words().and_then(|text| text.parse().ok());
        let said = self.notes.wanted(field, said, "a number of seconds; it is a day");
        let said = said.filter(|seconds| *seconds > 0).unwrap_or(86_400);
        let age = Span::from_secs(said);
        if age.as_secs() < said {
            self.notes.say(field, Differs, "traffic.sessionAffinity.maxAge: ten years, which is the most");
        }
        age
    }

    fn traffic(&mut self) {
        let service = self.service();
        let ingress = self.spec("ingressRef/name").text().filter(|_| self.router == Router::Nginx);
        let route = ingress.unwrap_or(&service).to_owned();
        self.draft.traffic = self.router.traffic(&route, &service);
        if self.draft.kind == TargetKind::Service {
            let name = self.spec("service/name");
            if name.text().is_some_and(|name| name != service) {
                let text = format!("spec.traffic: the Service {service}, as it is the target");
                self.notes.say(&name, Differs, text);
            }
        } else {
            self.draft.refers.push((Kind::Service, service, "the Service that users meet"));
        }
        self.draft.refers.extend(self.router.route().map(|(kind, what)| (kind, route, what)));
        if self.strategy != Strategy::Skipped {
            self.affinity();
        }
        if self.router != Router::Nginx {
            self.notes.say(&self.spec("ingressRef"), NotNeeded, "with this router no Ingress is split");
        }
    }
}

/// The type of webhooks that stand before each weight.
const TRAFFIC_INCREASE: &str = "confirm-traffic-increase";
/// What of an analysis `skipAnalysis` goes past, but for webhooks.
const ANALYSED: [&str; 13] = [
    "interval",
    "iterations",
    "threshold",
    "maxWeight",
    "stepWeight",
    "stepWeights",
    "stepWeightPromotion",
    "primaryReadyThreshold",
    "match",
    "mirror",
    "mirrorWeight",
    "sessionAffinity",
    "metrics",
];

/// The type of a webhook.
fn kind_of<'a>(hook: &Field<'a>) -> &'a str {
    hook.get("type").text().unwrap_or("rollout")
}

/// Whether a webhook is called in an analysis alone.
fn is_analysis(hook: &Field<'_>) -> bool {
    ["rollout", "pre-rollout", "rollback", "confirm-promotion", TRAFFIC_INCREASE].contains(&kind_of(hook))
}
