//! Calls about what some kinds alone have: sizes, statuses, definitions, addresses.

use super::table::{Story, stories};

pub(super) const KINDS: &[Story] = stories! {
    "a deployment's status is written apart": "
        POST deploy {metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'i:1'}]}}}, status: {replicas: 3}}
        MERGE deploy/d/status {status: {replicas: 2, observedGeneration: 1, conditions: [{type: Available, status: 'True', reason: r, message: m}]}}
        MERGE deploy/d/status {spec: {replicas: 9}, status: {readyReplicas: 2}}
        MERGE deploy/d {status: {replicas: 9}}
        MERGE deploy/d {spec: {replicas: 3}, status: {replicas: 9}}
        MERGE deploy/d {metadata: {labels: {x: y}}}
        MERGE deploy/d {metadata: {annotations: {x: y}}}
        MERGE deploy/d/status {metadata: {labels: {no: no}, annotations: {yes: yes}}}
        GET deploy/d/status
        PUT deploy/none/status {metadata: {name: none}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        APPLY deploy/d?fieldManager=x&force=true {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {replicas: 5}, status: {replicas: 1}}
        APPLY deploy/d/status?fieldManager=x {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, status: {unavailableReplicas: 1}}
        GET deploy/d
    ";
    "a deployment's size has a path of its own": "
        POST deploy {metadata: {name: d}, spec: {replicas: 2, selector: {matchLabels: {a: b, c: d}}, template: {metadata: {labels: {a: b, c: d}}, spec: {containers: [{name: c, image: 'i:1'}]}}}}
        GET deploy/d/scale
        PUT deploy/d/scale {metadata: {name: d, namespace: $NS}, spec: {replicas: 4}}
        MERGE deploy/d/scale {spec: {replicas: 5}}
        MERGE deploy/d/scale {spec: {replicas: 5}}
        MERGE deploy/d/scale {metadata: {resourceVersion: '1'}, spec: {replicas: 6}}
        GET deploy/d
        GET deploy/none/scale
    ";
    "a deployment is checked": "
        POST deploy {metadata: {name: e}, spec: {}}
        POST deploy {metadata: {name: e}}
        POST deploy {metadata: {name: E}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST deploy {metadata: {name: e}, spec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST deploy {metadata: {name: e}, spec: {selector: {matchLabels: {a: x}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST deploy {metadata: {name: e}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}
        POST deploy {metadata: {name: e}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{image: i}]}}}}
        POST deploy {metadata: {name: e}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        MERGE deploy/e {spec: {replicas: -1}}
        MERGE deploy/e {spec: {selector: {matchLabels: {x: y}}}}
        MERGE deploy/e {spec: {selector: {matchLabels: {a: y}}, template: {metadata: {labels: {a: y}}}}}
        MERGE deploy/e {metadata: {uid: x}}
        APPLY deploy/none?fieldManager=x {apiVersion: apps/v1, kind: Deployment, metadata: {name: none, uid: '1'}}
        APPLY deploy/none?fieldManager=x {apiVersion: apps/v1, kind: Deployment, metadata: {name: none}}
        APPLY deploy/e?fieldManager=x {apiVersion: apps/v1, kind: Deployment, metadata: {name: e, uid: $uid8}, spec: {template: {spec: {containers: [{name: c, image: 'j'}]}}}}
        APPLY deploy/e?fieldManager=x&force=true {apiVersion: apps/v1, kind: Deployment, metadata: {name: e, uid: other}, spec: {template: {spec: {containers: [{name: c, image: 'j'}]}}}}
        APPLY deploy/e?fieldManager=x&force=true {apiVersion: apps/v1, kind: Deployment, metadata: {name: e, uid: other, resourceVersion: '1'}, spec: {paused: true}}
    ";
    "a route is one of a definition": "
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: s, port: 80}]}]}, status: {parents: []}}
        POST route {metadata: {name: r}, spec: {}}
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {}}
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: q}}
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: q}, spec: {parentRefs: [{}]}}
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: Nope, metadata: {name: q}, spec: {}}
        PUT route/r {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {}}
        PUT route/r {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, resourceVersion: $rv1}, spec: {parentRefs: [{name: h}]}}
        PUT route/r {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, resourceVersion: $rv1}, spec: {parentRefs: [{name: i}]}}
        PUT route/r {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, uid: x, resourceVersion: $rv1}, spec: {}}
        MERGE route/r {spec: {hostnames: [a.b]}}
        MERGE route/r {metadata: {labels: {x: y}}}
        MERGE route/r/status {spec: {hostnames: [z.z]}, metadata: {labels: {no: no}}, status: {parents: [{parentRef: {name: g}, controllerName: x.y/z, conditions: []}]}}
        MERGE route/r {status: {parents: []}}
        MERGE route/r {metadata: {resourceVersion: '1'}}
        ODD route/r {spec: {}}
        PUT route/none {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: none}, spec: {}}
        PUT route/none {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: none, resourceVersion: '4'}, spec: {}}
        APPLY route/r?fieldManager=x&force=true {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: [{backendRefs: [{name: s, port: 80, weight: 3}]}]}}
        APPLY route/r?fieldManager=y {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {rules: [{backendRefs: [{name: s, port: 80, weight: 4}]}]}}
        GET route/r
        GET route/r/scale
        GET route/none/status
        DELETE route/r {preconditions: {uid: z}}
        DELETE route/r
    ";
    "a lease is renewed by whoever read it": "
        POST lease {metadata: {name: l}, spec: {holderIdentity: a, leaseDurationSeconds: 15, acquireTime: '2001-01-01T00:00:00.000000Z', renewTime: '2001-01-01T00:00:00.000000Z', leaseTransitions: 1}}
        PUT lease/l {metadata: {name: l}, spec: {holderIdentity: b}}
        PUT lease/l {metadata: {name: l, resourceVersion: $rv1}, spec: {holderIdentity: b, leaseDurationSeconds: 0}}
        PUT lease/l {metadata: {name: l, resourceVersion: $rv1, annotations: {a: b}}, spec: {holderIdentity: b, leaseDurationSeconds: 15}}
        PUT lease/l {metadata: {name: l, resourceVersion: $rv1}, spec: {holderIdentity: c}}
        PUT lease/m {metadata: {name: m}, spec: {holderIdentity: b}}
        PUT lease/n {metadata: {name: n, resourceVersion: '4'}, spec: {holderIdentity: b}}
        PUT lease/o {metadata: {name: o, uid: '4'}, spec: {holderIdentity: b}}
        GET lease
    ";
    "a service keeps its address": "
        POST svc {metadata: {name: s}, spec: {ports: [{port: 80}], selector: {a: b}}}
        PUT svc/s {metadata: {name: s}, spec: {ports: [{port: 81}], selector: {a: b}}}
        MERGE svc/s {spec: {clusterIP: 10.96.0.77}}
        MERGE svc/s {spec: {selector: {c: d}}}
        MERGE svc/s/status {metadata: {annotations: {yes: yes}}}
        POST svc {metadata: {name: headless}, spec: {clusterIP: None, selector: {a: b}}}
        MERGE svc/headless {spec: {selector: {c: d}}}
        POST svc {metadata: {name: anybodys}, spec: {clusterIP: None}}
        MERGE svc/anybodys {spec: {selector: {a: b}}}
        POST svc {metadata: {name: bare}, spec: {selector: {a: b}}}
        POST svc {metadata: {name: two}, spec: {ports: [{port: 80}, {port: 81}]}}
        POST svc {metadata: {name: zero}, spec: {ports: [{port: 0}]}}
        APPLY svc/t?fieldManager=x {apiVersion: v1, kind: Service, metadata: {name: t}, spec: {ports: [{port: 80, targetPort: http}], selector: {a: b}}}
        PUT svc/u {metadata: {name: u}, spec: {ports: [{port: 80}]}}
    ";
    "other kinds": "
        POST sa {metadata: {name: s}}
        PUT sa/s {metadata: {name: s, labels: {a: b}}}
        MERGE sa/s {metadata: {labels: {a: b}}}
        POST pdb {metadata: {name: p}, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}
        PUT pdb/p {metadata: {name: p}, spec: {minAvailable: 2, selector: {matchLabels: {a: b}}}}
        MERGE pdb/p {spec: {minAvailable: 2}}
        MERGE pdb/p {metadata: {labels: {a: b}}}
        POST hpa {metadata: {name: h}, spec: {maxReplicas: 4, minReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}
        PUT hpa/h {metadata: {name: h}, spec: {maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}
        MERGE hpa/h/status {status: {currentReplicas: 1, desiredReplicas: 2}}
        POST np {metadata: {name: n}, spec: {podSelector: {matchLabels: {a: b}}}}
        MERGE np/n {spec: {podSelector: {matchLabels: {a: c}}}}
        POST slice {metadata: {name: e, labels: {kubernetes.io/service-name: s}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}], ports: [{name: http, port: 80}]}
        MERGE slice/e {endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}]}
        MERGE slice/e {metadata: {labels: {a: b}}}
        POST rs {metadata: {name: r}, spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        MERGE rs/r {spec: {replicas: 2}}
        MERGE rs/r/status {metadata: {annotations: {yes: yes}}}
        MERGE pdb/p/status {metadata: {annotations: {yes: yes}}}
        MERGE hpa/h/status {metadata: {annotations: {yes: yes}}}
        POST event {metadata: {generateName: tidegate-}, eventTime: '2001-01-01T00:00:00.000000Z', reportingController: t/x, reportingInstance: x, action: a, reason: r, regarding: {kind: Pod, namespace: $NS, name: p, apiVersion: v1}, note: hi, type: Normal}
        POST cm {metadata: {name: i}, immutable: true, data: {k: '1'}}
        MERGE cm/i {data: {k: '2'}}
        MERGE cm/i {immutable: false}
        MERGE cm/i {metadata: {labels: {a: b}}}
    ";
};
