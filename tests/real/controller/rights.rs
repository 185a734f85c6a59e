//! What the chart grants is what the controller needs: from the API server's audit log.

use super::app::{App, ungated};
use super::kept;
use super::stateful::{self, GOOD};
use super::world::{Held, World, is_steady};
use crate::support::audit;
use crate::support::cluster::{Bed, eventually};
use crate::support::rights::{Audited, Right};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use tidegate::manifest::other::Other;
use tidegate::plan::report::Reason;
use tidegate::record::state::{Phase, Rest, RolloutState};
use tokio_util::task::AbortOnDropHandle;

/// A Job whose pods do that; its own time to live is none of its run's.
pub(super) fn job(name: &str, behaviour: &str) -> String {
    let mut text = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  backoffLimit: 0\n  ttlSecondsAfterFinished: 0\n  \
         template:\n    metadata: {{annotations: {{{behaviour}}}}}\n    spec:\n      restartPolicy: Never\n"
    );
    writeln!(text, "      containers: [{{name: test, image: \"example.test/tester:1\"}}]").unwrap();
    text
}

/// Every Job of a namespace in each state that it was in, from now on.
struct Jobs {
    seen: Arc<Mutex<Vec<Job>>>,
    _watch: AbortOnDropHandle<()>,
}

impl Jobs {
    fn watch(world: &World) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (jobs, told) = (world.space.api::<Job>(), Arc::clone(&seen));
        let watch = watcher(jobs, watcher::Config::default()).default_backoff().applied_objects();
        let watch = tokio::spawn(watch.for_each(move |job| {
            told.lock().unwrap().extend(job.ok());
            std::future::ready(())
        }));
        Self { seen, _watch: AbortOnDropHandle::new(watch) }
    }

    /// Requirements C-15 and C-34: a Job that succeeds opens its step. It was made once, by Kubernetes' own controller it ended, and it
    /// knew its run.
    fn c_15_c_34_a_job_tries_the_candidate_out(&self, run: &str, step: &str) {
        let (seen, name) = (self.seen.lock().unwrap(), format!("web-{run}-{step}"));
        let uids: BTreeSet<_> = seen.iter().filter_map(|job| job.metadata.uid.as_deref()).collect();
        assert_eq!(uids.len(), 1, "{uids:?}");
        let ended = |job: &&Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
        let job = seen.iter().find(ended).expect("a Job that has succeeded");
        assert_eq!(job.metadata.name.as_deref(), Some(&*name));
        let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
        let told: Vec<_> =
            pod.containers[0].env.iter().flatten().map(|e| (e.name.as_str(), e.value.as_deref())).collect();
        assert!(told.contains(&("TIDEGATE_RUN", Some(run))), "{told:?}");
        assert!(told.contains(&("TIDEGATE_STEP", Some(step))), "{told:?}");
    }
}

/// An object of each kind that may stand in a set, which nothing leads to.
fn beside(name: &str) -> String {
    let [config, account, scaler, keda, budget, ingress, mesh, rule, calls, shares, leads, proxy, table, fence, set, daemon] = [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\ndata: {key: value}\n",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n",
        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: NAME}\nspec:\n  \
         scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: NAME}\n  minReplicas: 1\n  maxReplicas: 2\n  \
         metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]\n",
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: NAME}\nspec:\n  \
         scaleTargetRef: {kind: StatefulSet, name: NAME}\n  \
         triggers: [{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: \"2\"}}]\n",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: NAME}\n\
         spec: {maxUnavailable: 1, selector: {matchLabels: {app: NAME}}}\n",
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: NAME}\n\
         spec: {defaultBackend: {service: {name: NAME, port: {number: 80}}}}\n",
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: NAME}\n\
         spec: {hosts: [NAME], http: [{route: [{destination: {host: NAME}}]}]}\n",
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: NAME}\nspec: {host: NAME}\n",
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GRPCRoute\nmetadata: {name: NAME}\n\
         spec: {rules: [{backendRefs: [{name: NAME, port: 80}]}]}\n",
        "apiVersion: traefik.io/v1alpha1\nkind: TraefikService\nmetadata: {name: NAME}\n\
         spec: {weighted: {services: [{name: NAME, port: 80}]}}\n",
        "apiVersion: traefik.io/v1alpha1\nkind: IngressRoute\nmetadata: {name: NAME}\n\
         spec: {routes: [{match: Host(`beside.example.test`), kind: Rule, services: [{name: NAME, kind: TraefikService}]}]}\n",
        "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {name: NAME}\n\
         spec: {routes: [{services: [{name: NAME, port: 80}]}]}\n",
        "apiVersion: gateway.solo.io/v1\nkind: RouteTable\nmetadata: {name: NAME}\n\
         spec: {routes: [{redirectAction: {pathRedirect: /}}]}\n",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: NAME}\n\
         spec: {policyTypes: [Ingress], podSelector: {matchLabels: {fence: NAME}}}\n",
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: NAME}\nspec: {replicas: 0, serviceName: NAME, \
         selector: {matchLabels: {set: NAME}}, template: {metadata: {labels: {set: NAME}}, \
         spec: {containers: [{name: main, image: \"example.test/set:1\"}]}}}\n",
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: NAME}\nspec: {selector: {matchLabels: {daemon: NAME}}, \
         template: {metadata: {labels: {daemon: NAME}}, \
         spec: {nodeSelector: {none: such}, containers: [{name: main, image: \"example.test/daemon:1\"}]}}}\n",
    ]
    .map(|text| text.replace("NAME", name));
    // Its number of pods is the autoscaler's.
    let app = App { host: Some("beside.example.test"), ..App::new(name, 1) }.text().replace("  replicas: 2\n", "");
    format!(
        "---\n{app}---\n{config}---\n{account}---\n{scaler}---\n{keda}---\n{budget}---\n{ingress}---\n{mesh}---\n{rule}\
         ---\n{calls}---\n{shares}---\n{leads}---\n{proxy}---\n{table}---\n{fence}---\n{set}---\n{daemon}"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x_18_every_right_that_the_chart_grants_is_used_and_no_other() {
    let mut world = World::empty(Held::Shared(Bed::shared().await), "audited").await;
    let namespace = world.space.name.clone();
    // Kinds that are known by their names alone are watched where a set has them, and no set of this story has.
    let others = |right: &Right| Other::usual().any(|kind| kind.plural() == right.resource);
    let looked_up = |right: &Right| right.resource == "persistentvolumeclaims" && right.verb == "get";
    world.space.rights.retain(|right| !others(right) || looked_up(right));
    // As many as a set of this story brings beside its target.
    let policy = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Policy\nspec:\n  limits: {{maxDeletions: 19}}\n  tenants:\n    \
         it: {{path: it, namespaces: [{namespace}], clusters: [home]}}\n"
    );
    world.commit(&[("tidegate.yaml", &policy)]);
    // Applied by people first, so that field managers have to be taken over.
    let set = |version, name| format!("{}{}", App::new("web", version).text(), beside(name));
    world.kubectl(&["apply", "-f", "-"], &set(1, "old")).await;
    world.commit(&[("it/smoke.yaml", &job("smoke", ""))]);
    world.add(&(ungated() + "  promotion: {before: {job: smoke.yaml}}\n"), &App::new("web", 1));
    world.commit(&[("it/web.yaml", &set(1, "old"))]);
    world.start();
    world.until_steady(Rest::Initialized).await;
    // The next version has other objects beside its target: one of each kind is made, and one goes.
    let jobs = Jobs::watch(&world);
    world.commit(&[("it/web.yaml", &set(2, "new"))]);
    let promoted = |record: &RolloutState| is_steady(record, Rest::Succeeded) && record.run.is_none();
    let record = world.until("promotion", promoted).await;
    jobs.c_15_c_34_a_job_tries_the_candidate_out(record.last_run.unwrap().id.as_str(), "promotion");
    c_15_c_34_a_job_that_fails_takes_the_run_back(&world, &set(3, "new")).await;
    // On the way back a pod that does not start is taken away.
    stateful::release(&world, "db", 1, GOOD);
    world.until_of("db", "first sight", |record| is_steady(record, Rest::Initialized)).await;
    stateful::crashes(&world, "db", |version, pods| stateful::release(&world, "db", version, pods)).await;
    let accounts = world.space.api::<ServiceAccount>();
    eventually("the old ones are gone", async || accounts.get_opt("old").await.unwrap().is_none().then_some(())).await;
    world.settled(&[Reason::Refused]).await;
    // What pods need and nobody has is looked up.
    world.start();
    let image = "image: \"example.test/web:4\"}]}";
    let needs = "image: \"example.test/web:4\", envFrom: [{secretRef: {name: absent}}]}], \
                 volumes: [{name: data, persistentVolumeClaim: {claimName: absent}}]}";
    world.commit(&[("it/web.yaml", &set(4, "new").replace(image, needs))]);
    world.until_condition(Reason::ReferenceMissing).await;
    world.settled(&[Reason::ReferenceMissing, Reason::Refused]).await;

    let audited = world.space.audited(&world.bed).await;
    let told = "unused: granted, and not used; beyond: asked for, and not granted; refused: though it was granted";
    assert_eq!(audited, Audited::default(), "{told}");
    assert!(world.space.rights.len() > 50, "{:?}", world.space.rights);
    it_is_noticed(&world).await;
    // What it asks is more than the controller may, and not counted there.
    kept::x_18_doctor_names_the_verb_that_a_role_lacks(&world).await;
}

/// As Kubernetes' own controller says it; the Job that failed can be looked at.
async fn c_15_c_34_a_job_that_fails_takes_the_run_back(world: &World, set: &str) {
    world.commit(&[("it/smoke.yaml", &job("smoke", "testbed/behaviour: crash")), ("it/web.yaml", set)]);
    let record = world.until("Failed", |record| matches!(record.phase, Phase::Failed { .. })).await;
    let Phase::Failed { why, .. } = record.phase else { panic!("it has failed") };
    let id = record.last_run.unwrap().id;
    assert!(why.starts_with(&format!("promotion: Job web-{id}-promotion failed: BackoffLimitExceeded: ")), "{why}");
    let left = world.space.api::<Job>().list(&ListParams::default()).await.unwrap();
    let left: Vec<_> = left.items.iter().filter_map(|job| job.metadata.name.as_deref()).collect();
    assert_eq!(left, [format!("web-{id}-promotion")]);
}

/// Were one right more granted, or any one less, that would have been seen.
async fn it_is_noticed(world: &World) {
    let requests = world.requests_since(audit::Mark::START).await;
    let granted = &world.space.rights;
    let further = |verb: &str, resource: &str, namespace: &str| Right {
        namespace: namespace.to_owned(),
        group: String::new(),
        resource: resource.to_owned(),
        name: String::new(),
        verb: verb.to_owned(),
    };
    for more in [further("list", "secrets", &world.space.name), further("update", "services", &world.space.name)] {
        let granted = granted.iter().chain([&more]).cloned().collect();
        let found = Audited::new(&granted, &requests);
        assert_eq!((found.unused, found.beyond), (BTreeSet::from([more.to_string()]), BTreeSet::new()));
    }
    for less in granted {
        let granted = granted.iter().filter(|right| *right != less).cloned().collect();
        let found = Audited::new(&granted, &requests);
        assert!(found.unused.is_empty() && !found.beyond.is_empty(), "without {less} nothing is missed");
    }
}
