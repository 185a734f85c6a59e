//! Mistakes that people make in the example repository, each with the name that it is told by.

use crate::tree::{PODINFO, PODINFO_SET, Tree, WORKER, WORKER_SET, codes};
use tidegate::manifest::diagnostic::Code;

struct Mistake {
    path: &'static str,
    from: &'static str,
    to: &'static str,
    rollout: &'static str,
    codes: &'static [Code],
}

const fn mistake(
    path: &'static str,
    from: &'static str,
    to: &'static str,
    rollout: &'static str,
    codes: &'static [Code],
) -> Mistake {
    Mistake { path, from, to, rollout, codes }
}

/// All of the worker's way that users could see.
const WAY: &str = "  traffic:\n    replicas: {service: worker}\n    settle: 2s\n    drain: 5s\n  phases:\n    \
                   - name: quarter\n      expose: {weight: 25}\n      soak: 10s\n    \
                   - name: half\n      before: {approval: pullRequest}\n      expose: {weight: 50}\n      soak: 10s\n  \
                   promotion: {bake: 10s}\n";

#[rustfmt::skip]
const MISTAKES: &[Mistake] = &[
    mistake(PODINFO, "expose: {weight: 50}", "expose: {weight: 5}", "shop/podinfo", &[Code::PhasesGoDown]),
    mistake(PODINFO, "expose: {weight: 50}", "expose: {weight: 10}", "shop/podinfo", &[Code::PhasesGoDown]),
    mistake(PODINFO, "expose: {weight: 50}", "expose: {headers: [{X-Canary: always}]}", "shop/podinfo", &[Code::PhasesGoDown]),
    mistake(PODINFO, "expose: {weight: 50}", "expose: {headers: [{X-Canary: always, x-team: shop}]}", "shop/podinfo", &[Code::PhasesGoDown]),
    mistake(PODINFO, "expose: {weight: 50}", "expose: {}", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "{x-canary: always}", "{x-canary: always, X-Canary: never}", "shop/podinfo", &[Code::DuplicateKey]),
    mistake(PODINFO, "{x-canary: always}", "{'x canary': always}", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "{x-canary: always}", "{x-canary: 1}", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "name: half", "name: tenth", "shop/podinfo", &[Code::PhaseName]),
    mistake(PODINFO, "name: half", "name: promote", "shop/podinfo", &[Code::PhaseName]),
    mistake(PODINFO, "    gatewayAPI: {httpRoute: podinfo, service: podinfo}\n", "", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  traffic:\n    gatewayAPI: {httpRoute: podinfo, service: podinfo}\n    settle: 2s\n    drain: 5s\n", "", "shop/podinfo", &[Code::TrafficMissing]),
    mistake(WORKER, WAY, "  promotion: {bake: 10s}\n", "shop/worker", &[Code::TrafficMissing]),
    mistake(WORKER, WAY, "  promotion: {bake: 1m, checks: [smoke]}\n  checks: {smoke: {webhook: {provider: tester}}}\n", "shop/worker", &[Code::TrafficMissing; 2]),
    mistake(WORKER, WAY, "  promotion: {before: {approval: pullRequest}, bake: 0s}\n", "shop/worker", &[]),
    mistake(PODINFO, "settle: 2s", "replicas: {service: podinfo}", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "kind: Deployment, name: podinfo", "kind: Deployment, name: other", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO, "kind: Deployment", "kind: ReplicaSet", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "httpRoute: podinfo", "httpRoute: other", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO, "service: podinfo", "service: other", "shop/podinfo", &[Code::TargetMissing; 2]),
    mistake(PODINFO, "before: {approval: pullRequest}", "before: {webhook: {provider: tester, url: 'https://evil.example'}}", "shop/podinfo", &[Code::UnknownField]),
    mistake(PODINFO, "before: {approval: pullRequest}", "before: {window: weekend}", "shop/podinfo", &[Code::WindowMissing]),
    mistake(PODINFO, "manifests: [podinfo.yaml]", "manifests: []", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "[podinfo.yaml]", "[podinfo.yaml, missing]", "shop/podinfo", &[Code::FileMissing]),
    mistake(WORKER, "replicas: {service: worker}", "service: worker", "shop/worker", &[Code::RouterLimit; 2]),
    mistake(WORKER, "expose: {weight: 25}", "expose: {weight: 19}", "shop/worker", &[Code::WeightTooFine]),
    mistake(WORKER, "expose: {weight: 25}", "expose: {headers: [{a: b}], weight: 25}", "shop/worker", &[Code::RouterLimit]),
    mistake(WORKER_SET, "replicas: 4", "replicas: 0", "shop/worker", &[Code::ScaleToZero]),
    mistake(WORKER_SET, "kind: Service\nmetadata:\n  name: worker\n", "kind: Service\nmetadata:\n  name: worker\nspec: {selector: {app: worker}}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: metrics\n", "shop/worker", &[Code::SelectorOverlap]),
    mistake(PODINFO_SET, "  selector: {app: podinfo}", "  selector: {app: other}", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO_SET, "containerPort: 9898}", "containerPort: 9898, hostPort: 80}", "shop/podinfo", &[Code::NotPermitted, Code::CannotClone]),
    mistake(PODINFO_SET, "cpu: 10m", "cpu: 9007199254740993", "shop/podinfo", &[Code::NumberRange]),
    mistake(PODINFO_SET, "  name: podinfo\ndata:", "  name: podinfo\n  resourceVersion: '1'\ndata:", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO_SET, "- {name: podinfo, port: 80}", "- {name: podinfo, port: 80, weight: 10001}", "shop/podinfo", &[Code::RouteLimit]),
    mistake(PODINFO_SET, "- {name: podinfo, port: 80}", "- {name: podinfo, port: 80}\n        - {name: podinfo-canary, port: 80}", "shop/podinfo", &[Code::Conflict]),
    mistake(PODINFO_SET, "    matchLabels: {app: podinfo}", "    matchLabels: {app: podinfo, tier: web}", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO_SET, "  selector: {app: podinfo}\n", "  type: ExternalName\n  selector: {app: podinfo}\n", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO_SET, "- {name: podinfo, port: 80}", "- {name: other, port: 80}", "shop/podinfo", &[Code::TargetMissing]),
    mistake(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 10s, checks: [errors]}", "shop/podinfo", &[Code::CheckMissing]),
    mistake(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 10s, checks: [errors]}\n  checks: {errors: {prometheus: {provider: main, query: q}, max: 1}}", "shop/podinfo", &[Code::CheckUseless]),
    mistake(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 10s, checks: [errors, errors]}\n  checks: {errors: {prometheus: {provider: main, query: q}, max: 1, interval: 5s}}", "shop/podinfo", &[Code::Conflict]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, interval: 1s}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, min: 2, max: 1}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, max: 1, interval: 0s}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, max: .inf}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::NumberRange]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, max: ten}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, max: 1, minSamples: 0}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: ''}, max: 1}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {errors: {prometheus: {provider: main, query: q}, max: 1, threshold: 3}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::UnknownField]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester}, max: 1, minSamples: 2}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless; 2]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester}, min: 1, failureLimit: 0}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless; 2]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester}, interval: 0s}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::CheckUseless]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {interval: 1m}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester}, prometheus: {provider: main, query: q}, max: 1}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {metadata: {a: b}}}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester, url: 'https://evil.example'}}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::UnknownField]),
    mistake(PODINFO, "  progressDeadline: 2m", "  checks: {smoke: {webhook: {provider: tester, metadata: {a: 1}}}}\n  progressDeadline: 2m", "shop/podinfo", &[Code::Schema]),
    mistake(PODINFO, "promotion: {bake: 10s}", "promotion: {bake: 10s, checks: [smoke]}\n  checks: {smoke: {webhook: {provider: tester}}}", "shop/podinfo", &[Code::CheckUseless]),
    mistake(WORKER_SET, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n  replicas: 4\n", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}, minReplicas: 4, maxReplicas: 9}\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: b}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}, minReplicas: 4, maxReplicas: 9}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n", "shop/worker", &[Code::Conflict]),
    mistake(WORKER_SET, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n  replicas: 4\n", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}, minReplicas: 5, maxReplicas: 4}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n", "shop/worker", &[Code::Replicas]),
    mistake(WORKER_SET, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}, minReplicas: 4, maxReplicas: 8}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: worker\n  labels: {app: worker}\nspec:\n", "shop/worker", &[Code::Conflict]),
    mistake(PODINFO_SET, "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: podinfo\n  labels: {app: podinfo}\nspec:\n  replicas: 2\n", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}, minReplicas: two, maxReplicas: 4}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: podinfo\n  labels: {app: podinfo}\nspec:\n", "shop/podinfo", &[Code::Replicas]),
    mistake(WORKER_SET, "apiVersion: v1\nkind: Service\nmetadata:\n  name: worker\n", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}, maxReplicas: 4}\n---\napiVersion: v1\nkind: Service\nmetadata:\n  name: worker\n", "shop/worker", &[Code::Conflict]),
    mistake(PODINFO_SET, "replicas: 2", "replicas: 2147483648", "shop/podinfo", &[Code::Replicas]),
    mistake(PODINFO_SET, "replicas: 2", "replicas: -1", "shop/podinfo", &[Code::Replicas]),
    mistake(WORKER_SET, "replicas: 4", "replicas: '4'", "shop/worker", &[Code::Replicas]),
    mistake(PODINFO_SET, "replicas: 2", "replicas: '2'", "shop/podinfo", &[Code::Replicas]),
    mistake(PODINFO_SET, "replicas: 2", "paused: true", "shop/podinfo", &[Code::Paused]),
    mistake(PODINFO, "progressDeadline: 2m", "progressDeadline: 0s", "shop/podinfo", &[Code::Schema]),
];

#[test]
fn each_mistake_has_its_name() {
    for Mistake { path, from, to, rollout, codes: wanted } in MISTAKES {
        let mut tree = Tree::example();
        let loaded = tree.edit(path, from, to).load();
        assert_eq!(codes(&loaded, rollout), *wanted, "{path}: {to}\n{:#?}", loaded.errors());
    }
}
