//! The Lease, against a server that answers what it is told to.

use super::super::testing::Fake;
use super::*;

const PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/tidegate/leases/tidegate-a";
const TIP: &str = "0123456789012345678901234567890123456789";

const EARLIER: &str = "2026-03-01T11:00:00Z/2026-03-01T11:00:07Z";
const LATER: &str = "2026-03-01T11:30:00Z/2026-03-01T11:30:03Z";

fn wall(seconds: i64) -> Time {
    "2026-03-01T12:00:00Z".parse::<Time>().unwrap() + chrono::Duration::seconds(seconds)
}

fn stored(holder: &str, epoch: u64, version: &str) -> Value {
    json!({
        "metadata": {"name": "tidegate-a", "resourceVersion": version, "labels": {"kept": "yes"},
                     "annotations": {ANCHOR: TIP, GAPS: EARLIER}},
        "spec": {"holderIdentity": holder, "leaseTransitions": epoch, "leaseDurationSeconds": 15,
                 "renewTime": "2026-03-01T12:00:00.000000Z"},
    })
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    (code, json!({"code": code, "reason": reason, "details": {"kind": "leases", "name": "tidegate-a"}}))
}

async fn contender(fake: &Fake) -> Lease {
    Lease::new(fake.cluster().await, "pod-1", Timing::default())
}

#[tokio::test]
async fn a_missing_lease_is_made_above_every_known_epoch_then_renewed_with_one_request() {
    let fake =
        Fake::answering([refusal(404, "NotFound"), (201, stored("pod-1", 42, "1")), (200, stored("pod-1", 42, "2"))]);
    let mut lease = contender(&fake).await;
    let start = Instant::now();
    let notes = LeaseAnnotations { anchor: Some(TIP.parse().unwrap()), gaps: None, floor: 41 };
    let ElectionTurn::Leading { held, inherited } = lease.turn(&notes, start, wall(0)).await else { panic!() };
    assert_eq!(inherited, Some(Inherited { anchor: Some(TIP.parse().unwrap()), gaps: vec![] }));
    assert_eq!(held.epoch(), 42);
    assert!(held.still(start + Duration::from_secs(9)) && !held.still(start + Duration::from_secs(10)));

    let notes = LeaseAnnotations { gaps: Some(unobserved::parse(LATER)), ..notes };
    let turn = lease.turn(&notes, start + Duration::from_secs(5), wall(5)).await;
    assert!(matches!(turn, ElectionTurn::Leading { inherited: None, .. }), "{turn:?}");
    let asked = fake.asked();
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[1].body["spec"]["leaseTransitions"], 42);
    assert_eq!(asked[1].body["metadata"]["annotations"][ANCHOR], TIP);
    assert_eq!(asked[2].line, format!("PUT {PATH}?fieldManager=tidegate-a"));
    let metadata = json!({"name": "tidegate-a", "resourceVersion": "1", "labels": {"kept": "yes"},
                          "annotations": {ANCHOR: TIP, GAPS: format!("{EARLIER} {LATER}")}});
    assert_eq!(asked[2].body["metadata"], metadata);
    assert_eq!(asked[2].body["spec"]["renewTime"], "2026-03-01T12:00:05.000000Z");
}

#[tokio::test]
async fn a_take_over_waits_for_the_whole_duration_and_keeps_what_it_finds() {
    let other = || (200, stored("pod-0", 3, "5"));
    let fake = Fake::answering([other(), other(), (200, stored("pod-1", 4, "6"))]);
    let mut lease = contender(&fake).await;
    let start = Instant::now();
    let turn = lease.turn(&LeaseAnnotations::default(), start, wall(100)).await;
    let free_at = start + Duration::from_secs(15);
    assert_eq!(turn, ElectionTurn::Standby { holder: Some("pod-0".into()), free_at });
    let turn = lease.turn(&LeaseAnnotations::default(), free_at, wall(115)).await;
    let ElectionTurn::Leading { held, inherited } = turn else { panic!("{turn:?}") };
    assert_eq!(held.epoch(), 4);
    let gaps = format!("{EARLIER} 2026-03-01T12:00:00Z/2026-03-01T12:01:55Z");
    assert_eq!(inherited, Some(Inherited { anchor: Some(TIP.parse().unwrap()), gaps: unobserved::parse(&gaps) }));
    let written = &fake.asked()[2].body;
    assert_eq!(written["metadata"]["annotations"], json!({ANCHOR: TIP, GAPS: gaps}));
    assert_eq!(written["metadata"]["resourceVersion"], "5");
}

#[tokio::test]
async fn x_14_what_was_to_be_noted_before_does_not_replace_what_was_inherited() {
    let other = || (200, stored("pod-0", 3, "5"));
    let mine = || (200, stored("pod-1", 4, "6"));
    let fake = Fake::answering([other(), other(), mine(), mine(), mine()]);
    let mut lease = contender(&fake).await;
    let (start, old) = (Instant::now(), LeaseAnnotations { gaps: Some(Vec::new()), ..LeaseAnnotations::default() });
    assert!(matches!(lease.turn(&old, start, wall(0)).await, ElectionTurn::Standby { .. }));
    let taken = start + Duration::from_secs(15);
    assert!(matches!(lease.turn(&old, taken, wall(115)).await, ElectionTurn::Leading { inherited: Some(_), .. }));
    assert!(matches!(lease.turn(&old, taken, wall(120)).await, ElectionTurn::Leading { inherited: None, .. }));
    assert_eq!(fake.asked()[3].body["metadata"]["annotations"][GAPS], EARLIER);
    let new = LeaseAnnotations { gaps: Some(unobserved::parse(LATER)), ..LeaseAnnotations::default() };
    assert!(matches!(lease.turn(&new, taken, wall(121)).await, ElectionTurn::Leading { .. }));
    assert_eq!(fake.asked()[4].body["metadata"]["annotations"][GAPS], format!("{EARLIER} {LATER}"));
}

#[tokio::test]
async fn x_14_what_a_deleted_lease_said_is_not_forgotten() {
    let fake =
        Fake::answering([(200, stored("pod-0", 3, "5")), refusal(404, "NotFound"), (201, stored("pod-1", 4, "6"))]);
    let mut lease = contender(&fake).await;
    let start = Instant::now();
    assert!(matches!(lease.turn(&LeaseAnnotations::default(), start, wall(0)).await, ElectionTurn::Standby { .. }));
    let turn = lease.turn(&LeaseAnnotations::default(), start + Duration::from_secs(2), wall(2)).await;
    let ElectionTurn::Leading { held, inherited: Some(inherited) } = turn else { panic!("{turn:?}") };
    let gaps = format!("{EARLIER} 2026-03-01T12:00:00Z/2026-03-01T12:00:02Z");
    assert_eq!((held.epoch(), unobserved::print(&inherited.gaps)), (4, gaps.clone()));
    let written = &fake.asked()[2].body;
    assert_eq!(written["metadata"]["annotations"], json!({ANCHOR: TIP, GAPS: gaps}));
    assert_eq!(written["spec"]["leaseTransitions"], 4);
}

#[tokio::test]
async fn a_lost_race_and_a_lost_lease_end_leading_at_once() {
    let fake = Fake::answering([
        (200, stored("", 3, "5")),
        refusal(409, "Conflict"),
        (200, stored("", 3, "6")),
        (200, stored("pod-1", 4, "7")),
        refusal(409, "Conflict"),
        (200, stored("pod-2", 5, "9")),
    ]);
    let mut lease = contender(&fake).await;
    let now = Instant::now();
    assert!(matches!(lease.turn(&LeaseAnnotations::default(), now, wall(0)).await, ElectionTurn::Standby { .. }));
    assert!(matches!(lease.turn(&LeaseAnnotations::default(), now, wall(0)).await, ElectionTurn::Leading { .. }));
    let turn = lease.turn(&LeaseAnnotations::default(), now, wall(5)).await;
    assert!(matches!(&turn, ElectionTurn::Standby { holder: Some(holder), .. } if holder == "pod-2"), "{turn:?}");
}

#[tokio::test]
async fn an_absent_api_server_is_survived_and_the_gap_is_counted() {
    let lost = || (503, json!("away"));
    let fake = Fake::answering([
        (200, stored("", 3, "5")),
        (200, stored("pod-1", 4, "6")),
        lost(),
        (200, stored("pod-1", 4, "6")),
        (200, stored("pod-1", 4, "7")),
    ]);
    let mut lease = contender(&fake).await;
    let now = Instant::now();
    assert!(matches!(lease.turn(&LeaseAnnotations::default(), now, wall(0)).await, ElectionTurn::Leading { .. }));
    let notes = LeaseAnnotations { gaps: Some(unobserved::parse(LATER)), ..LeaseAnnotations::default() };
    assert!(matches!(lease.turn(&notes, now, wall(5)).await, ElectionTurn::Unknown { .. }));
    let turn = lease.turn(&notes, now + Duration::from_secs(60), wall(60)).await;
    let ElectionTurn::Leading { held, inherited: Some(inherited) } = turn else { panic!("{turn:?}") };
    let gaps = format!("{EARLIER} {LATER} 2026-03-01T12:00:00Z/2026-03-01T12:01:00Z");
    assert_eq!((held.epoch(), unobserved::print(&inherited.gaps)), (4, gaps));
}

#[tokio::test]
async fn attack_52_a_release_frees_it_and_nonsense_does_not_stop_it() {
    let fake = Fake::answering([(200, json!({"metadata": "x", "spec": []})), (200, json!("y")), (200, json!({}))]);
    let mut lease = contender(&fake).await;
    assert!(matches!(
        lease.turn(&LeaseAnnotations::default(), Instant::now(), wall(0)).await,
        ElectionTurn::Leading { .. }
    ));
    lease.release(wall(3)).await;
    let asked = fake.asked();
    assert_eq!(asked[2].body["spec"]["holderIdentity"], "");
    lease.release(wall(4)).await;
    assert_eq!(fake.asked().len(), 3);
}
