//! The calls. A line is a verb, a path (a short name below the story's namespace, or from the root) and a body.
//!
//! `$rv1`, `$uid1` and `$next1` stand for what the answer to line 1 said. `WATCH 3` waits for three events.

/// Calls that follow each other.
pub(super) struct Story {
    pub(super) title: &'static str,
    pub(super) lines: &'static str,
}

macro_rules! stories {
    ($($title:literal: $lines:literal;)*) => { &[$(Story { title: $title, lines: $lines }),*] };
}
pub(super) use stories;

/// What is known to differ: a line of a story, and why that is left so.
pub(super) const KNOWN: &[(&str, usize, &str)] = &[
    ("bodies that are none", 1, "words of Go's JSON parser"),
    ("bodies that are none", 2, "words of Go's JSON parser"),
    ("bodies that are none", 6, "words of Go's JSON parser"),
    ("bodies that are none", 13, "words of Go's JSON parser"),
    ("bodies that are none", 16, "strategic merge patches are refused: nothing of ours sends one"),
    ("what is forgotten", 9, "the answer offers no token to go on with"),
    ("many are listed", 40, "words of Go's JSON parser; the token itself is nobody's business"),
    ("unknown fields", 6, "the name of the Go type that a field of the wrong type stands in"),
];

/// The last story: at `FORGET` both servers forget all history.
pub(super) const FORGOTTEN: &str = "
    POST cm {metadata: {name: f-a}}
    POST cm {metadata: {name: f-b}}
    GET cm?limit=1
    MERGE cm/f-a {data: {k: '1'}}
    MERGE cm/f-b {data: {k: '2'}}
    MERGE cm/f-b {data: {k: '3'}}
    FORGET
    GET cm/f-a
    GET cm?limit=1&continue=$next3
    GET cm?resourceVersion=$rv1&resourceVersionMatch=Exact
    WATCH 1 cm?watch=true&resourceVersion=$rv1
";

pub(super) const STORIES: &[Story] = stories! {
    "an object lives": "
        GET cm/a
        POST cm {metadata: {name: a, labels: {x: y}}, data: {k: '1'}}
        GET cm/a
        POST cm {metadata: {name: a}, data: {k: '1'}}
        PUT cm/a {metadata: {name: a}, data: {k: '2'}}
        PUT cm/a {metadata: {name: a, uid: $uid2, resourceVersion: $rv5}, data: {k: '3'}}
        PUT cm/a {metadata: {name: a, uid: $uid2, resourceVersion: $rv5}, data: {k: '4'}}
        MERGE cm/a {data: {k: null, l: '1'}, metadata: {annotations: {a: b}}}
        JSON cm/a [{op: add, path: /data/m, value: '2'}, {op: test, path: /data/l, value: '1'}]
        DELETE cm/a
        DELETE cm/a
        GET cm/a
    ";
    "nothing changes when nothing differs": "
        POST cm {metadata: {name: a}, data: {k: '1'}}
        PUT cm/a {metadata: {name: a}, data: {k: '1'}}
        PUT cm/a {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: $uid1, resourceVersion: $rv1}, data: {k: '1'}}
        MERGE cm/a {data: {k: '1'}}
        MERGE cm/a {metadata: {generation: 7, selfLink: x}}
        MERGE cm/a?fieldManager=other {data: {k: '1'}}
        JSON cm/a []
        JSON cm/a [{op: replace, path: /data/k, value: '1'}]
    ";
    "an update says what it replaces": "
        POST cm {metadata: {name: a}, data: {k: '1'}}
        PUT cm/a {metadata: {name: a, resourceVersion: '1'}, data: {k: '2'}}
        PUT cm/a {metadata: {name: a, uid: other}, data: {k: '2'}}
        PUT cm/a {metadata: {name: a, uid: other, resourceVersion: '1'}, data: {k: '2'}}
        PUT cm/a {metadata: {name: a, resourceVersion: abc}, data: {k: '2'}}
        PUT cm/a {metadata: {name: b}, data: {k: '2'}}
        PUT cm/a {metadata: {}, data: {k: '2'}}
        PUT cm/a {metadata: {name: a, namespace: other}, data: {k: '2'}}
        PUT cm/b {metadata: {name: b}}
        PUT cm/b {metadata: {name: b, uid: x, resourceVersion: '4'}}
        PUT cm/b {metadata: {name: a}}
        MERGE cm/a {metadata: {resourceVersion: '1'}}
        MERGE cm/a {metadata: {resourceVersion: $rv1}, data: {k: '5'}}
        MERGE cm/a {metadata: {uid: x}}
        MERGE cm/a {metadata: {name: z}}
        MERGE cm/a {metadata: {namespace: z}}
        GET cm/a
    ";
    "what is created must be new, named and in its place": "
        POST cm {metadata: {name: a, resourceVersion: '5'}}
        POST cm {metadata: {name: A_}}
        POST cm {metadata: {name: -a}}
        POST cm {metadata: {}}
        POST cm {data: {}}
        POST cm {metadata: {name: a, namespace: other}}
        POST cm {metadata: {name: a, uid: given, generation: 4, creationTimestamp: '2001-01-01T00:00:00Z'}}
        POST cm {metadata: {generateName: g-}, data: {k: v}}
        POST cm {metadata: {name: bad, labels: {'a b': c}}}
        POST cm {metadata: {name: bad, labels: {a: 'c d'}}}
        POST cm {metadata: {name: bad, labels: {a: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}}}
        POST cm {metadata: {name: bad, annotations: {'a b': c}}}
        POST cm {metadata: {name: bad, annotations: {'UPPER/b': c}}}
        POST cm {metadata: {name: bad, finalizers: [abc]}}
        POST cm {metadata: {name: bad}, data: {'a b': c}}
        POST cm {metadata: {name: bad, ownerReferences: [{apiVersion: v1, kind: Pod, name: '', uid: ''}]}}
        POST /api/v1/namespaces/nowhere/configmaps {metadata: {name: a}}
        GET /api/v1/namespaces/nowhere/configmaps
        POST cm {kind: Secret, apiVersion: v1, metadata: {name: b}}
        POST cm {kind: ConfigMap, apiVersion: apps/v1, metadata: {name: b}}
        POST svc {metadata: {name: 1a}, spec: {ports: [{port: 80}]}}
        POST svc {metadata: {name: a.b}, spec: {ports: [{port: 80}]}}
        POST /api/v1/namespaces {metadata: {name: a.b}}
    ";
    "bodies that are none": "
        POST cm raw:{bad
        POST cm raw:[]
        TEXT cm {metadata: {name: a}}
        POST cm {metadata: {name: a}}
        ODD cm/a {data: {a: b}}
        MERGE cm/a raw:{bad
        MERGE cm/a [1]
        JSON cm/a {x: 1}
        JSON cm/a [{op: test, path: /data/k, value: '9'}]
        JSON cm/a [{op: remove, path: /data/k}]
        JSON cm/a [{op: add, path: /nowhere/k, value: '1'}]
        JSON cm/a [{op: fly, path: /data}]
        DELETE cm/a raw:{bad
        MERGE cm/none {data: {a: b}}
        JSON cm/none []
        STRATEGIC cm/a {data: {a: b}}
    ";
    "options are checked": "
        POST cm?fieldValidation=Odd {metadata: {name: a}}
        POST cm?dryRun=Some {metadata: {name: a}}
        POST cm?fieldManager=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx {metadata: {name: a}}
        POST cm {metadata: {name: a}}
        PUT cm/a?dryRun=Some {metadata: {name: a}}
        MERGE cm/a?dryRun=Some {metadata: {name: a}}
        MERGE cm/a?force=true {data: {a: b}}
        APPLY cm/a {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        APPLY cm/a?fieldManager=x&dryRun=Some {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        DELETE cm/a?dryRun=Some
        DELETE cm/a {propagationPolicy: Odd}
        DELETE cm/a {propagationPolicy: Orphan, orphanDependents: true}
    ";
    "a dry run changes nothing": "
        POST cm?dryRun=All {metadata: {name: a}, data: {k: '1'}}
        GET cm/a
        POST cm {metadata: {name: a}, data: {k: '1'}}
        POST cm?dryRun=All {metadata: {name: a}}
        PUT cm/a?dryRun=All {metadata: {name: a}, data: {k: '2'}}
        MERGE cm/a?dryRun=All {data: {k: '3'}}
        JSON cm/a?dryRun=All [{op: add, path: /data/l, value: '3'}]
        APPLY cm/a?dryRun=All&fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {m: '1'}}
        APPLY cm/b?dryRun=All&fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {m: '1'}}
        DELETE cm/a?dryRun=All
        DELETE cm/a {dryRun: [All]}
        GET cm/a
        GET cm/b
        GET cm
    ";
    "apply": "
        APPLY cm/a?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '1'}}
        APPLY cm/a?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '1'}}
        APPLY cm/a?fieldManager=y {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '2'}}
        APPLY cm/a?fieldManager=y&force=true {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: '2'}}
        APPLY cm/a?fieldManager=y {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: zz}, data: {k: '3'}}
        APPLY cm/a?fieldManager=y {apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: $uid1}, data: {k: '3'}}
        APPLY cm/a?fieldManager=y {apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: $rv1}, data: {k: '4'}}
        APPLY cm/a?fieldManager=y {apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: $rv6}, data: {k: '4'}}
        APPLY cm/a?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: $rv1}, data: {k: '5'}}
        APPLY cm/b?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: b, resourceVersion: '1'}, data: {k: '1'}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: z}, data: {k: '1'}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: z, resourceVersion: '1'}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, data: {k: '1'}}
        APPLY cm/c?fieldManager=x {metadata: {name: c}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: Secret, metadata: {name: c}}
        APPLY cm/a?fieldManager=x {apiVersion: v1, kind: Secret, metadata: {name: a}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: c, managedFields: [{manager: q}]}}
        APPLY cm/c?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, dat: {k: '1'}}
        APPLY cm/C?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: C}}
        APPLY /api/v1/namespaces/nowhere/configmaps/a?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
        GET cm/a
    ";
    "a deletion says what it means": "
        POST cm {metadata: {name: a}}
        DELETE cm/a {preconditions: {uid: z}}
        DELETE cm/a {preconditions: {resourceVersion: '1'}}
        DELETE cm/a {preconditions: {uid: z, resourceVersion: '1'}}
        DELETE cm/a {preconditions: {uid: $uid1, resourceVersion: '1'}}
        DELETE cm/none {preconditions: {uid: z}}
        DELETE cm/a {preconditions: {uid: $uid1, resourceVersion: $rv1}, propagationPolicy: Background}
        POST deploy {metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        DELETE deploy/d {preconditions: {uid: z}}
        DELETE deploy/d {propagationPolicy: Background}
        DELETE deploy/d
        POST svc {metadata: {name: s}, spec: {ports: [{port: 80}]}}
        DELETE svc/s
        POST sa {metadata: {name: s}}
        DELETE sa/s
        POST lease {metadata: {name: l}, spec: {holderIdentity: x}}
        DELETE lease/l
    ";
    "finalizers hold": "
        POST cm {metadata: {name: a, finalizers: [a.b/c, a.b/d]}}
        DELETE cm/a?dryRun=All
        DELETE cm/a
        DELETE cm/a
        GET cm/a
        MERGE cm/a {metadata: {finalizers: [a.b/c, a.b/d, a.b/e]}}
        MERGE cm/a {data: {k: '1'}}
        MERGE cm/a {metadata: {deletionTimestamp: null}}
        MERGE cm/a {metadata: {finalizers: [a.b/d]}}
        JSON cm/a [{op: remove, path: /metadata/finalizers}]
        GET cm/a
        POST deploy {metadata: {name: d, finalizers: [a.b/c]}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        DELETE deploy/d
        MERGE deploy/d {metadata: {finalizers: null}}
        GET deploy/d
    ";
    "the ways of deletion are finalizers": "
        POST cm {metadata: {name: a}}
        DELETE cm/a {propagationPolicy: Foreground}
        DELETE cm/a {propagationPolicy: Orphan}
        DELETE cm/a
        DELETE cm/a {propagationPolicy: Background}
        GET cm/a
        POST cm {metadata: {name: b}}
        DELETE cm/b {propagationPolicy: Orphan}
        MERGE cm/b {metadata: {finalizers: null}}
        GET cm/b
    ";
    "many are listed": "
        GET cm
        POST cm {metadata: {name: c0, labels: {l: x}}}
        POST cm {metadata: {name: c1, labels: {l: y}}}
        POST cm {metadata: {name: c2, labels: {l: x}}}
        POST cm {metadata: {name: c3, labels: {l: z}}}
        POST cm {metadata: {name: c4}}
        GET cm
        GET cm?limit=2
        GET cm?limit=2&continue=$next8
        GET cm?limit=2&continue=$next9
        GET cm?limit=5
        GET cm?limit=0
        GET cm?limit=x
        GET cm?limit=1&labelSelector=l%3Dx
        GET cm?limit=1&labelSelector=l%3Dx&continue=$next14
        GET cm?labelSelector=l%3Dx
        GET cm?labelSelector=l%3D%3Dx
        GET cm?labelSelector=l!%3Dx
        GET cm?labelSelector=l
        GET cm?labelSelector=!l
        GET cm?labelSelector=l+in+(x,z)
        GET cm?labelSelector=l+notin+(x,z)
        GET cm?labelSelector=l+in+(x,z),l!%3Dz
        GET cm?labelSelector=l%3D%3D%3Dx
        GET cm?labelSelector=!!x
        GET cm?labelSelector=l+in+()
        GET cm?fieldSelector=metadata.name%3Dc1
        GET cm?fieldSelector=metadata.name!%3Dc1,metadata.namespace%3D$NS
        GET cm?fieldSelector=metadata.name%3Dc1,metadata.name%3Dc2
        GET cm?fieldSelector=data.k%3Dc1
        GET cm?fieldSelector=metadata.name
        GET route?fieldSelector=spec.x%3Dy
        GET pod?fieldSelector=spec.nodeName%3Dx,status.phase!%3DRunning
        GET pod?fieldSelector=spec.x%3Dy
        GET svc?fieldSelector=spec.x%3Dy
        GET cm?resourceVersion=x
        GET cm?resourceVersion=99999999
        GET cm?resourceVersion=0
        GET cm?resourceVersionMatch=Exact
        GET cm?continue=nonsense
        GET cm/c1?resourceVersion=99999999
        GET cm/c1?resourceVersion=abc
        GET cm/c1?resourceVersion=0
        METAS cm?limit=2
        META cm/c1
        META cm/none
        GET route
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {}}
        GET route
        METAS route
        META route/r
    ";
    "a page is of one moment": "
        POST cm {metadata: {name: a}}
        POST cm {metadata: {name: b}}
        POST cm {metadata: {name: c}}
        GET cm?limit=1
        MERGE cm/b {data: {k: '2'}}
        DELETE cm/c
        POST cm {metadata: {name: d}}
        GET cm?limit=1&continue=$next4
        GET cm?continue=$next8
        GET cm
    ";
    "a watch tells what happens": "
        POST cm {metadata: {name: zero, labels: {l: x}}}
        POST cm {metadata: {name: a, labels: {l: x}}}
        POST cm {metadata: {name: b, labels: {l: y}}}
        MERGE cm/a {metadata: {labels: {l: y}}}
        MERGE cm/b {metadata: {labels: {l: x}}}
        MERGE cm/b {data: {k: '1'}}
        MERGE cm/b {data: {k: '1'}}
        DELETE cm/b
        DELETE cm/a
        WATCH 7 cm?watch=true&resourceVersion=$rv1
        WATCH 5 cm?watch=1&resourceVersion=$rv1&labelSelector=l%3Dx
        WATCH 3 cm?watch=true&resourceVersion=$rv1&fieldSelector=metadata.name%3Da
        WATCH 1 cm?watch=true
        WATCH 1 cm?watch=true&resourceVersion=0
        WATCH 2 cm?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true
        WATCH 1 cm?watch=true&sendInitialEvents=true&allowWatchBookmarks=true
        WATCH 1 cm?watch=true&resourceVersionMatch=NotOlderThan
        WATCH 1 cm?watch=true&resourceVersion=abc
        WATCH 1 cm?watch=true&labelSelector=a%3D%3D%3Db
        GET cm/zero?watch=true
    ";
    "a watch of a definition's kind": "
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {}}
        MERGE route/r {spec: {hostnames: [a.b]}}
        MERGE route/r/status {status: {parents: []}}
        DELETE route/r
        WATCH 3 route?watch=true&resourceVersion=$rv1
        WATCH 1 route?watch=true&resourceVersion=$rv2
    ";
    "what is not served": "
        GET /nope
        GET /apis/nope/v1/namespaces/$NS/nope/x
        GET /apis/apps/v1/namespaces/$NS/nope/x
        GET /apis/apps/v9/namespaces/$NS/deployments/x
        GET /apis/gateway.networking.k8s.io/v1/namespaces/$NS/nope/x
        GET /apis/gateway.networking.k8s.io/v9/namespaces/$NS/httproutes/x
        GET /api/v1/namespaces/$NS/nope
        GET /api/v1/nope
        GET deploy/d/nope
        POST /api/v1/configmaps {metadata: {name: a}}
        DELETE /api/v1/configmaps
        PUT cm {metadata: {name: a}}
        POST cm/a {metadata: {name: a}}
        GET /readyz
        GET /apis/coordination.k8s.io
        GET /apis/gateway.networking.k8s.io
        GET /apis/coordination.k8s.io/v1
        GET /apis/policy/v1
        GET /apis/discovery.k8s.io/v1
        GET /apis/events.k8s.io/v1
    ";
    "collections are deleted by selectors": "
        POST cm {metadata: {name: a, labels: {l: x}}}
        POST cm {metadata: {name: b, labels: {l: x}, finalizers: [a.b/c]}}
        POST cm {metadata: {name: c, labels: {l: y}}}
        DELETE cm?labelSelector=none
        DELETE cm?labelSelector=l%3Dx
        GET cm
        DELETE cm
        GET cm
    ";
    "namespaces": "
        GET /api/v1/namespaces/$NS
        POST /api/v1/namespaces {metadata: {name: $NS-b, labels: {a: b}}}
        POST /api/v1/namespaces {metadata: {name: $NS-b}}
        MERGE /api/v1/namespaces/$NS-b {metadata: {labels: {c: d}}}
        MERGE /api/v1/namespaces/$NS-b {spec: {finalizers: []}}
        GET /api/v1/namespaces?fieldSelector=metadata.name%3D$NS-b
        POST /api/v1/namespaces/$NS-b/configmaps {metadata: {name: early}}
        DELETE /api/v1/namespaces/$NS-b
        DELETE /api/v1/namespaces/$NS-b
        GET /api/v1/namespaces/$NS-b
        POST /api/v1/namespaces/$NS-b/configmaps {metadata: {name: late}}
        APPLY /api/v1/namespaces/$NS-b/configmaps/late?fieldManager=x {apiVersion: v1, kind: ConfigMap, metadata: {name: late}}
        MERGE /api/v1/namespaces/$NS-b/configmaps/early {data: {k: '1'}}
        DELETE /api/v1/namespaces/nowhere
    ";
    "unknown fields": "
        POST cm {metadata: {name: a}, dat: {}}
        POST cm?fieldValidation=Strict {metadata: {name: b}, dat: {}}
        POST cm?fieldValidation=Strict {metadata: {name: b}, data: {a: 1}}
        POST deploy?fieldValidation=Strict {metadata: {name: e}, spec: {foo: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST deploy {metadata: {name: e}, spec: {foo: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST deploy {metadata: {name: f}, spec: {replicas: x, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}
        POST route {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {foo: 1, parentRefs: [{name: g}]}}
        POST route?fieldValidation=Strict {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r3}, spec: {foo: 1, parentRefs: [{name: g}]}}
        APPLY cm/a?fieldManager=x&fieldValidation=Strict {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dat: {}}
        APPLY route/r?fieldManager=x&fieldValidation=Strict {apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {foo: 1}}
        APPLY deploy/e?fieldManager=x&fieldValidation=Strict {apiVersion: apps/v1, kind: Deployment, metadata: {name: e}, spec: {foo: 1}}
    ";
};
