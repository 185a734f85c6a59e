//! What every router has to hold: one table of routers, one suite. A new router is a row of the table.
//!
//! A row is rendered as a whole, by the layout and the router together, as the planner does it.

use super::*;
use crate::manifest::cookie;
use crate::manifest::desired::{
    By, Expose, Gates, HeaderMatch, HeaderValue, Layout, PhasePlan, Plan, SessionAffinity, Set, Target, TargetKind,
    UnitKind,
};
use crate::manifest::duration::Span;
use crate::manifest::ids::{Percent, SetId};
use crate::manifest::object::ROLE;
use crate::record::posture::{Directly, Naming, Posture, Role, Size};
use crate::record::state::RoleName;
use crate::workload::fixtures::{live, name, namespace, object, plan, pods, set};
use crate::workload::inplace::{self, InPlaceFacts};
use crate::workload::kinds::shared;
use crate::workload::{compare, owned};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};

mod table;

use table::{Row, Tells, WITHOUT, following, rows};

const MANAGER: &str = "tidegate";
const BASELINE: u32 = 3;

type Objects = BTreeMap<ObjectRef, Object>;

fn split(weight: u8) -> Split {
    Split { weight: weight.try_into().unwrap(), ..Split::stable() }
}

/// A version of the row's manifests.
fn version(row: &Row, id: &str, image: &str) -> Set {
    let labels = json!({"app": "web", "tier": "front"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}});
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": BASELINE, "selector": selector, "template": template});
    let workload = object(row.target.kind(), "web", json!({"spec": spec}));
    Set { id: id.repeat(40).parse().unwrap(), ..set(row.manifests.iter().cloned().chain([workload])) }
}

fn row_plan(row: &Row) -> Plan {
    let plan = plan(Some(row.router.clone()));
    let expose = Expose { mirror: row.tells.copies().then_some(Percent::ALL), ..Expose::default() };
    let copies = PhasePlan {
        name: "copies".parse().unwrap(),
        before: Gates::default(),
        expose,
        soak: Span::ZERO,
        checks: Vec::new(),
    };
    Plan {
        phases: vec![copies],
        target: Target { kind: row.target, layout: row.layout, ..plan.target.clone() },
        ..plan
    }
}

/// All objects with that split; without one those at rest.
fn render_all(row: &Row, split: Option<&Split>) -> Objects {
    let (old, new) = (version(row, "0", "web:1"), version(row, "1", "web:2"));
    let role = |set: &Set, size| Role { set: set.id.clone(), size, pods: None, directly: Directly::new() };
    let candidate = split.map(|split| Role { pods: Some(pods()), ..role(&new, Size::Share(split.weight)) });
    let posture = Posture {
        naming: Naming::of(&row_plan(row)),
        stable: role(&old, if split.is_some() { Size::AtLeast(BASELINE) } else { Size::Declared }),
        candidate,
        split: split.cloned().unwrap_or_default(),
    };
    let (base, mut plan) = (old.id.clone(), row_plan(row));
    if let Some(traffic) = &mut plan.traffic {
        traffic.session_affinity = Some(SessionAffinity { cookie: "stay".to_owned(), max_age: "1h".parse().unwrap() });
    }
    let stable = live(old.objects.values().cloned());
    let sets: BTreeMap<SetId, _> = [old, new].into_iter().map(|set| (set.id.clone(), set.into())).collect();
    let facts = InPlaceFacts {
        plan: &plan,
        base: &base,
        directly: &Directly::new(),
        sets: &sets,
        live: &stable,
        baseline: BASELINE,
        namespace: &namespace(),
        manager: MANAGER,
    };
    let rendered = inplace::render(&posture, &facts).unwrap_or_else(|error| panic!("{}: {error}", row.name));
    // The mark by which it is told whose a workload is, as the planner writes it.
    let marked = |inplace::Rendered { mut object, role, plain: _ }: inplace::Rendered| {
        let is_workload =
            shared::KINDS.contains(&object.reference().kind) || object.reference().kind == Kind::Deployment;
        if is_workload && role == RoleName::Candidate {
            object.annotate(ROLE, "candidate");
        }
        object
    };
    rendered.into_iter().map(|(reference, rendered)| (reference, marked(rendered))).collect()
}

/// An object as it is in a cluster: what we applied, and what others have written beside it.
fn applied(ours: &Object) -> Object {
    let own = |of: &Value| -> Map<String, Value> {
        let keys = of.as_object().into_iter().flat_map(Map::keys);
        keys.map(|key| (format!("f:{key}"), json!({}))).collect()
    };
    let metadata = &ours.value()["metadata"];
    let fields = json!({
        "f:spec": own(&ours.value()["spec"]),
        "f:metadata": {"f:annotations": own(&metadata["annotations"]), "f:labels": own(&metadata["labels"])},
    });
    let mut object = ours.clone();
    object.annotate("theirs", "kept");
    section(object.value_mut(), &["metadata", "labels"]).insert("theirs".to_owned(), "kept".into());
    let managed = json!([{"manager": MANAGER, "operation": "Apply", "fieldsV1": fields}]);
    let meta = section(object.value_mut(), &["metadata"]);
    meta.insert("uid".to_owned(), "u".into());
    meta.insert("managedFields".to_owned(), managed);
    section(object.value_mut(), &["status"]).insert("theirs".to_owned(), "kept".into());
    object
}

fn cluster(objects: &Objects) -> LiveState {
    live(objects.values().map(applied))
}

fn on<T>(row: &Row, state: &LiveState, run: impl FnOnce(&RouteView<'_>) -> T) -> T {
    let naming = Naming::of(&row_plan(row));
    run(&RouteView { live: state, namespace: &namespace(), target: &name("web"), baseline: BASELINE, naming: &naming })
}

fn seen(row: &Row, state: &LiveState) -> ObservedSplit {
    on(row, state, |view| read(&row.router, view))
}

fn shown(row: &Row, split: &Split) -> Split {
    match seen(row, &cluster(&render_all(row, Some(split)))) {
        ObservedSplit::Split(shown) => shown,
        ObservedSplit::Foreign(why) => panic!("{}: {split:?}: {why}", row.name),
    }
}

/// What a retreat leaves of these objects.
fn gone_back(row: &Row, state: &LiveState) -> LiveState {
    let lowered = on(row, state, |view| retreat(&row.router, view, MANAGER));
    let mut after = state.clone();
    for object in lowered {
        after.objects.insert(object.reference().clone(), applied(&object).into());
    }
    after
}

fn weights(row: &Row) -> Vec<u8> {
    match (row.router.by(), row.layout) {
        (By::Selector, _) => vec![0, 100],
        (_, Layout::InPlace) => (0..=100).collect(),
        // The router is the same one.
        (_, Layout::Primary | Layout::Versioned) => vec![0, 1, 50, 99, 100],
    }
}

/// Splits of all sorts that the router can do.
fn splits(row: &Row) -> Vec<Split> {
    let mut all: Vec<Split> = weights(row).into_iter().map(split).collect();
    for headers in row.tells.alternatives() {
        all.extend([0, 10, 100].map(|weight| Split { headers: headers.clone(), ..split(weight) }));
    }
    if row.tells == Tells::AllAndCopies {
        // Who got the candidate by weight keeps it.
        let run = BTreeSet::from([cookie::matching("stay", "7-9ac41f02")]);
        all.extend([10, 50, 100].map(|weight| Split { headers: run.clone(), ..split(weight) }));
    }
    if row.tells.copies() {
        let mirror = 10.try_into().unwrap();
        all.extend([0, 50].map(|weight| Split { mirror, ..split(weight) }));
    }
    all
}

fn each_row(check: impl Fn(&Row)) {
    rows().iter().for_each(check);
}

#[test]
fn every_router_has_a_row_or_a_reason_for_having_none() {
    let all: Vec<Router> = std::iter::successors(following(None), |router| following(Some(router))).collect();
    let same = |one: &Router, other: &Router| match (one, other) {
        (Router::Units(one), Router::Units(other)) => one == other,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other),
    };
    let among = |router: &Router, others: &[Router]| others.iter().any(|other| same(other, router));
    let rows: Vec<Router> = rows().into_iter().map(|row| row.router).collect();
    let without: Vec<Router> = WITHOUT.into_iter().map(|(router, _)| router).collect();
    for router in &all {
        assert_ne!(among(router, &rows), among(router, &without), "{router:?}");
    }
    assert!(rows.iter().chain(&without).all(|router| among(router, &all)));
}

#[test]
fn c_22_what_is_rendered_is_read_back() {
    each_row(|row| {
        for split in splits(row) {
            let expected = match row.router.by() {
                By::Pods => replicas::reachable(BASELINE, &split),
                By::Units => units::reachable(BASELINE, &split),
                By::Route | By::Selector => split.clone(),
            };
            let shown = shown(row, &split);
            assert!(shown.same(&expected), "{}: {split:?} is shown as {shown:?}", row.name);
        }
    });
}

#[test]
fn c_22_headers_let_in_whom_they_name_and_nobody_else() {
    each_row(|row| {
        for headers in row.tells.alternatives() {
            let shown = shown(row, &Split { headers: headers.clone(), ..split(0) });
            assert_eq!((shown.weight, shown.headers), (Percent::ZERO, headers), "{}", row.name);
        }
    });
}

#[test]
fn c_21_the_way_back_is_byte_for_byte_what_was_there_before() {
    each_row(|row| {
        let before = cluster(&render_all(row, Some(&Split::stable())));
        for split in splits(row) {
            let after = gone_back(row, &cluster(&render_all(row, Some(&split))));
            assert_eq!(seen(row, &after), ObservedSplit::Split(Split::stable()), "{}", row.name);
            for route in routes(&row.router, &namespace(), &name("web")) {
                let text =
                    |state: &LiveState| state.get(&route).map(|object| serde_jcs::to_string(object.value()).unwrap());
                assert_eq!(text(&after), text(&before), "{}: {route} after {split:?}", row.name);
            }
            let twice = gone_back(row, &after);
            assert!(twice == after, "{}: a second time changes something", row.name);
        }
    });
}

#[test]
fn at_rest_there_is_nothing_but_the_manifests() {
    each_row(|row| {
        let manifests = version(row, "0", "web:1").objects;
        let mut at_rest = render_all(row, None);
        if row.layout == Layout::Primary {
            // Stable's pods are a copy's: the Service leads to them, and all that leads to the Service is as the manifests say.
            let copied = |name: &ObjectRef| [Kind::Deployment, Kind::Service].contains(&name.kind);
            at_rest.retain(|name, _| !copied(name));
            let routes = manifests.into_iter().filter(|(name, _)| !copied(name)).collect::<Objects>();
            assert_eq!(at_rest, routes, "{}", row.name);
        } else {
            assert_eq!(at_rest, manifests, "{}", row.name);
        }
    });
}

#[test]
fn the_split_is_in_fields_that_a_posture_owns() {
    each_row(|row| {
        let before = render_all(row, Some(&Split::stable()));
        for split in splits(row) {
            let rendered = render_all(row, Some(&split));
            assert_eq!(rendered, render_all(row, Some(&split)), "{}: equal input, equal output", row.name);
            for route in routes(&row.router, &namespace(), &name("web")) {
                let (now, then) = (&rendered[&route], &before[&route]);
                for difference in compare::differs(now, then).iter().chain(&compare::differs(then, now)) {
                    let field = difference.pointer.replace('/', ".").replace("~1", "/");
                    let posture = route.kind.facts().posture;
                    assert!(posture.iter().any(|own| field.starts_with(own)), "{}: {route}: {field}", row.name);
                }
            }
        }
    });
}

#[test]
fn a_retreat_repeats_all_that_is_ours_and_nothing_of_others() {
    each_row(|row| {
        let highest = splits(row).pop().unwrap();
        let state = cluster(&render_all(row, Some(&highest)));
        let lowered = on(row, &state, |view| retreat(&row.router, view, MANAGER));
        let expected = routes(&row.router, &namespace(), &name("web"));
        assert_eq!(lowered.iter().map(|o| o.reference().clone()).collect::<Vec<_>>(), expected, "{}", row.name);
        for object in lowered {
            assert!(!object.value().to_string().contains("theirs"), "{}: {:?}", row.name, object.value());
            assert!(object.uid().is_none() && object.at("/metadata/managedFields").is_none(), "{}", row.name);
            let ours = owned::owned_by(state.get(object.reference()).unwrap(), MANAGER).unwrap();
            let keys = |o: &Object| o.value()["spec"].as_object().map(|spec| spec.keys().cloned().collect::<Vec<_>>());
            assert_eq!(keys(&object), keys(&ours), "{}", row.name);
        }
        // Whatever is not ours there, what sends requests is taken back.
        let theirs = on(row, &state, |view| retreat(&row.router, view, "someone"));
        let mut after = state.clone();
        for object in theirs {
            let over = state.get(object.reference()).unwrap();
            let merged = overlaid(over.value(), object.value());
            after.objects.insert(object.reference().clone(), Object::new(object.reference().clone(), merged).into());
        }
        assert_eq!(seen(row, &after), ObservedSplit::Split(Split::stable()), "{}", row.name);
    });
}

/// `under` with what an apply by somebody new lays over it.
fn overlaid(under: &Value, over: &Value) -> Value {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            let mut all = under.clone();
            for (key, value) in over {
                let merged = all.get(key).map_or_else(|| value.clone(), |known| overlaid(known, value));
                all.insert(key.clone(), merged);
            }
            // A selector of a Service is one map, which an apply takes as a whole.
            if over.contains_key("app") { Value::Object(over.clone()) } else { Value::Object(all) }
        }
        _ => over.clone(),
    }
}

#[test]
fn x_16_what_a_hand_changes_of_the_split_is_seen() {
    each_row(|row| {
        let recorded = split(if row.router.by() == By::Selector { 100 } else { 50 });
        let rendered = render_all(row, Some(&recorded));
        let moved = |to: u8| {
            let other = cluster(&render_all(row, Some(&split(to))));
            let routes = routes(&row.router, &namespace(), &name("web"));
            let differs = |route: &ObjectRef| !compare::differs(&rendered[route], other.get(route).unwrap()).is_empty();
            assert!(routes.iter().any(differs), "{}: {to} instead of {recorded:?} is no difference", row.name);
            match seen(row, &other) {
                ObservedSplit::Split(seen) => (seen.within(&recorded), recorded.within(&seen)),
                ObservedSplit::Foreign(why) => panic!("{}: {why}", row.name),
            }
        };
        assert_eq!(moved(0), (true, false), "{}: lower", row.name);
        if row.router.by() != By::Selector {
            assert_eq!(moved(100), (false, true), "{}: higher", row.name);
        }
    });
}

#[test]
fn what_we_never_write_is_foreign_and_goes_back_all_the_same() {
    each_row(|row| {
        let rendered = render_all(row, Some(&Split::stable()));
        for (route, edit) in &row.foreign {
            let mut state = cluster(&rendered);
            let mut object = Object::clone(state.get(route).unwrap());
            edit(object.value_mut());
            let differs = !compare::differs(&rendered[route], &object).is_empty();
            state.objects.insert(route.clone(), object.into());
            let seen_now = seen(row, &state);
            let wrong = matches!(&seen_now, ObservedSplit::Split(split) if split.is_stable());
            assert!(differs && !wrong, "{}: {seen_now:?}", row.name);
            let after = gone_back(row, &state);
            assert_eq!(seen(row, &after), ObservedSplit::Split(Split::stable()), "{}", row.name);
        }
    });
}

#[test]
fn carriers_are_what_a_run_renders() {
    each_row(|row| {
        let rendered = render_all(row, Some(&Split::stable()));
        for route in routes(&row.router, &namespace(), &name("web")) {
            assert!(rendered.contains_key(&route), "{}: {route}", row.name);
        }
        // What leads requests to a Service goes before it.
        let copy = name("web-canary");
        let half = render_all(row, Some(&split(if row.router.by() == By::Route { 50 } else { 100 })));
        let leading: Vec<_> = half.values().filter(|object| references(object, &copy)).collect();
        let routed = row.router.by() == By::Route;
        assert_eq!(!leading.is_empty(), routed, "{}", row.name);
        assert!(leading.iter().all(|object| Kind::ROUTES.contains(&object.reference().kind)), "{}", row.name);
    });
}

#[test]
fn what_is_not_there_leads_nobody_anywhere() {
    each_row(|row| {
        let nothing = LiveState::default();
        assert_eq!(seen(row, &nothing), ObservedSplit::Split(Split::stable()), "{}", row.name);
        assert_eq!(on(row, &nothing, |view| retreat(&row.router, view, MANAGER)), [], "{}", row.name);
        let standing = on(row, &nothing, |view| status(&row.router, view));
        assert!(matches!(standing, RouteStatus::NotYet { .. }), "{}", row.name);
    });
}

impl Tells {
    fn copies(self) -> bool {
        matches!(self, Self::Copies | Self::AllAndCopies)
    }

    /// Header alternatives that the router can tell apart.
    fn alternatives(self) -> Vec<BTreeSet<HeaderMatch>> {
        let one = |pairs: &[(&str, &str)]| pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).into())).collect();
        let few = vec![[one(&[("x-canary", "always")])].into()];
        match self {
            Self::Nobody | Self::Copies => Vec::new(),
            Self::OneHeaderAndCookie => {
                let pattern = [("x-team".to_owned(), HeaderValue::Regex { regex: "^(shop|blog)$".to_owned() })].into();
                let cookie = cookie::matching("canary", "always");
                let both = [one(&[("x-canary", "1")]), cookie.clone()].into();
                few.into_iter().chain([[pattern].into(), [cookie].into(), both]).collect()
            }
            Self::All | Self::AllAndCopies => {
                let several = [one(&[("x-canary", "always")]), one(&[("x-team", "shop"), ("x-user", "ana")])];
                few.into_iter().chain([several.into()]).collect()
            }
        }
    }
}
