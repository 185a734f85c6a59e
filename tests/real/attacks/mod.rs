//! The table of the Git host, of signatures and credentials, of what listens, and of what is large (attacks 15, 16, 22, 68 to 98, 101 to
//! 104, 113): each input is brought to the binary that is shipped, in a cluster in a process and beside a stand-in for GitLab. What it comes
//! to is said in the row; what holds of all of them is looked at after each: see [`watched`].

mod api;
mod heard;
mod large;
mod others;
mod reviews;
mod signed;
mod watched;
mod world;

use crate::support::sshd::Sshd;
use futures::future::BoxFuture;
use world::Story;

/// What is said of an input in the end.
type Told<'a> = BoxFuture<'a, String>;

/// An input, and what it comes to.
struct Row {
    number: u8,
    input: &'static str,
    /// A part of the condition, or of the answer.
    comes_to: &'static str,
    act: fn(&mut Story) -> Told<'_>,
}

const fn row(number: u8, input: &'static str, comes_to: &'static str, act: fn(&mut Story) -> Told<'_>) -> Row {
    Row { number, input, comes_to, act }
}

/// Rows that are played one after the other in a world.
const CHAPTERS: [&[Row]; 9] = [
    reviews::ROWS,
    reviews::ANSWERED,
    signed::ROWS,
    heard::ROWS,
    others::BEHIND_SSH,
    others::RECORDED,
    others::PAUSED,
    others::EXTREME,
    large::ROWS,
];

/// Plays the rows, and panics with all that is wrong.
#[expect(clippy::print_stdout, reason = "the table, with its count, is for people to read")]
async fn play(story: &mut Story, rows: &[Row]) {
    let mut failed = Vec::new();
    // Who tells of no connection and of no file would tell of no wrong one either.
    let (seen, api) = (story.seen(), format!("connect {}", story.api.address));
    assert!(seen.contains(&api) && seen.iter().any(|line| line.starts_with("open ") && line.ends_with("/one.yaml")));
    for Row { number, input, comes_to, act } in rows {
        story.mark();
        let told = act(story).await;
        let before = story.marked();
        let mut cost = before.cost(story).await;
        if !told.contains(comes_to) {
            cost.wrong.push(format!("it came to {told:?}"));
        }
        let (dialled, grown) = (cost.dialled.len(), cost.grown >> 10);
        let holds = if cost.wrong.is_empty() { "holds" } else { "does not hold" };
        println!(
            "attack {number:>2} {holds}: {input}: {comes_to:?}; dialled {dialled}, opened {}, +{grown} KiB",
            cost.opened
        );
        cost.wrong.iter().for_each(|wrong| println!("    {wrong}"));
        failed.extend(cost.wrong.into_iter().map(|wrong| format!("attack {number}, {input}: {wrong}")));
    }
    let all = CHAPTERS.into_iter().flatten().count();
    println!("{} rows played of {all} in the table; {} complaints", rows.len(), failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_on_approvals_come_to_what_the_table_says() {
    let mut story = reviews::begin().await;
    play(&mut story, reviews::ROWS).await;
    reviews::end(&mut story, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_by_what_a_host_answers_come_to_what_the_table_says() {
    let mut story = reviews::begin().await;
    play(&mut story, reviews::ANSWERED).await;
    reviews::end(&mut story, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_on_signatures_come_to_what_the_table_says() {
    let mut story = signed::begin().await;
    play(&mut story, signed::ROWS).await;
    signed::end(&mut story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_on_what_listens_come_to_what_the_table_says() {
    let mut story = heard::begin().await;
    play(&mut story, heard::ROWS).await;
    heard::end(&mut story).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_in_our_place_come_to_what_the_table_says() {
    let sshd = Sshd::start().await;
    let mut story = others::behind_ssh(&sshd).await;
    play(&mut story, others::BEHIND_SSH).await;
    others::end_behind_ssh(&mut story, &sshd).await;

    let mut story = others::recorded().await;
    play(&mut story, others::RECORDED).await;
    others::end_recorded(&mut story).await;

    play(&mut others::exposed().await, others::PAUSED).await;

    let mut story = reviews::begin().await;
    play(&mut story, others::EXTREME).await;
    reviews::end(&mut story, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_by_what_is_large_come_to_what_the_table_says() {
    let mut story = large::begin().await;
    play(&mut story, large::ROWS).await;
    large::end(&mut story).await;
}
