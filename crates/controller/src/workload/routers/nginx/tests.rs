use super::*;
use crate::manifest::desired::Router;
use crate::record::posture::Naming;
use crate::workload::fixtures::{live, name, namespace, object};
use crate::workload::routers::{self, tests::lowered};
use serde_json::json;

/// As in the documents of ingress-nginx, "Canary Deployments".
fn main_ingress() -> Object {
    let path = |path: &str, service: &str, port: Value| json!({"path": path, "pathType": "ImplementationSpecific", "backend": {"service": {"name": service, "port": port}}});
    let paths = json!([
        path("/", "web", json!({"number": 80})),
        path("/api", "web", json!({"name": "http"})),
        path("/x", "old", json!({"number": 1}))
    ]);
    let annotations = json!({
        "nginx.ingress.kubernetes.io/proxy-body-size": "8m", "nginx.ingress.kubernetes.io/canary-weight": "7",
        "kubernetes.io/ingress.class": "nginx", "cert-manager.io/cluster-issuer": "letsencrypt",
    });
    let spec = json!({
        "tls": [{"hosts": ["x"], "secretName": "s"}],
        "defaultBackend": {"service": {"name": "old", "port": {"number": 1}}},
        "rules": [{"host": "x", "http": {"paths": paths}}, {"host": "y", "http": {"paths": [path("/", "old", json!({"number": 1}))]}}],
    });
    object(Kind::Ingress, "web", json!({"metadata": {"annotations": annotations}, "spec": spec}))
}

fn router() -> Router {
    Router::Nginx { ingress: name("web"), service: name("web") }
}

fn made() -> Object {
    canary(&main_ingress().renamed(name("web-canary")), &name("web"))
}

fn annotated(annotations: &[(&str, &str)]) -> Object {
    let mut canary = made();
    for (key, value) in annotations {
        canary.annotate(&format!("{PREFIX}{key}"), value);
    }
    canary
}

fn seen(objects: impl IntoIterator<Item = Object>) -> ObservedSplit {
    let view = |live| {
        routers::read(
            &router(),
            &RouteView { live, namespace: &namespace(), target: &name("web"), baseline: 1, naming: &Naming::InPlace },
        )
    };
    view(&live(objects))
}

fn split(weight: u8, headers: &[HeaderMatch]) -> Split {
    Split { weight: weight.try_into().unwrap(), headers: headers.iter().cloned().collect(), ..Split::stable() }
}

fn header(name: &str, value: HeaderValue) -> HeaderMatch {
    [(name.to_owned(), value)].into()
}

#[test]
fn a_canary_has_the_paths_of_the_service_and_nothing_that_others_act_upon() {
    let canary = made();
    let path = |path: &str, port: Value| json!({"path": path, "pathType": "ImplementationSpecific", "backend": {"service": {"name": "web-canary", "port": port}}});
    let paths = json!([path("/", json!({"number": 80})), path("/api", json!({"name": "http"}))]);
    assert_eq!(canary.at("/spec"), Some(&json!({"rules": [{"host": "x", "http": {"paths": paths}}]})));
    let expected = json!({
        "nginx.ingress.kubernetes.io/proxy-body-size": "8m", "kubernetes.io/ingress.class": "nginx",
        CANARY: "true", WEIGHT: "0", TOTAL: "100", HEADER: "", VALUE: "", PATTERN: "", COOKIE: "",
    });
    assert_eq!(canary.at("/metadata/annotations"), Some(&expected));
    assert_eq!(seen([canary, main_ingress()]), ObservedSplit::Split(Split::stable()));
}

#[test]
fn c_22_annotations_of_ingress_nginx_are_read_as_it_reads_them() {
    let always = |name: &str| header(name, "always".into());
    let table: Vec<(&[(&str, &str)], Split)> = vec![
        (&[("canary-weight", "10")], split(10, &[])),
        (&[("canary-weight", "1"), ("canary-weight-total", "1000")], split(1, &[])),
        (&[("canary-weight", "500"), ("canary-weight-total", "1000")], split(50, &[])),
        (&[("canary-weight", "200")], split(100, &[])),
        (&[("canary-weight", "")], split(0, &[])),
        (&[("canary-by-header", "X-Canary")], split(0, &[always("x-canary")])),
        (&[("canary-by-header", "a"), ("canary-by-header-value", "b")], split(0, &[header("a", "b".into())])),
        (
            &[("canary-by-header", "a"), ("canary-by-header-pattern", "b.*")],
            split(0, &[header("a", HeaderValue::Regex { regex: "b.*".to_owned() })]),
        ),
        (
            &[("canary-by-header", "a"), ("canary-by-header-value", "b"), ("canary-by-header-pattern", "c")],
            split(0, &[header("a", "b".into())]),
        ),
        (&[("canary-by-header-value", "b")], split(0, &[])),
        (&[("canary-by-cookie", "me"), ("canary-weight", "5")], split(5, &[cookie::matching("me", "always")])),
    ];
    for (annotations, expected) in table {
        assert_eq!(seen([annotated(annotations), main_ingress()]), ObservedSplit::Split(expected), "{annotations:?}");
    }
}

#[test]
fn what_a_hand_makes_of_them_is_never_less_than_what_it_lets_in() {
    let all = ObservedSplit::Split(split(100, &[]));
    let mut main = main_ingress();
    rename(&mut main, "web", "web-canary");
    assert_eq!(seen([main.clone(), made()]), all);
    assert_eq!(lowered(&Nginx { ingress: &name("web"), service: &name("web") }, &main), main_ingress());
    for annotations in [&[("canary", "false")], &[("canary-weight", "ten")], &[("canary-weight", "-1")]] {
        assert!(matches!(seen([annotated(annotations), main_ingress()]), ObservedSplit::Foreign(_)), "{annotations:?}");
    }
    let mut elsewhere = annotated(&[("canary-weight", "50")]);
    rename(&mut elsewhere, "web-canary", "other");
    assert_eq!(seen([elsewhere, main_ingress()]), ObservedSplit::Split(Split::stable()), "it leads to nobody of ours");
}

#[test]
fn at_100_no_cookie_keeps_anybody_at_stable() {
    let rendered = render(&made(), &split(100, &[cookie::matching("me", "always"), header("a", "b".into())]));
    assert_eq!(seen([rendered.clone()]), ObservedSplit::Split(split(100, &[])));
    assert_eq!((rendered.annotation(COOKIE), rendered.annotation(HEADER)), (Some(""), Some("")));
}

#[test]
fn from_a_canary_alone_both_ingresses_and_the_service_are_known() {
    assert_eq!(beside(&made()), [(name("web"), name("web"))]);
    assert_eq!(beside(&main_ingress()), []);
    assert_eq!(routers::ports(&router(), &main_ingress()), [json!(80), json!("http")]);
    assert!(names(&made(), "web-canary") && !names(&made(), "web") && names(&main_ingress(), "old"));
}

fn made_at(mut ingress: Object, at: &str) -> Object {
    section(ingress.value_mut(), &["metadata"]).insert("creationTimestamp".to_owned(), at.into());
    ingress
}

/// Another controller serves it: it has its requests all to itself.
#[test]
fn an_older_ingress_of_another_class_hides_nobody() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let left = |class: &str| {
        let mut left = made_at(annotated(&[("canary", "false")]), late);
        left.annotate("kubernetes.io/ingress.class", class);
        left
    };
    let main = || made_at(main_ingress(), early);
    assert_eq!(seen([main(), left("nginx")]), ObservedSplit::Split(Split::stable()));
    assert!(matches!(seen([main(), left("internal")]), ObservedSplit::Foreign(_)));
    // The field counts before the annotation.
    let mut internal = main();
    internal.value_mut()["spec"]["ingressClassName"] = "internal".into();
    assert_eq!(seen([internal.clone(), left("internal")]), ObservedSplit::Split(Split::stable()));
    assert!(matches!(seen([internal, left("nginx")]), ObservedSplit::Foreign(_)));
}

#[test]
fn what_flagger_leaves_beside_an_older_ingress_reaches_nobody() {
    let left = || annotated(&[("canary", "false")]);
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    assert_eq!(seen([made_at(main_ingress(), early), made_at(left(), late)]), ObservedSplit::Split(Split::stable()));
    let mut elsewhere = left();
    elsewhere.value_mut()["spec"]["rules"][0]["host"] = "z".into();
    for (main, other) in [
        (made_at(main_ingress(), late), made_at(left(), early)),
        (main_ingress(), made_at(left(), late)),
        (made_at(main_ingress(), early), made_at(elsewhere, late)),
    ] {
        assert!(matches!(seen([main, other]), ObservedSplit::Foreign(_)));
    }
}

/// As Argo Rollouts leaves it: marked, at weight 0, and under a name of its own.
fn left_by_argo(host: &str) -> Object {
    let mut left = annotated(&[]).renamed(name("web-web-canary"));
    rename(&mut left, "web-canary", "web-preview");
    left.value_mut()["spec"]["rules"][0]["host"] = host.into();
    left
}

fn rivals_among(objects: impl IntoIterator<Item = Object>) -> Vec<String> {
    let all = live(objects);
    let view =
        RouteView { live: &all, namespace: &namespace(), target: &name("web"), baseline: 1, naming: &Naming::InPlace };
    rivals(&view, &name("web"), &name("web")).into_iter().map(|other| other.reference().name.to_string()).collect()
}

#[test]
fn a_canary_of_others_takes_the_place_of_ours_where_it_has_a_path_of_what_leads_to_the_service() {
    let none: [&str; 0] = [];
    assert_eq!(rivals_among([main_ingress(), made(), left_by_argo("x")]), ["web-web-canary"]);
    assert_eq!(rivals_among([main_ingress(), made()]), none, "ours is none");
    assert_eq!(rivals_among([left_by_argo("x")]), none, "there is nothing to split");
    assert_eq!(rivals_among([main_ingress(), left_by_argo("z")]), none, "another host");
    let mut unmarked = left_by_argo("x");
    unmarked.annotate(CANARY, "false");
    assert_eq!(rivals_among([main_ingress(), unmarked]), none);
    let mut internal = left_by_argo("x");
    internal.annotate("kubernetes.io/ingress.class", "internal");
    assert_eq!(rivals_among([main_ingress(), internal]), none, "another controller serves it");
    let mut aside = left_by_argo("x");
    aside.value_mut()["spec"]["rules"][0]["http"]["paths"] =
        json!([{"path": "/x", "pathType": "ImplementationSpecific", "backend": {"service": {"name": "new"}}}]);
    assert_eq!(rivals_among([main_ingress(), aside]), none, "that path leads to another Service");
}

/// ingress-nginx keeps one for each port of a Service, whichever Ingress leads there.
#[test]
fn a_canary_of_another_ingress_that_leads_to_the_service_takes_the_place_of_ours() {
    let mut other = main_ingress().renamed(name("other"));
    other.value_mut()["spec"]["rules"][0]["host"] = "z".into();
    assert_eq!(rivals_among([main_ingress(), other, left_by_argo("z")]), ["web-web-canary"]);
    let mut rest = left_by_argo("x");
    rest.value_mut()["spec"] = json!({"defaultBackend": {"service": {"name": "new", "port": {"number": 80}}}});
    let none: [&str; 0] = [];
    assert_eq!(rivals_among([main_ingress(), rest.clone()]), none, "its host has rules");
    let mut any_host = main_ingress();
    section(any_host.value_mut(), &["spec"]).insert(
        "rules".to_owned(),
        json!([{"http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}},
        ]}}]),
    );
    assert_eq!(rivals_among([any_host, rest]), ["web-web-canary"]);
}

#[test]
fn c_22_beside_an_older_canary_of_others_a_split_is_not_in_force() {
    let stands = |objects: Vec<Object>| {
        let all = live(objects);
        let view = RouteView {
            live: &all,
            namespace: &namespace(),
            target: &name("web"),
            baseline: 1,
            naming: &Naming::InPlace,
        };
        routers::status(&router(), &view)
    };
    let at = |day: u8| format!("2026-01-0{day}T00:00:00Z");
    let main = || made_at(main_ingress(), &at(1));
    let ours = |weight: &str| made_at(annotated(&[("canary-weight", weight)]), &at(3));
    let theirs = |day: u8| made_at(left_by_argo("x"), &at(day));
    let RouteStatus::NotYet { why } = stands(vec![main(), ours("10"), theirs(2)]) else {
        panic!("nobody reaches ours")
    };
    assert!(why.contains("Ingress shop/web-web-canary"), "{why}");
    // On the way back nobody has to reach it.
    assert_eq!(stands(vec![main(), ours("0"), theirs(2)]), RouteStatus::Effective);
    assert_eq!(stands(vec![main(), ours("10"), theirs(4)]), RouteStatus::Effective);
    assert_eq!(stands(vec![main(), theirs(2)]), RouteStatus::Effective);
    assert!(matches!(stands(vec![ours("10")]), RouteStatus::NotYet { .. }));
}
