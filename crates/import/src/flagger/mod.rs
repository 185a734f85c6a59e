//! Flagger's Canary as a rollout.

mod built_in;
mod checks;
mod fields;
mod hooks;
mod istio;
mod layout;
mod objects;
mod phases;
mod ports;
mod provider;

pub(super) use phases::{is_header, matched};
pub(super) use provider::{INSTEAD, lines as providers};

use super::draft::{Draft, Imported, Providers, go_duration, rounded};
use super::fields::{Notes, OBJECT, Outcome, Row, note};
use super::input::{Document, Field, Input};
use super::{live, merge, notes_of_other, unmeasured};
use provider::{Counts, Router};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tidegate_controller::manifest::desired::TargetKind;
use tidegate_controller::manifest::duration::Span;
use tidegate_controller::manifest::object::Kind;
use tidegate_controller::manifest::scaler;
use tidegate_controller::manifest::yaml::Content;

/// The group of its objects.
pub(super) const GROUP: &str = "flagger.app";

/// Its kinds with their fields.
pub(super) const TABLES: &[(&str, &[Row])] = &[
    ("Canary", fields::CANARY),
    ("MetricTemplate", fields::METRIC_TEMPLATE),
    ("AlertProvider", fields::ALERT_PROVIDER),
];

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
    let own: Vec<Document> = input.documents.iter().filter(|d| d.group() == GROUP).map(renamed).collect();
    let imported = once(input, &own, provider, &BTreeMap::new());
    // What is refused of a layout is known once all manifests are where they belong.
    let refused = layout::refused(&imported);
    if refused.is_empty() { imported } else { once(input, &own, provider, &refused) }
}

fn once(input: &Input, own: &[Document], provider: Option<&str>, refused: &BTreeMap<usize, String>) -> Imported {
    let mut providers = Providers::default();
    let (mut drafts, mut fields) = (Vec::new(), Vec::new());
    let mut used = BTreeMap::new();
    for (n, document) in own.iter().filter(|document| document.kind == "Canary").enumerate() {
        let mut canary = Canary::new(document, input, provider);
        canary.convert(refused.get(&n), &mut providers, &mut used);
        fields.extend(note(document, &[OBJECT, fields::CANARY], &canary.notes));
        fields.extend(unmeasured(document, &canary.draft));
        drafts.push(canary.draft);
    }
    for document in own.iter().filter(|document| document.kind != "Canary") {
        let is_used = document.kind == "MetricTemplate";
        let notes = is_used.then(|| used.remove(&(document.namespace.clone(), document.name.clone()))).flatten();
        fields.extend(notes_of_other(document, TABLES, notes));
    }
    merge(input, Some(GROUP), drafts, providers, fields)
}

/// The document with the name that the analysis has today.
fn renamed(document: &Document) -> Document {
    let mut document = document.clone();
    let old = document.at("/spec/canaryAnalysis").is_there() && !document.at("/spec/analysis").is_there();
    if let (true, Content::Map(entries)) = (old, &mut document.node.content) {
        let spec = entries.iter_mut().filter(|(key, _)| key.text == "spec").map(|(_, node)| &mut node.content);
        for content in spec {
            let Content::Map(entries) = content else { continue };
            entries.retain(|(key, _)| key.text != "analysis");
            entries
                .iter_mut()
                .filter(|(key, _)| key.text == "canaryAnalysis")
                .for_each(|(key, _)| "analysis".clone_into(&mut key.text));
        }
    }
    document
}

/// What is said of templates that checks refer to, by namespace and name.
type Used = BTreeMap<(String, String), Notes>;

impl<'a> Canary<'a> {
    fn new(document: &'a Document, input: &'a Input, provider: Option<&'a str>) -> Self {
        let mut canary = Self {
            document,
            input,
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
        canary.interval = canary.interval();
        canary
    }

    fn spec(&self, field: &str) -> Field<'a> {
        self.document.at(&format!("/spec/{field}"))
    }

    /// A field of the analysis.
    fn analysis(&self, field: &str) -> Field<'a> {
        self.document.at(&format!("/spec/analysis/{field}"))
    }

    /// The name of the Service that users meet: the target, if that is one.
    fn service(&self) -> String {
        let is_target = self.draft.kind == TargetKind::Service;
        let name = self.spec("service/name").text().filter(|name| !name.is_empty() && !is_target);
        name.map_or_else(|| self.draft.target.clone(), str::to_owned)
    }

    /// The target, if it is among the input.
    fn workload(&self) -> Option<&'a Document> {
        let (kind, name, namespace) = (self.draft.kind.kind(), &self.draft.target, &self.document.namespace);
        let is_it = |d: &&Document| d.manifest() == Some(kind) && d.name == *name && d.namespace == *namespace;
        self.input.documents.iter().find(is_it)
    }

    fn strategy(&self) -> Strategy {
        match () {
            () if self.spec("skipAnalysis").is_true() || !self.spec("analysis").is_there() => Strategy::Skipped,
            () if !self.analysis("match").items().is_empty() => Strategy::AbTesting,
            () if self.iterations() > 0 || self.steps().is_empty() => Strategy::BlueGreen,
            () => Strategy::Canary,
        }
    }

    /// Flagger looks once a minute, and every 10 s at the most.
    fn interval(&mut self) -> u64 {
        let field = self.analysis("interval");
        let said = field.text().and_then(go_duration);
        if field.is_there() && said.is_none() {
            self.notes.odd(&field, "a length of time such as 1m; it is a minute");
        }
        if let Some(text) = said.filter(|seconds| *seconds > 10).and_then(|_| rounded(field.text()?)) {
            self.notes.say(&field, Outcome::Differs, text);
        }
        said.unwrap_or(60).max(10)
    }

    /// `refused` is what is known to be in the way of the layout `primary`.
    fn convert(&mut self, refused: Option<&String>, providers: &mut Providers, used: &mut Used) {
        self.target();
        self.draft.layout = self.layout(refused);
        self.draft.suspend = self.spec("suspend").is_true();
        let deadline = self.spec("progressDeadlineSeconds");
        self.draft.progress_deadline = deadline.count().map(u64::from);
        if self.draft.progress_deadline.is_none() {
            self.notes.odd(&deadline, "a number of seconds");
        }
        self.traffic();
        self.objects();
        match self.strategy {
            Strategy::Skipped => self.skipped(),
            Strategy::Canary => self.weights(),
            Strategy::BlueGreen => self.blue_green(),
            Strategy::AbTesting => self.some_users(),
        }
        let checks = self.checks(providers, used);
        if self.strategy == Strategy::BlueGreen && self.router.route().is_some() && !self.unsplit {
            // Flagger leads all users to the new version, and looks once more before it promotes.
            self.draft.promotion.bake = self.interval;
            self.draft.promotion.checks.clone_from(&checks);
        }
        for phase in &mut self.draft.phases {
            phase.checks.clone_from(&checks);
        }
        self.hooks(providers);
        self.gates(providers);
    }

    /// Flagger asks who may begin a rollout, and tells of it, before it looks whether there is an analysis: what it goes past is the rest.
    fn skipped(&mut self) {
        for field in ANALYSED {
            self.notes.say(&self.analysis(field), Outcome::NotNeeded, fields::SKIPPED);
        }
        self.notes.say(&self.spec("metricsServer"), Outcome::NotNeeded, fields::SKIPPED);
        for hook in self.analysis("webhooks").items().iter().filter(|hook| is_analysis(hook)) {
            self.notes.say(hook, Outcome::NotNeeded, fields::SKIPPED);
        }
    }

    /// The webhooks that Flagger calls.
    fn webhooks(&self) -> Vec<Field<'a>> {
        let all = self.analysis("webhooks").items().into_iter();
        all.filter(|hook| self.strategy != Strategy::Skipped || !is_analysis(hook)).collect()
    }

    /// What the target is here.
    fn kind(&mut self) -> TargetKind {
        let kind = self.spec("targetRef/kind");
        let of_knative =
            self.spec("targetRef/apiVersion").text().is_some_and(|version| version.starts_with("serving.knative.dev/"));
        let (found, outcome, text) = match kind.text() {
            Some("Deployment") => return TargetKind::Deployment,
            Some("Service") if !of_knative => (TargetKind::Service, Outcome::Differs, fields::SERVICE_TARGET),
            Some("DaemonSet") => (TargetKind::DaemonSet, Outcome::Differs, fields::DAEMON_SET_TARGET),
            Some(_) | None => (TargetKind::Deployment, Outcome::NotBuilt, fields::OTHER_TARGET),
        };
        self.notes.say(&kind, outcome, text);
        found
    }

    fn target(&mut self) {
        let name = self.spec("targetRef/name");
        self.draft.target = name.text().filter(|name| !name.is_empty()).unwrap_or(&self.document.name).to_owned();
        let kind = self.draft.kind.kind();
        self.size();
        self.draft.refers.push((kind, self.draft.target.clone(), "the target"));
        let scaler = self.spec("autoscalerRef/name");
        if self.draft.kind != TargetKind::Deployment {
            self.notes.say(&self.spec("autoscalerRef"), Outcome::NotNeeded, format!("nothing scales a {kind}"));
            return;
        }
        match (scaler.text(), self.spec("autoscalerRef/kind").text()) {
            (Some(name), Some(kind)) if scaler::KINDS.iter().any(|known| known.as_str() == kind) => {
                let kind = scaler::KINDS.into_iter().find(|known| known.as_str() == kind);
                self.draft.refers.extend(kind.map(|kind| (kind, name.to_owned(), "its autoscaler")));
            }
            (Some(_), _) => {
                let text = "autoscalers other than a HorizontalPodAutoscaler or a ScaledObject cannot stand among the manifests";
                self.notes.say(&self.spec("autoscalerRef"), Outcome::NotBuilt, text);
            }
            (None, _) => {}
        }
    }

    /// How many pods Flagger runs in the target's place: it keeps that at none between two versions.
    fn size(&mut self) {
        let (copy, namespace) = (format!("{}-primary", self.draft.target), &self.document.namespace);
        let is_it =
            |d: &&Document| d.manifest() == Some(Kind::Deployment) && d.name == copy && d.namespace == *namespace;
        let copied = self.input.made.iter().find(is_it).map(|copy| copy.at("/spec/replicas").count());
        let Some(target) = self.workload().filter(|target| live::is_live(target)) else { return };
        self.draft.size = Some(copied.flatten().unwrap_or(1));
        if copied.is_none() && target.at("/spec/replicas").count() == Some(0) {
            let text =
                format!("spec.target.name. It has no pods now, and {copy} is not among the files: say its replicas");
            self.notes.say(&self.spec("targetRef/name"), Outcome::Differs, text);
        }
    }

    /// Who got the candidate keeps it, where the router can do that.
    fn affinity(&mut self) {
        let [name, age] = ["cookieName", "maxAge"].map(|field| self.analysis(&format!("sessionAffinity/{field}")));
        match (self.router, name.text()) {
            (Router::Gateway | Router::Istio, Some(cookie)) => {
                let age = self.max_age(&age);
                self.draft.traffic["sessionAffinity"] = json!({"cookie": cookie, "maxAge": age});
            }
            (Router::Gateway | Router::Istio, None) => {}
            (Router::Nginx | Router::Traefik | Router::Service | Router::Replicas | Router::Pods, _) => {
                for field in [&name, &age] {
                    self.notes.say(field, Outcome::NotBuilt, "only with the router gatewayAPI or istio");
                }
            }
        }
    }

    /// How long browsers keep the cookie: a day if nothing is said.
    fn max_age(&mut self, field: &Field<'_>) -> Span {
        let said: Option<u64> = field.words().and_then(|text| text.parse().ok());
        if said.is_none() {
            self.notes.odd(field, "a number of seconds; it is a day");
        }
        let said = said.filter(|seconds| *seconds > 0).unwrap_or(86_400);
        let age = Span::from_secs(said);
        if age.as_secs() < said {
            self.notes.say(field, Outcome::Differs, "traffic.sessionAffinity.maxAge: ten years, which is the most");
        }
        age
    }

    fn traffic(&mut self) {
        let service = self.service();
        let ingress = self.spec("ingressRef/name").text().unwrap_or(&service).to_owned();
        self.draft.traffic = match self.router {
            Router::Gateway => json!({"gatewayAPI": {"httpRoute": service, "service": service}}),
            Router::Istio => json!({"istio": {"virtualService": service, "service": service}}),
            Router::Nginx => json!({"nginx": {"ingress": ingress, "service": service}}),
            Router::Traefik => json!({"traefik": {"traefikService": service, "service": service}}),
            Router::Service => json!({"service": service}),
            Router::Replicas => json!({"replicas": {"service": service}}),
            Router::Pods => Value::Null,
        };
        if self.draft.kind == TargetKind::Service {
            let name = self.spec("service/name");
            if name.text().is_some_and(|name| name != service) {
                self.notes.say(
                    &name,
                    Outcome::Differs,
                    format!("spec.traffic: the Service {service}, as it is the target"),
                );
            }
        } else {
            self.draft.refers.push((Kind::Service, service.clone(), "the Service that users meet"));
        }
        if let Some((kind, what)) = self.router.route() {
            self.draft.refers.push((kind, if kind == Kind::Ingress { ingress } else { service }, what));
        }
        if self.strategy != Strategy::Skipped {
            self.affinity();
        }
        if self.router != Router::Nginx {
            self.notes.say(&self.spec("ingressRef"), Outcome::NotNeeded, "with this router no Ingress is split");
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

/// Whether a webhook is called in an analysis alone.
fn is_analysis(hook: &Field<'_>) -> bool {
    let kinds = ["rollout", "pre-rollout", "rollback", "confirm-promotion", TRAFFIC_INCREASE];
    kinds.contains(&hook.get("type").text().unwrap_or("rollout"))
}
