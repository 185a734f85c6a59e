//! The commands of a scenario.

use crate::scenarios::contract;
use crate::scenarios::edits::{self, Main};
use crate::scenarios::hosted;
use crate::scenarios::hosts;
use crate::scenarios::live;
use crate::scenarios::look::look;
use crate::scenarios::names::Names;
use crate::scenarios::person;
use crate::scenarios::script::{Command, Script};
use crate::scenarios::world::{Trouble, World, label};
use std::time::Duration;
use tidegate::git::{CommitSigning, RemoteFault};
use tidegate::manifest::decision;
use tidegate::manifest::duration::Span;
use tidegate::manifest::ids::RolloutId;
use tidegate::manifest::installation::HostKind;
use tidegate::record::state::RolloutState;
use tidegate::world::kube_api::{ApiVerb, Fault};

/// What can stand behind `> `. APP is `web` where it can be left out.
const COMMANDS: &str = "
  push APP VERSION…            to main: VERSION is a tag, and a bad version adds `errors`, `stuck`, `crash` or `image`
  push layers APP VERSION…     the configuration of nodes: VERSION, and `fails` or `kills` with nodes, or `all`
  push versioned APP VERSION…  the same with names of the version's own: APP-vVERSION, but for the route
  edit FILE [KIND] PATH VALUE  sets a field in a file of main; PATH is dotted, or a JSON pointer; VALUE is YAML, `none` removes;
                               more edits behind ` ; `
  add FILE DOCUMENT            adds a document to a file of main, which may be new
  replace FILE OLD => NEW      replaces a text in a file of main
  move APP DIRECTORY           moves an app's files on main
  remove APP, remove FILE      takes an app off main, or a file
  policy PATH VALUE            sets a field of the policy's spec
  approve APP STEP             merges the request to enter STEP
  delete request APP STEP      deletes it unmerged
  spoil request APP STEP       pushes something to it that was not asked
  merge revert APP             merges the request that undoes a run on main
  adopt APP                    writes the decision to take over what is live
  approve deletions APP        merges the request to let objects go
  allow deletions APP          writes the decision to let go what people were asked for last
  skip all APP                 writes the decision to leave out all soaks up to the promotion
  deny|hold|resume|skip|abort APP, retry|rollback APP RUN   writes a decision
  start, kill                  a controller
  wait DURATION
  wait until [APP] PHASE       `Steady`, `Steady(reverted)`, `Progressing(tenth)`, `Failed`, `gone`, …
  wait until [APP] waits REASON
  hand weight N                someone sets the candidate's share
  hand edit|program edit KIND/NAME PATH VALUE   someone, or some program, sets fields; more edits behind ` ; `
  hand delete KIND/NAME        someone deletes an object, by the name that is shown; also one of the controller's own
  hand make KIND/NAME PATH VALUE   someone makes an object with that field
  hand own KIND/NAME KIND/NAME     someone makes the second an owner of the first
  hand apply APP VERSION… [; KIND PATH VALUE]   someone makes the app's objects with kubectl
  pods fail|recover DEPLOYMENT [N]   all of its pods, or so many
  pods evicted DEPLOYMENT      all of its pods, as where their nodes are drained
  gateways gloo|contour NAMESPACE   controllers that start from now on look at what is in that namespace, which is made
  gateway closed|open          its listeners let in no routes of the namespace any more; or again
  scale APP N                  its autoscaler wants so many pods
  nodes N                      the cluster has so many: node-0, node-1, …
  node NODE lost|back          nobody hears of what runs it, and of its pods, any more; or again
  node NODE agent slow|silent|lies|well   what its agent is like from now on
  node NODE label KEY VALUE    it has that label
  pod dies on NODE             that of a DaemonSet
  brake hold|revert|off [KEY]  KEY is `all`, `shop` or `shop.APP`
  gateway refuses|takes        no route any more, and what it did last stays; every route again
  controllers away|back        kube-controller-manager stands still, or goes on
  git away|back
  git slow DURATION, git well  each errand to it takes so long; or none any more
  branch state|main gone|older|rewritten|back|merged   someone deletes it on the host, puts it back by a commit, or to a
                               commit without a past; puts it right; merges its past to what lies there, which stays
  state forgets|remembers APP  someone removes its record from the state branch by a commit, and brings it again
  state forged APP STEP        someone lets the record say that a step was approved
  cluster NAME has|lags|fails APP   what the instance of another cluster records of the version that is under way here
  state newer|older APP        a newer version has written its record, with a phase that we do not know; or not
  host github|gitlab [app]     pull requests are shown there by controllers that start from now on; as a GitHub App
  host away|back, host fails CODE|half|endless|unmodified [once] [PART]   with all that has this in its address
  requests, request APP STEP   all that were opened there; one of them, with what was said below it. A request of
                               people's own is `branch BRANCH` in place of APP STEP, and STEP may be `revert` or `delete`
  status [BRANCH]              how main's tip, or that of a branch, is said to stand
  approve|object|dismiss request APP STEP by NAME   a review of ana, ben, cleo, eve or robot
  merge request APP STEP by NAME [squash|rebase], close|reopen|draft|finish|lock|delete request APP STEP by NAME
  title|text|comment|lead request APP STEP by NAME WORDS   what it says or is told, the branch that it leads to
  forestall request APP STEP by NAME [words|all]   makes the branch by which the next run with the same content will ask
  checks BRANCH                what Apps say of its tip, and at which lines
  tokens, revoke tokens        how many the App was given; those let in no more
  rival request APP STEP by NAME [BASE]   another one from the same branch
  write|rewrite request APP STEP by NAME [words|all|FILE TEXT]   to its branch: the decision in other words, a word for
                               all that is to come, another file; in the place of its last commit
  bypass|smuggle request APP STEP by NAME [words|all|FILE TEXT]   the same to the decisions branch itself, or by a merge
  queue by itself|NAME APP STEP [APP STEP …]   GitHub's merge queue merges a group
  protect|unprotect decisions, rights NAME none|read|write, team NAME [PEOPLE…]
  author NAME                  who commits from now on
  on BRANCH push|edit|replace|add|policy|remove …   the same on a branch of people's own
  offer BRANCH by NAME         a pull request of theirs to main
  sign                         controllers that start from now on have a key, and sign the record
  state adopted|restored       whoever has the key accepts the record as it is, or brings the newest signed one back
  kind away|back KIND          its definition is deleted from the cluster, with all its objects
  webhook good|bad|hold|… [REASON]   what the provider `tester` says from now on
  told                         what the provider `tester` was told since the last time
  api away|back
  api fails CODE [VERB] KIND   403, 409, 429, 500, 503, 504
  live                         the cluster as it is
  record [APP]                 what Git says
  dashboard                    what the state branch shows to people
  files                        what the state branch holds
  field KIND/NAME PATH         a field of a live object, also of one of the controller's own
  pods DEPLOYMENT              its pods, and since when
  served SERVICE               the fewest ready endpoints since it was asked last
  waits                        what each rollout waits on
  settled                      a fresh process finds nothing to do; ends each scenario";

/// How commands begin that change files.
const EDITS: [&str; 7] = ["push ", "edit ", "add ", "policy ", "replace ", "move ", "remove "];

/// No step of a story takes as long.
const PATIENCE: Duration = Duration::from_secs(2 * 3_600);

/// Plays a scenario; what each command shows.
pub(crate) async fn run(script: &Script) -> Vec<String> {
    let mut world = World::new();
    let mut shown: Vec<String> = Vec::new();
    for command in script.commands() {
        match one(&mut world, command).await {
            Ok(text) => shown.push(text),
            Err(why) => {
                script.commands().zip(&shown).for_each(|(command, text)| eprintln!("> {}\n{text}", command.text));
                command.fail(&why);
            }
        }
        world.hosting.iter().for_each(hosts::Host::look);
    }
    if let Some(host) = &world.hosting {
        hosted::no_secret_is_told(host, &world.log);
        if host.kind() == HostKind::Github {
            contract::is_on_the_list(&host.exchanges());
        }
    }
    shown
}

async fn one(world: &mut World, command: Command<'_>) -> Result<String, String> {
    let words: Vec<&str> = command.text.split_whitespace().collect();
    let (branch, text) = match words.as_slice() {
        ["on", branch, _, ..] => (Some(*branch), command.text.splitn(3, ' ').nth(2).unwrap_or_default()),
        _ => (None, command.text),
    };
    if push(world, branch, text).await? == Known::Yes {
        return Ok(String::new());
    }
    let (known, shown) = hosted::command(world, &words)?;
    if known == Known::Yes {
        world.learn().await;
        return Ok(shown);
    }
    match words.as_slice() {
        ["start"] => world.start().await,
        ["kill"] => world.kill(),
        ["gateways", proxy, namespace] => {
            world.stage.api.change(|cluster| live::space(cluster, namespace));
            let gateways = format!("{{{proxy}: {{namespace: {namespace}}}}}");
            world.look_at(serde_yaml::from_str(&gateways).map_err(|error| error.to_string())?);
        }
        ["sign"] => world.stage.sign(CommitSigning::new(person::key(), [])),
        ["wait", "until", what @ ..] => return until(world, what).await,
        ["wait", time] => {
            let time: Span = time.parse().map_err(|error| format!("{error}"))?;
            world.pass(Duration::from_secs(time.as_secs())).await;
            return Ok(world.happened().await + &world.waits());
        }
        ["clock", word @ ("forward" | "back"), time] => {
            let time: Span = time.parse().map_err(|error| format!("{error}"))?;
            world.set_clock(if *word == "back" { -time.delta() } else { time.delta() });
        }
        ["settled"] => return Ok(world.settled().await),
        _ => {
            if let Some(shown) = look(world, &words).await? {
                return Ok(shown);
            }
            match people(world, &words).await? {
                Known::Yes => {}
                Known::No => outside(world, &words)?,
            }
        }
    }
    Ok(String::new())
}

/// Whether a command was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Yes,
    No,
}

/// What people say to a run.
async fn people(world: &mut World, words: &[&str]) -> Result<Known, String> {
    match *words {
        ["approve", "deletions", app] => {
            let request = world.ana.request(&id(app)?, "delete").await?;
            world.stage.merge(&request).await.map_err(|error| error.to_string())?;
        }
        ["allow", "deletions", app] => {
            let record = world.ana.record(&id(app)?).await.ok_or_else(|| format!("there is no record of {app}"))?;
            let asked = record.deletions.asked.as_ref().ok_or("nothing waits for a word to be deleted")?;
            let objects = decision::listed(&asked.objects);
            let objects = objects.iter().map(|object| format!("{{kind: {}, name: {}}}", object.kind, object.name));
            let objects = objects.collect::<Vec<_>>().join(", ");
            let run = record.current();
            let successor = asked.successor.iter().map(|set| format!(", successor: \"{set}\"")).collect::<String>();
            let spec = format!("{{run: \"{run}\", action: delete, objects: [{objects}]{successor}}}");
            world.ana.decide(&id(app)?, run.as_str(), "delete", &spec).await;
        }
        ["approve", app, step] => {
            let request = world.ana.request(&id(app)?, step).await?;
            world.stage.merge(&request).await.map_err(|error| error.to_string())?;
        }
        ["delete", "request", app, step] => {
            let request = world.ana.request(&id(app)?, step).await?;
            world.ana.delete(&request).await;
        }
        ["spoil", "request", app, step] => {
            let request = world.ana.request(&id(app)?, step).await?;
            world.ana.spoil(&request).await;
        }
        ["adopt", app] => {
            let record = world.ana.record(&id(app)?).await.ok_or_else(|| format!("there is no record of {app}"))?;
            let live = record.live_at_first_sight().ok_or("nothing that is live differs")?;
            let spec = format!("{{run: \"0\", action: adopt, live: \"{live}\"}}");
            world.ana.decide(&id(app)?, "0", "adopt", &spec).await;
        }
        ["merge", "revert", app] => {
            let request = world.ana.request(&id(app)?, "revert").await?;
            world.ana.merge(&request).await;
            world.learn().await;
        }
        ["state", "adopted"] => world.ana.vouch(None).await,
        ["state", "restored"] => world.ana.restore().await?,
        ["state", "forged", app, step] => world.ana.forge(&id(app)?, step).await?,
        ["state", word @ ("newer" | "older"), app] => world.ana.renew(&id(app)?, word == "newer").await?,
        ["cluster", cluster, what, app] => world.ana.elsewhere(cluster, &id(app)?, what).await?,
        ["state", "forgets", app] => world.ana.forget(&id(app)?).await?,
        ["state", "remembers", app] => world.ana.remember(&id(app)?).await?,
        ["skip", "all", app] => decide(world, "skip all", app, None).await?,
        [action @ ("deny" | "hold" | "resume" | "skip" | "abort"), app] => decide(world, action, app, None).await?,
        [action @ ("retry" | "rollback"), app, run] => decide(world, action, app, Some(run)).await?,
        _ => return Ok(Known::No),
    }
    Ok(Known::Yes)
}

/// What happens in the cluster, and to what leads to it and to Git.
fn outside(world: &mut World, words: &[&str]) -> Result<(), String> {
    match *words {
        ["git", "away"] if !world.git_is_away => world.move_git(true),
        ["git", "back"] if world.git_is_away => world.move_git(false),
        ["git", "slow", time] => {
            let time: Span = time.parse().map_err(|error| format!("{error}"))?;
            let late = Duration::from_secs(time.as_secs());
            world.stage.judge_git(move |_, _| RemoteFault::Late(late));
        }
        ["git", "well"] => world.stage.judge_git(|_, _| RemoteFault::Pass),
        ["controllers", word @ ("away" | "back")] => world.stage.stop_controllers(word == "away"),
        ["branch", name @ ("state" | "main"), what] => world.host().put(name, what)?,
        ["webhook", verdict, ..] => world.stage.tester.say(verdict, &words[2..].join(" ")),
        ["api", "back"] => world.trouble(Vec::new()),
        ["api", "away"] => world.trouble(vec![Trouble { fault: Fault::Reset, verb: None, kind: None }]),
        ["api", "fails", code, kind] => world.trouble(vec![trouble(code, None, kind)?]),
        ["api", "fails", code, verb, kind] => world.trouble(vec![trouble(code, Some(verb), kind)?]),
        _ => return world.stage.api.change(|cluster| hands(cluster, &world.names, words)),
    }
    Ok(())
}

/// What people do in the cluster.
fn hands(cluster: &mut tidegate::world::kube_api::World, names: &Names, words: &[&str]) -> Result<(), String> {
    match *words {
        ["hand", "weight", weight] => {
            live::weigh(cluster, "web", weight.parse().map_err(|_| format!("{weight} is no number"))?)
        }
        ["hand", "edit", object, _, _, ..] => live::edit(cluster, object, &words[3..].join(" ")),
        ["program", "edit", object, _, _, ..] => live::program(cluster, object, &words[3..].join(" ")),
        ["hand", "make", object, _, _, ..] => live::make(cluster, object, &words[3..].join(" ")),
        ["hand", "delete", object] => live::delete(cluster, names, object),
        ["hand", "own", object, owner] => live::own(cluster, object, owner),
        ["hand", "apply", app, ..] => apply(cluster, app, &words[3..].join(" ")),
        ["gateway", word @ ("refuses" | "takes")] => live::gateway(cluster, word),
        ["pods", word @ ("fail" | "recover"), deployment] => {
            live::pods(cluster, deployment, word == "recover", usize::MAX)
        }
        ["pods", word @ ("fail" | "recover"), deployment, most] => {
            live::pods(cluster, deployment, word == "recover", count(most)?)
        }
        ["pods", "evicted", deployment] => live::evict(cluster, deployment),
        ["gateway", word @ ("closed" | "open")] => live::listeners(cluster, word == "open"),
        ["scale", app, pods] => live::scale(cluster, app, count(pods)?),
        ["nodes", nodes] => live::nodes(cluster, count(nodes)?),
        ["node", node, word @ ("lost" | "back")] => {
            live::node(cluster, node, if word == "lost" { "Unknown" } else { "True" })
        }
        ["node", node, "agent", like] => live::agent(cluster, node, like),
        ["node", node, "label", key, value] => live::label(cluster, node, key, value),
        ["pod", "dies", "on", node] => live::kill(cluster, node),
        ["kind", "away", kind] => {
            cluster.uninstall(live::resource(kind)?);
            Ok(())
        }
        ["kind", "back", kind] => {
            cluster.install(live::resource(kind)?);
            Ok(())
        }
        ["brake", word] => live::brake(cluster, "all", word),
        ["brake", word, key] => live::brake(cluster, key, word),
        _ => Err(format!("there is no such command. The commands are:{COMMANDS}")),
    }
}

/// Someone makes an app's objects with kubectl.
fn apply(cluster: &mut tidegate::world::kube_api::World, app: &str, words: &str) -> Result<(), String> {
    let (version, edits) = words.split_once(" ; ").unwrap_or((words, ""));
    for mut object in edits::manifests(app, version) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        for edit in edits.split(" ; ") {
            if let Some(edit) = edit.strip_prefix(&format!("{kind} ")) {
                edits::set(&mut object, edit)?;
            }
        }
        live::apply(cluster, object)?;
    }
    Ok(())
}

fn count(word: &str) -> Result<usize, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

pub(crate) fn id(app: &str) -> Result<RolloutId, String> {
    format!("shop/{app}").parse().map_err(|error| format!("{error}"))
}

/// Changes main, or a branch of people's own, in one commit, if that is what is said.
async fn push(world: &mut World, branch: Option<&str>, text: &str) -> Result<Known, String> {
    if !EDITS.iter().any(|word| text.starts_with(word)) {
        return Ok(Known::No);
    }
    let mut main = match branch {
        Some(branch) => Main::of(world.ana.branch(branch).await),
        None => Main::of(world.ana.main().await),
    };
    if change(&mut main, text)? == Known::No {
        return Ok(Known::No);
    }
    match branch {
        Some(branch) => {
            world.ana.push_to(branch, main.edits, text).await;
            world.names.learn(&world.ana.branch(branch).await);
        }
        None => {
            world.ana.push(main.edits, text).await;
            world.learn().await;
        }
    }
    Ok(Known::Yes)
}

/// Changes files, if that is what is said.
fn change(main: &mut Main, text: &str) -> Result<Known, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let rest = |n: usize| text.splitn(n + 1, ' ').nth(n).unwrap_or_default();
    match words.as_slice() {
        ["push", "versioned", app, _, ..] => main.version(app, rest(3))?,
        ["push", "layers", app, _, ..] => main.configure(app, rest(3))?,
        ["push", app, _, ..] => main.release(app, rest(2))?,
        ["edit", file, _, _, ..] => rest(2).split(" ; ").try_for_each(|edit| main.edit(file, edit))?,
        ["add", file, _, ..] => main.add(file, rest(2))?,
        ["policy", _, _, ..] => main.edit("tidegate.yaml", &format!("spec.{}", rest(1)))?,
        ["replace", file, ..] => {
            let (old, new) = rest(2).split_once(" => ").ok_or("replace FILE OLD => NEW")?;
            main.replace(file, old, new)?;
        }
        ["move", app, directory] => main.relocate(app, directory)?,
        ["remove", file] if file.contains('.') => main.remove(file)?,
        ["remove", app] => {
            let files = [format!("{app}.rollout.yaml"), format!("{app}.yaml")];
            files.iter().try_for_each(|file| main.remove(file))?;
        }
        _ => return Ok(Known::No),
    }
    Ok(Known::Yes)
}

/// Writes a decision about the open run, else the last; `retry` and `rollback` name a run by its number.
async fn decide(world: &World, action: &str, app: &str, run: Option<&str>) -> Result<(), String> {
    let id = id(app)?;
    let record = world.ana.record(&id).await.ok_or_else(|| format!("there is no record of {app}"))?;
    let known = record.run.iter().map(|run| &run.id);
    let known =
        known.chain(record.last_run.iter().map(|run| &run.id)).chain(record.history.iter().map(|past| &past.run));
    let run = match run {
        None => known.map(ToString::to_string).next().unwrap_or_else(|| "0".to_owned()),
        Some("0") => "0".to_owned(),
        Some(number) => {
            let start = format!("{number}-");
            let found = known.map(ToString::to_string).find(|run| run.starts_with(&start));
            found.ok_or_else(|| format!("there is no run {number}"))?
        }
    };
    let (action, through) = match action {
        "skip all" => ("skip", ", through: promotion"),
        action => (action, ""),
    };
    let step = record.phase.position().filter(|_| action == "skip");
    let step = step.map(|stop| format!(", step: {}{through}", stop.step));
    let spec = format!("{{run: \"{run}\", action: {action}{}}}", step.unwrap_or_default());
    world.ana.decide(&id, &run, action, &spec).await;
    Ok(())
}

fn trouble(code: &str, verb: Option<&str>, kind: &str) -> Result<Trouble, String> {
    let fault = match code {
        "403" => Fault::Forbidden,
        "409" => Fault::Conflict,
        "429" => Fault::TooManyRequests,
        "500" => Fault::Internal,
        "503" => Fault::Unavailable,
        "504" => Fault::Timeout,
        _ => return Err(format!("no request fails with {code}")),
    };
    const VERBS: [ApiVerb; 7] = [
        ApiVerb::Get,
        ApiVerb::List,
        ApiVerb::Watch,
        ApiVerb::Create,
        ApiVerb::Update,
        ApiVerb::Patch,
        ApiVerb::Delete,
    ];
    let named = |word: &str| VERBS.into_iter().find(|verb| verb.as_str() == word);
    let verb = verb.map(|word| named(word).ok_or_else(|| format!("there is no verb {word}"))).transpose()?;
    Ok(Trouble { fault, verb, kind: Some(live::resource(kind)?.kind) })
}

/// Waits until a rollout stands somewhere, or waits on something.
async fn until(world: &mut World, words: &[&str]) -> Result<String, String> {
    let (app, reason, wanted) = match *words {
        [phase] => ("web", None, phase),
        ["waits", reason] => ("web", Some(reason), ""),
        [app, "waits", reason] => (app, Some(reason), ""),
        [app, phase] => (app, None, phase),
        _ => return Err("wait until [APP] PHASE, or: wait until [APP] waits REASON".to_owned()),
    };
    let id = id(app)?;
    // What was pushed just now is seen first.
    world.moment().await;
    let deadline = world.stage.clock.instant() + PATIENCE;
    loop {
        let met = match reason {
            Some(reason) => {
                let waits = world.log.waits();
                waits.get(&id.to_string()).is_some_and(|waits| waits.iter().any(|wait| wait.reason == reason))
            }
            None => stands(world.ana.record(&id).await.as_ref(), wanted),
        };
        let left = deadline.saturating_duration_since(world.stage.clock.instant());
        if !met && world.listen(left).await {
            continue;
        }
        world.moment().await;
        let shown = world.happened().await + &world.waits();
        return if met { Ok(shown) } else { Err(format!("it never came to that:\n{shown}")) };
    }
}

/// Whether a record stands at that phase.
fn stands(record: Option<&RolloutState>, wanted: &str) -> bool {
    let Some(record) = record else { return wanted == "gone" };
    let label = label(&record.phase);
    label == wanted || label.starts_with(&format!("{wanted}("))
}
