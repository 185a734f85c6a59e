//! The search for a world in which something is wrong, and the shortest list of faults that shows it.

use crate::convergence::faults::{Fault, faults};
use crate::convergence::run::{Ended, run};
use crate::convergence::story::Story;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidegate::rules::Rule;

/// How many worlds a run of all tests looks at.
const WORLDS: u64 = 208;
/// How many lists of faults each story meets.
const LISTS: u64 = 16;

/// A world that shows something wrong.
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) story: Story,
    pub(crate) faults: Vec<Fault>,
    pub(crate) ended: Ended,
}

/// The story of a seed: some seeds share it, so that the run without faults, which all are compared with, is made once.
pub(crate) fn story_of(seed: u64) -> (u64, Story) {
    let seed = seed / LISTS;
    (seed, Story::new(seed))
}

/// Runs a story with faults, and compares its end with that of the run without.
fn world(seed: u64, story: &Story, faults: &[Fault], calm: &Ended, broken: Option<Rule>) -> Ended {
    let mut ended = run(seed, story, faults, broken);
    if ended.found.is_none() && ended.standing != calm.standing {
        ended.found = Some(format!(
            "the end is the same as without faults: {:#?}\nwithout: {:#?}",
            ended.standing, calm.standing
        ));
    }
    ended
}

/// The world of a seed, if something is wrong with it.
pub(crate) fn try_seed(seed: u64, calm: &mut BTreeMap<u64, Ended>, broken: Option<Rule>) -> Option<Failure> {
    let (of, story) = story_of(seed);
    if broken.is_some() {
        // What a broken rule breaks is seen on the way.
        let faults = faults(seed, &story);
        let ended = run(seed, &story, &faults, broken);
        return ended.found.is_some().then_some(Failure { seed, story, faults, ended });
    }
    let calm = calm.entry(of).or_insert_with(|| run(seed, &story, &[], broken)).clone();
    if calm.found.is_some() {
        return Some(Failure { seed, story, faults: Vec::new(), ended: calm });
    }
    let faults = faults(seed, &story);
    let ended = world(seed, &story, &faults, &calm, broken);
    ended.found.is_some().then_some(Failure { seed, story, faults, ended })
}

/// The same failure, or another, with as few faults as it takes: halves are left out, then ever smaller parts.
fn shrunk(failure: Failure, broken: Option<Rule>) -> Failure {
    let Failure { seed, story, mut faults, mut ended } = failure;
    let calm = run(seed, &story, &[], broken);
    let mut part = faults.len().div_ceil(2);
    while part > 0 && !faults.is_empty() {
        let mut at = 0;
        while at < faults.len() {
            let mut fewer = faults.clone();
            fewer.drain(at..(at + part).min(faults.len()));
            let tried = world(seed, &story, &fewer, &calm, broken);
            if tried.found.is_some() {
                (faults, ended) = (fewer, tried);
            } else {
                at += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    Failure { seed, story, faults, ended }
}

impl Failure {
    /// The world as a story that people read, and how to see it again.
    pub(crate) fn told(&self) -> String {
        let Self { seed, story, faults, ended } = self;
        let mut text = format!("# world {seed}\n\n{story}\n");
        for fault in faults {
            writeln!(text, "! {fault}").unwrap();
        }
        if faults.is_empty() {
            text.push_str("Nothing goes wrong from outside.\n");
        }
        let found = ended.found.as_deref().unwrap_or("nothing is wrong");
        writeln!(text, "\n{found}\n\nThe last that was recorded and written:").unwrap();
        for line in ended.transcript.iter().rev().take(25).rev() {
            writeln!(text, "  {line}").unwrap();
        }
        write!(text, "\nAgain: TIDEGATE_SEED={seed} cargo test --test worlds convergence -- --nocapture").unwrap();
        text
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number")))
}

#[test]
fn x_13_random_worlds_keep_the_promise_and_come_to_the_same_end() {
    if let Some(seed) = setting("TIDEGATE_SEED") {
        let tracing = tracing_subscriber::EnvFilter::from_env("TIDEGATE_WORLD_LOG");
        tracing_subscriber::fmt().with_env_filter(tracing).with_test_writer().try_init().ok();
        match try_seed(seed, &mut BTreeMap::new(), None) {
            Some(failure) => panic!("{}", shrunk(failure, None).told()),
            None => return,
        }
    }
    let worlds = setting("TIDEGATE_WORLDS").unwrap_or(WORLDS);
    let first = setting("TIDEGATE_FIRST").unwrap_or(0);
    let (next, failures) = (AtomicU64::new(first / LISTS), Mutex::new(Vec::new()));
    let (began, seconds) = (Instant::now(), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let story = next.fetch_add(1, Ordering::Relaxed);
                    if story * LISTS >= first + worlds || failures.lock().unwrap().len() >= 3 {
                        return;
                    }
                    let mut calm = BTreeMap::new();
                    for seed in story * LISTS..((story + 1) * LISTS).min(first + worlds) {
                        if let Some(failure) = try_seed(seed, &mut calm, None) {
                            println!("world {seed}: {}", failure.ended.found.as_deref().unwrap_or_default());
                            failures.lock().unwrap().push(failure);
                            break;
                        }
                    }
                    seconds.fetch_add(calm.values().map(|ended| ended.lasted.unsigned_abs()).sum(), Ordering::Relaxed);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    println!("worlds {first} to {}: {} s", first + worlds, began.elapsed().as_secs());
    let told: Vec<String> = failures.into_iter().map(|failure| shrunk(failure, None).told()).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}

#[test]
fn the_same_seed_makes_the_same_run() {
    for seed in [3, 11, 40] {
        let (_, story) = story_of(seed);
        let faults = faults(seed, &story);
        let (first, second) = (run(seed, &story, &faults, None), run(seed, &story, &faults, None));
        let differs = first.transcript.iter().zip(&second.transcript).position(|(a, b)| a != b);
        assert_eq!(differs.map(|n| (&first.transcript[n], &second.transcript[n])), None, "seed {seed}");
        assert_eq!(first.transcript.len(), second.transcript.len(), "seed {seed}");
    }
}
