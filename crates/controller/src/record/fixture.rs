//! A record with everything in it, for tests: run 7 of shop/podinfo stands on `tenth`, run 6 was promoted before.

use crate::manifest::desired::{HeaderValue, Plan};
use crate::manifest::ids::{CommitId, PodsDigest, Revision, RunId, SetId, StepName};
use crate::manifest::object::{Kind, ObjectRef};
use crate::record::posture::{Naming, Posture, Role, Size, Split};
use crate::record::schema::KIND;
use crate::record::state::{
    ClusterState, Condition, Consumed, DeletionQuestion, Deletions, EndedRun, Outcome, Owned, PastRun, Phase, Position,
    Promoted, Pull, Refused, RoleName, RolloutState, Route, Run, SetSource, StepClock, Time, Writer,
};
use crate::record::unknown::Unknown;
use std::collections::{BTreeMap, BTreeSet};

/// A point in time on the day of the record.
pub(crate) fn time(text: &str) -> Time {
    format!("2026-11-25T{text}Z").parse().expect(text)
}

fn digits(n: u8, len: usize) -> String {
    format!("{n:02x}").repeat(len / 2)
}

pub(crate) fn set(n: u8) -> SetId {
    digits(n, 40).parse().expect("40 digits")
}

pub(crate) fn revision(n: u8) -> Revision {
    format!("v1:sha256:{}", digits(n, 64)).parse().expect("64 digits")
}

pub(crate) fn pods(n: u8) -> PodsDigest {
    digits(n, 16).parse().expect("16 digits")
}

pub(crate) fn commit(n: u8) -> CommitId {
    digits(n, 40).parse().expect("40 digits")
}

pub(crate) fn run(n: u8) -> RunId {
    format!("{n}-{}", digits(n, 8)).parse().expect("8 digits")
}

pub(crate) fn past(n: u8, from: u8, to: u8, outcome: Outcome) -> PastRun {
    PastRun {
        run: run(n),
        from: set(from),
        names: None,
        stable: None,
        to: set(to),
        began: None,
        revision: revision(to),
        outcome,
        why: String::new(),
        started: time("07:00:00"),
        ended: time("08:00:00"),
    }
}

pub(crate) fn position(step: &str) -> Position {
    let clock = StepClock { exposed: Some(time("10:00:09")), ..StepClock::entered(time("10:00:00")) };
    Position { step: step.parse().expect(step), seq: 40, clock }
}

pub(crate) fn condition(reason: &str, message: &str, since: Time) -> Condition {
    Condition { reason: reason.to_owned(), message: message.to_owned(), since, until: None, act: None, live: None }
}

fn object(kind: Kind, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: "shop".parse().expect("a name"), name: name.parse().expect("a name") }
}

/// At rest on set 6, with a history.
pub(crate) fn steady() -> RolloutState {
    let role = Role { set: set(6), size: Size::Declared, pods: Some(pods(6)), directly: BTreeMap::new() };
    let owned =
        Owned { reference: object(Kind::Deployment, "podinfo"), uid: "0f2c".to_owned(), role: RoleName::Stable };
    let cluster = ClusterState {
        uid: "c1".to_owned(),
        posture: Posture { stable: role, candidate: None, split: Split::stable(), naming: Naming::default() },
        inventory: vec![owned],
    };
    RolloutState {
        api_version: crate::record::store::API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        metadata: "shop/podinfo".parse().expect("an id"),
        writer: Writer {
            instance: "prod".parse().expect("a name"),
            version: "0.1.0".to_owned(),
            cluster: "home".parse().expect("a name"),
            cluster_uid: "c1".to_owned(),
            epoch: 3,
        },
        seq: 41,
        source: SetSource { commit: commit(0xab), path: "teams/shop/podinfo/rollout.yaml".parse().expect("a path") },
        next_run: 7,
        promoted: Some(Promoted {
            set: set(6),
            revision: revision(6),
            pods: pods(6),
            label: Some(pods(6)),
            run: run(6),
            commit: None,
            path: None,
            decided: None,
            directly: BTreeMap::new(),
            at: time("08:00:00"),
        }),
        phase: Phase::Steady { how: crate::record::state::Rest::Succeeded, since: time("08:00:00") },
        run: None,
        last_run: Some(EndedRun { id: run(6), decisions_at: Some(commit(0x66)) }),
        rollback: None,
        clusters: BTreeMap::from([("home".parse().expect("a name"), cluster)]),
        revert: None,
        deletions: Deletions::default(),
        consumed: Vec::new(),
        refused: vec![Refused {
            revision: revision(4),
            run: run(4),
            outcome: Outcome::Failed,
            why: "error-rate 0.2 > 0.01".to_owned(),
            at: time("06:00:00"),
        }],
        conditions: Vec::new(),
        history: vec![past(5, 4, 5, Outcome::Promoted), past(6, 5, 6, Outcome::Promoted)],
        policy: None,
        unknown: Unknown::default(),
    }
}

/// So many ConfigMaps of main that are to go, and one Service, where the policy lets five go with one change.
pub(crate) fn too_many(maps: usize) -> DeletionQuestion {
    let object = |kind, name: String| ObjectRef {
        kind,
        namespace: "shop".parse().expect("a name"),
        name: name.parse().expect("a name"),
    };
    let objects = (0..maps).map(|n| object(Kind::ConfigMap, format!("worker-{n}")));
    let objects = objects.chain([object(Kind::Service, "worker".to_owned())]).collect();
    DeletionQuestion { objects, limit: 5, successor: None, pull: None, unkept: false }
}

/// Run 7 brings set 7 and stands on `tenth`.
pub(crate) fn open() -> RolloutState {
    let mut state = steady();
    state.next_run = 8;
    state.phase = Phase::Progressing(position("tenth"));
    state.run = Some(Run {
        preceded: None,
        id: run(7),
        route: Route::Phases,
        from: set(6),
        names: None,
        to: set(7),
        revision: revision(7),
        pods: pods(7),
        decisions_at: Some(commit(0x77)),
        started: time("09:00:00"),
        source: commit(0xab),
        path: None,
        stable: None,
        baseline: BTreeMap::from([("home".parse().expect("a name"), 3)]),
        skipped: None,
        hurried: false,
        approved: vec!["tenth".parse().expect("a name")],
        held: false,
        denied: false,
        unkept: false,
        rule: None,
        pulls: BTreeMap::from([(
            "tenth".parse().expect("a name"),
            Pull {
                branch: "tidegate/prod/propose/shop/podinfo/7-07070707-tenth".to_owned(),
                head: commit(0x78),
                checks: Vec::new(),
            },
        )]),
        jobs: BTreeMap::new(),
        away: BTreeMap::new(),
        along: None,
    });
    let testers = BTreeMap::from([("x-canary".to_owned(), HeaderValue::Exact("always".to_owned()))]);
    let cluster = state.clusters.values_mut().next().expect("one cluster");
    cluster.posture.candidate = Some(Role {
        set: set(7),
        size: Size::Share(10.try_into().expect("a percentage")),
        pods: Some(pods(7)),
        directly: BTreeMap::new(),
    });
    cluster.posture.split =
        Split { headers: BTreeSet::from([testers]), weight: 10.try_into().expect("a percentage"), ..Split::stable() };
    state.consumed = vec![Consumed {
        path: "shop/podinfo/7-07070707-tenth.yaml".parse().expect("a path"),
        blob: digits(0xb1, 40).parse().expect("40 digits"),
        action: "approve".to_owned(),
        run: run(7),
        proof: "none".to_owned(),
        by: "Ana <ana@example.org>".to_owned(),
        at: time("09:30:00"),
        proven: None,
        void: None,
    }];
    state.conditions = vec![condition("Drifted", "spec.paused", time("09:40:00"))];
    state
}

pub(crate) fn step(name: &str) -> StepName {
    name.parse().expect(name)
}

/// Two phases, each with a gate, and a promotion that waits for approval.
pub(crate) fn plan() -> Plan {
    serde_json::from_value(serde_json::json!({
        "target": {"kind": "Deployment", "name": "podinfo", "layout": "inPlace"},
        "traffic": {
            "router": {"gatewayApi": {"httpRoute": "podinfo", "service": "podinfo"}},
            "settle": "5s", "drain": "30s",
        },
        "phases": [
            {
                "name": "testers", "before": {"approval": "pullRequest"}, "soak": "5m",
                "expose": {"headers": [{"x-canary": "always"}]},
            },
            {"name": "half", "before": {"window": "office-hours"}, "expose": {"weight": 50}, "soak": "10m"},
        ],
        "promotion": {"before": {"approval": "pullRequest"}, "bake": "30m"},
        "progressDeadline": "10m",
    }))
    .expect("a plan")
}
