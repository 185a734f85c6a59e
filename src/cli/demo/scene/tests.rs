use super::*;
use crate::cli::tests::{failed_with_revert, now, reverting, soaking, waiting};
use crate::report::view::rollout;
use proptest::prelude::*;

/// Version 2 waits for a person.
pub(crate) fn approval() -> Scene {
    let record = waiting();
    Scene {
        chapter: "Ana pushes version 2.".to_owned(),
        sentence: sentence(&record.state.phase, 0),
        seconds: 7,
        tempo: Tempo::Times(3),
        view: Some(rollout(&record, now())),
        weight: Some(0),
        commits: [(1, "new → first sight"), (3, "steady (initialized) → waiting for prepare")]
            .map(|(at, text)| (at, format!("shop/podinfo: {text}")))
            .into(),
        asks: Some(Ask {
            request: "tidegate/world/propose/shop/podinfo/1-4ee471b9-tenth".to_owned(),
            command: "tidegate approve shop/podinfo --repo /tmp/tidegate-demo-1234-0/fleet.git".to_owned(),
        }),
        over: false,
    }
}

/// A tenth of the requests goes to it.
pub(crate) fn tenth() -> Scene {
    let record = soaking();
    let mut scene = Scene { asks: None, seconds: 69, weight: Some(10), ..approval() };
    scene.sentence = sentence(&record.state.phase, 10);
    scene.view = Some(rollout(&record, now()));
    let step = |n: i64| (60 + n, format!("shop/podinfo: step {n}"));
    scene.commits.extend((0..10).map(step));
    scene
}

fn picture(scene: &Scene, width: usize, height: usize) -> String {
    scene.draw(width, height, Ink::Plain).join("\n")
}

#[test]
fn a_terminal_shows_where_it_stands_and_what_to_press() {
    insta::assert_snapshot!("approval", picture(&approval(), 80, 24));
    insta::assert_snapshot!("tenth", picture(&tenth(), 80, 24));
    insta::assert_snapshot!("tenth_small", picture(&tenth(), 40, 12));
    let record = reverting();
    let sentence = sentence(&record.state.phase, 10);
    let back = Scene { view: Some(rollout(&record, now())), sentence, weight: Some(0), ..tenth() };
    insta::assert_snapshot!("back", picture(&back, 80, 24));
    let record = failed_with_revert();
    let sentence = super::sentence(&record.state.phase, 0);
    let over = Scene { view: Some(rollout(&record, now())), over: true, tempo: Tempo::Paused, sentence, ..back };
    insta::assert_snapshot!("over", picture(&over, 80, 24));
    insta::assert_snapshot!("nothing_yet", picture(&Scene { tempo: Tempo::Max, ..Scene::default() }, 80, 24));
}

#[test]
fn a_long_command_is_shown_whole() {
    let mut scene = approval();
    let command = "./target/release/tidegate approve shop/podinfo --repo '/tmp/a b/fleet.git'";
    scene.asks.iter_mut().for_each(|ask| command.clone_into(&mut ask.command));
    let shown = |width| picture(&scene, width, 24);
    assert!(shown(80).contains(command), "{}", shown(80));
    let two = "\n./target/release/tidegate approve shop/podinfo \\\n  --repo '/tmp/a b/fleet.git'\n";
    assert!(shown(70).contains(two), "{}", shown(70));
}

#[test]
fn colour_changes_nothing_but_colour() {
    for scene in [approval(), tenth()] {
        let painted = scene.draw(80, 24, Ink::Colour).join("\n");
        assert_ne!(painted, picture(&scene, 80, 24));
        assert_eq!(anstream::adapter::strip_str(&painted).to_string(), picture(&scene, 80, 24));
    }
}

#[test]
fn shares_show_that_something_began() {
    let shown = |weight| shares(weight, 20).concat();
    assert_eq!(shown(0), "████████████████████100 % stable, 0 % new");
    assert_eq!(shown(1), "███████████████████░99 % stable, 1 % new");
    assert_eq!(shown(10), "██████████████████░░90 % stable, 10 % new");
    assert_eq!(shown(100), "░░░░░░░░░░░░░░░░░░░░0 % stable, 100 % new");
}

proptest! {
    #[test]
    fn no_picture_leaves_its_terminal(width in 0_usize..120, height in 0_usize..40, weight in 0_u8..=100) {
        for scene in [Scene::default(), approval(), tenth()] {
            let lines = Scene { weight: Some(weight), ..scene }.draw(width, height, Ink::Plain);
            prop_assert_eq!(lines.len(), height);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            // Whoever sees one line sees how to leave.
            prop_assert!(height == 0 || width < 44 || lines[height - 1].contains("q leave"));
        }
    }
}
