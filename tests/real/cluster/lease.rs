//! Two contenders for one Lease.

use super::world::World;
use std::time::Duration;
use tidegate::cluster::lease::{ElectionTurn, Inherited, Lease, LeaseAnnotations, Timing};
use tidegate::cluster::unobserved;
use tidegate::record::state::Time;
use tokio::time::Instant;

on_both! {
    one_leads_the_other_takes_over_and_the_first_notices,
    of_many_who_want_a_free_lease_one_gets_it;
}

const EARLIER: &str = "2026-03-01T11:00:00Z/2026-03-01T11:00:04Z";
const TIP: &str = "0123456789012345678901234567890123456789";

fn wall(seconds: i64) -> Time {
    "2026-03-01T12:00:00Z".parse::<Time>().unwrap() + chrono::Duration::seconds(seconds)
}

async fn one_leads_the_other_takes_over_and_the_first_notices(world: World) {
    let contender = |name| Lease::new(world.cluster.clone(), name, Timing::default());
    let (mut first, mut second) = (contender("first"), contender("second"));
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let notes =
        LeaseAnnotations { anchor: Some(TIP.parse().unwrap()), gaps: Some(unobserved::parse(EARLIER)), floor: 0 };
    let none = LeaseAnnotations::default();

    let turn = first.turn(&notes, start, wall(0)).await;
    let ElectionTurn::Leading { held, inherited: Some(found) } = turn else { panic!("{turn:?}") };
    assert_eq!(
        (held.epoch(), found),
        (1, Inherited { anchor: Some(TIP.parse().unwrap()), gaps: unobserved::parse(EARLIER) })
    );
    let turn = first.turn(&notes, at(5), wall(5)).await;
    assert!(matches!(turn, ElectionTurn::Leading { inherited: None, .. }), "{turn:?}");

    // The second has to see one state for the whole duration, whatever the clock on the wall says.
    let waits = ElectionTurn::Standby { holder: Some("first".into()), free_at: at(21) };
    assert_eq!(second.turn(&none, at(6), wall(900)).await, waits);
    assert_eq!(second.turn(&none, at(20), wall(900)).await, waits);
    let turn = second.turn(&none, at(21), wall(65)).await;
    let ElectionTurn::Leading { held: taken, inherited } = turn else { panic!("{turn:?}") };
    assert!(!held.still(at(15)));
    assert_eq!(taken.epoch(), 2);
    let gaps = format!("{EARLIER} 2026-03-01T12:00:05Z/2026-03-01T12:01:05Z");
    assert_eq!(inherited, Some(Inherited { anchor: Some(TIP.parse().unwrap()), gaps: unobserved::parse(&gaps) }));

    let turn = first.turn(&notes, at(22), wall(22)).await;
    assert!(matches!(&turn, ElectionTurn::Standby { holder: Some(holder), .. } if holder == "second"), "{turn:?}");
    second.release(wall(70)).await;
    let turn = first.turn(&none, at(23), wall(75)).await;
    let ElectionTurn::Leading { held, inherited: Some(found) } = turn else { panic!("{turn:?}") };
    let gaps = format!("{EARLIER} 2026-03-01T12:00:05Z/2026-03-01T12:01:05Z 2026-03-01T12:01:10Z/2026-03-01T12:01:15Z");
    assert_eq!((held.epoch(), unobserved::print(&found.gaps)), (3, gaps));
}

async fn of_many_who_want_a_free_lease_one_gets_it(world: World) {
    let now = Instant::now();
    let contend = |number: u8| {
        let mut lease = Lease::new(world.cluster.clone(), &format!("pod-{number}"), Timing::default());
        async move { lease.turn(&LeaseAnnotations::default(), now, wall(0)).await }
    };
    let turns = futures::future::join_all((0..8).map(contend)).await;
    let leading = turns.iter().filter(|turn| matches!(turn, ElectionTurn::Leading { .. })).count();
    let standing_by = turns.iter().filter(|turn| matches!(turn, ElectionTurn::Standby { .. })).count();
    assert_eq!((leading, standing_by), (1, 7), "{turns:?}");
}
