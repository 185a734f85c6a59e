use super::*;
use crate::manifest::fleet;
use proptest::prelude::*;

/// One cluster before all, then `rest` others.
fn waves(rest: usize, first: &str, then: &str) -> Waves {
    let name = |i: usize| format!("c-{i:03}");
    let clusters: String = (0..=rest).map(|i| format!("    {}: {{instance: {0}, uid: u-{i}}}\n", name(i))).collect();
    let text = format!(
        "apiVersion: tidegate.io/v1alpha1\nkind: Fleet\nspec:\n  clusters:\n{clusters}  waves:\n  \
         - {{name: first, clusters: {{names: [c-000]}}{first}}}\n  - {{name: rest, clusters: {{selector: {{}}}}{then}}}\n"
    );
    let fleet = fleet::parse(&fleet::FILE.parse().unwrap(), text.as_bytes()).unwrap();
    let clusters = fleet.clusters.keys().cloned().collect();
    Waves { fleet: Arc::new(fleet), clusters, wants: BTreeMap::new(), peers: BTreeMap::new() }
}

fn cluster(i: usize) -> ClusterName {
    format!("c-{i:03}").parse().unwrap()
}

fn revision(of: char) -> Revision {
    format!("v1:sha256:{}", of.to_string().repeat(64)).parse().unwrap()
}

/// The version that comes.
fn new() -> Revision {
    revision('b')
}

fn peer(promoted: char) -> Peer {
    Peer { promoted: Some(revision(promoted)), run: None, refused: BTreeSet::new(), phase: "Steady".to_owned() }
}

impl Waves {
    fn has(mut self, i: usize, peer: Peer) -> Self {
        self.peers.insert(cluster(i), Ok(Some(peer)));
        self
    }

    fn at(&self, i: usize) -> WaveTurn {
        self.turn(&cluster(i), &new(), &new())
    }
}

/// It may begin once the waves before have had it for so many seconds.
fn next(soak: u64) -> WaveTurn {
    WaveTurn::Next { soak: Span::from_secs(soak), first: None }
}

fn failed() -> Peer {
    Peer { refused: [new()].into(), phase: "Failed".to_owned(), ..peer('a') }
}

#[test]
fn f_11_a_version_comes_once_the_wave_before_has_it() {
    let fleet = waves(2, ", soak: 1h", "");
    assert_eq!(fleet.at(0), next(0));
    let waits = |fleet: &Waves, words: &str| match fleet.at(1) {
        WaveTurn::Waits(why) => assert!(why.contains(words), "{why}"),
        turn @ (WaveTurn::Next { .. } | WaveTurn::Failed(_)) => panic!("{turn:?} instead of {words}"),
    };
    waits(&fleet, "first: c-000 (nobody has looked there yet)");
    let mut dark = fleet.clone();
    dark.peers.insert(cluster(0), Err("its branch is gone".to_owned()));
    waits(&dark, "c-000 (its branch is gone)");
    dark.peers.insert(cluster(0), Ok(None));
    waits(&dark, "no record");
    waits(&fleet.clone().has(0, peer('a')), "the wave first is first");
    // One that is still on its way has not got it, whatever it has promoted already.
    let open = Peer { run: Some(new()), ..peer('b') };
    waits(&fleet.clone().has(0, open), "the wave first is first");
    let done = fleet.has(0, peer('b'));
    assert_eq!(done.at(1), next(3_600));
    // Within the wave one after the other, by name.
    assert!(
        matches!(done.at(2), WaveTurn::Next { first: Some(why), .. } if why.contains("rest is first: c-001 (nobody"))
    );
    let newer = Peer { run: Some(revision('c')), ..peer('b') };
    assert_eq!(done.has(1, newer).at(2), next(3_600));
}

#[test]
fn f_7_what_failed_in_one_cluster_goes_to_no_other() {
    let fleet = waves(3, "", "").has(0, failed());
    for i in 1..=3 {
        assert!(matches!(fleet.at(i), WaveTurn::Failed(why) if why.contains("wave first: c-000 (Failed)")), "{i}");
    }
    let later = waves(3, "", ", maxUpdating: 3").has(0, peer('b')).has(2, failed());
    assert!(matches!(later.at(3), WaveTurn::Failed(_)));
    assert!(matches!(later.at(1), WaveTurn::Failed(_)));
    // As many as are tolerated, and those that are silent with them.
    let mut tolerated = waves(3, "", ", tolerate: 1");
    Arc::make_mut(&mut tolerated.fleet).waves[0].said.tolerate = 1;
    assert_eq!(tolerated.clone().has(0, failed()).at(1), next(0));
    assert_eq!(tolerated.at(1), next(0));
    assert_eq!(tolerated.clone().has(1, failed()).at(2), next(0));
    assert!(matches!(tolerated.has(1, failed()).has(2, failed()).at(3), WaveTurn::Failed(_)));
}

/// Requirement F-11: where clusters have files of their own each has its own version of what main says.
#[test]
fn f_11_a_cluster_with_files_of_its_own_has_its_own_revision() {
    let mut fleet = waves(1, "", "").has(0, peer('c'));
    assert!(matches!(fleet.at(1), WaveTurn::Waits(_)));
    fleet.wants.insert(cluster(0), Some(revision('c')));
    assert_eq!(fleet.at(1), next(0));
    fleet.wants.insert(cluster(0), None);
    assert!(matches!(fleet.at(1), WaveTurn::Waits(why) if why.contains("files on main have errors")));
    // What a run took along is what the others have.
    let along = waves(1, "", "").has(0, peer('b'));
    assert_eq!(along.turn(&cluster(1), &new(), &revision('a')), next(0));
    let refused = waves(1, "", "").has(0, Peer { refused: [revision('a')].into(), ..peer('d') });
    assert!(matches!(refused.turn(&cluster(1), &new(), &revision('a')), WaveTurn::Failed(_)));
}

#[test]
fn one_cluster_waits_for_nobody() {
    let mut alone = waves(2, "", "");
    alone.clusters = [cluster(2)].into();
    assert_eq!(alone.at(2), next(0));
    alone.clusters.insert(cluster(1));
    assert!(matches!(alone.at(2), WaveTurn::Next { first: Some(_), .. }));
    assert_eq!(alone.at(1), next(0));
}

proptest! {
    /// Requirement F-11: whatever each instance has seen of the others by then, no more of a wave are under way than may be, nobody begins
    /// before the wave before is through, and in the end all have it.
    #[test]
    fn f_11_however_late_each_sees_the_others_no_more_are_under_way_than_may_be(
        rest in 1..8_usize, at_a_time in 1..4_usize, order in prop::collection::vec((0..9_usize, any::<bool>(), any::<bool>()), 400),
    ) {
        let base = waves(rest, "", &format!(", maxUpdating: {at_a_time}"));
        let mut truth = vec![peer('a'); rest + 1];
        let mut seen = vec![truth.clone(); rest + 1];
        for (who, looks, ends) in order {
            let who = who % (rest + 1);
            if looks {
                seen[who] = truth.clone();
            }
            match (truth[who].run.is_some(), ends) {
                (true, true) => truth[who] = peer('b'),
                (false, _) if truth[who].promoted != Some(new()) => {
                    let all = seen[who].iter().enumerate().filter(|(i, _)| *i != who);
                    let view = all.fold(base.clone(), |waves, (i, peer)| waves.has(i, peer.clone()));
                    if let WaveTurn::Next { first: None, .. } = view.at(who) {
                        truth[who].run = Some(new());
                    }
                }
                _ => {}
            }
            let under_way = truth[1..].iter().filter(|peer| peer.run.is_some()).count();
            prop_assert!(under_way <= at_a_time);
            let begun = truth[1..].iter().any(|peer| peer.run.is_some() || peer.promoted == Some(new()));
            prop_assert!(!begun || truth[0].promoted == Some(new()) && truth[0].run.is_none());
        }
        // Who looks goes on until all have it.
        for _ in 0..=2 * rest + 2 {
            for who in 0..=rest {
                let all = truth.iter().enumerate().filter(|(i, _)| *i != who);
                let view = all.fold(base.clone(), |waves, (i, peer)| waves.has(i, peer.clone()));
                if truth[who].run.is_some() || matches!(view.at(who), WaveTurn::Next { first: None, .. }) {
                    truth[who] = peer('b');
                }
            }
        }
        prop_assert!(truth.iter().all(|peer| peer.promoted == Some(new())));
    }
}

/// Requirement F-11: who says nothing holds up its own wave no longer than as many may be passed by, and no failed one counts twice.
#[test]
fn f_11_who_says_nothing_is_passed_by_where_it_may_be() {
    let fleet = waves(3, "", ", tolerate: 1").has(0, peer('b'));
    assert_eq!(fleet.at(1), next(0));
    assert_eq!(fleet.at(2), next(0), "c-001 says nothing");
    assert!(matches!(fleet.at(3), WaveTurn::Next { first: Some(_), .. }), "two say nothing");
    let slow = fleet.clone().has(1, peer('a'));
    assert!(matches!(slow.at(2), WaveTurn::Next { first: Some(_), .. }), "who is on its way is waited for");
    let failed = fleet.has(1, failed());
    assert_eq!(failed.at(2), next(0));
    assert!(matches!(failed.at(3), WaveTurn::Next { first: Some(_), .. }), "one failed already");
}
