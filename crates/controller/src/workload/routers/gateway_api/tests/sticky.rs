//! Who got the candidate by weight keeps it: the rule for the cookie, and what sets it.

use super::*;
use crate::manifest::cookie;

const SET: &str = "stay=7-9ac41f02; Max-Age=3600; Path=/; HttpOnly";

fn keeping(weight: u8) -> Split {
    Split { headers: [cookie::matching("stay", "7-9ac41f02")].into(), ..split(weight, &[]) }
}

fn sets(headers: Value) -> Value {
    json!({"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": headers}})
}

#[test]
fn answers_to_those_whom_chance_led_there_set_the_cookie() {
    let base = route(json!([
        {"backendRefs": [{"name": "web", "port": 80}, {"name": "old", "port": 80}]},
        {"matches": [{"path": {"type": "Exact", "value": "/docs"}}], "backendRefs": [{"name": "docs", "port": 80}]},
    ]));
    let rendered = with_cookie(&render(&base, &web(), &keeping(10)), &web(), SET);
    let holders = pattern("cookie", "^(.*; *)?stay=7-9ac41f02( *;.*)?$");
    let path = json!({"type": "PathPrefix", "value": "/"});
    let cookie = json!({"name": "Set-Cookie", "value": SET});
    let expected = json!([
        {"matches": [{"path": path, "headers": [holders]}], "backendRefs": [{"name": "web-canary", "port": 80, "weight": 1}]},
        {"backendRefs": [
            {"name": "web", "port": 80, "weight": 90},
            {"name": "web-canary", "port": 80, "weight": 10, "filters": [sets(json!([cookie]))]},
            {"name": "old", "port": 80, "weight": 100},
        ]},
        {"matches": [{"path": {"type": "Exact", "value": "/docs"}}], "backendRefs": [{"name": "docs", "port": 80}]},
    ]);
    assert_eq!(*rules_of(&rendered), expected);
    assert_eq!(read(&rendered, &web()), ObservedSplit::Split(keeping(10)));
    assert_eq!(retreat(&rendered, &web()), render(&base, &web(), &Split::stable()));
}

#[test]
fn a_reference_that_sets_headers_already_sets_one_more() {
    let own = json!({"name": "x-served-by", "value": "us"});
    let other = json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x-debug"]}});
    let filters = json!([other, sets(json!([own]))]);
    let base = route(json!([{"backendRefs": [{"name": "web", "port": 80, "filters": filters}]}]));
    let rendered = with_cookie(&render(&base, &web(), &keeping(50)), &web(), SET);
    let refs = &rules_of(&rendered)[1]["backendRefs"];
    assert_eq!(refs[0]["filters"], filters);
    assert_eq!(refs[1]["filters"], json!([other, sets(json!([own, {"name": "Set-Cookie", "value": SET}]))]));
    assert_eq!(retreat(&rendered, &web()), render(&base, &web(), &Split::stable()));
}

#[test]
fn a_cookie_of_another_run_lets_nobody_in() {
    let base = route(json!([{"backendRefs": [{"name": "web", "port": 80}]}]));
    let rendered = render(&base, &web(), &keeping(10));
    let ObservedSplit::Split(shown) = read(&rendered, &web()) else { panic!("foreign") };
    let before = Split { headers: [cookie::matching("stay", "6-00000000")].into(), ..split(10, &[]) };
    assert!(!shown.within(&before) && !before.within(&shown));
}
