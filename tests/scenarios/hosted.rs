//! What people do on a Git host with pull requests, and what is seen of it there.

use crate::scenarios::commands::Known;
use crate::scenarios::hosts::github::QUEUE;
use crate::scenarios::hosts::site::{Change, Says, Standing};
use crate::scenarios::hosts::{Host, Page, Way, Wrong};
use crate::scenarios::log::Log;
use crate::scenarios::world::World;
use serde_json::Value;
use std::fmt::Write;
use tidegate::git::RemoteFault;
use tidegate::manifest::installation::HostKind;
use tidegate::world::simulation::GitHost;

const DECISIONS: &str = "tidegate/world/decisions";

/// Such a command, if it is one; what it shows.
pub(crate) fn command(world: &mut World, words: &[&str]) -> Result<(Known, String), String> {
    match words {
        ["host", kind @ ("github" | "gitlab"), how @ ..] => begin(world, kind, how)?,
        ["host", "away"] => host(world)?.fault(Some(("", Wrong::Away, None))),
        ["host", "back"] => host(world)?.fault(None),
        ["host", "fails", what, part @ ..] => fail(host(world)?, what, part)?,
        ["requests"] => return Ok((Known::Yes, list(world)?)),
        ["status"] => return Ok((Known::Yes, statuses(world, "main")?)),
        ["status", branch] => return Ok((Known::Yes, statuses(world, branch)?)),
        ["checks", branch] => return Ok((Known::Yes, checks(world, branch)?)),
        ["tokens"] => return Ok((Known::Yes, format!("tokens given: {}\n", host(world)?.handed_out()))),
        ["revoke", "tokens"] => host(world)?.revoke(),
        ["request", of, which] => return Ok((Known::Yes, page(world, &find(world, of, which)?))),
        ["offer", branch, "by", who] => {
            host(world)?.open(who, [&format!("{branch} of {who}"), "A new version"], [branch, "main"])?;
        }
        ["protect", "decisions"] => host(world)?.protect(DECISIONS, true),
        ["unprotect", "decisions"] => host(world)?.protect(DECISIONS, false),
        ["team", name, people @ ..] => host(world)?.team(name, people),
        ["rights", who, may @ ("none" | "read" | "write")] => {
            host(world)?.level(who, if *may == "write" { 30 } else { 20 });
        }
        ["author", who] => (*who).clone_into(&mut world.ana.author),
        [act, "request", of, which, "by", who, how @ ..] => {
            let found = find(world, of, which)?;
            person(host(world)?, act, &found, who, &how.join(" "))?;
        }
        ["queue", "by", who, requests @ ..] => {
            let found = requests.chunks(2).map(|request| match request {
                [of, which] => Ok(find(world, of, which)?.number),
                _ => Err("queue by NAME APP STEP [APP STEP …]".to_owned()),
            });
            let numbers = found.collect::<Result<Vec<_>, String>>()?;
            host(world)?.merge_queued(if *who == "itself" { QUEUE.1 } else { who }, &numbers)?;
        }
        _ => return Ok((Known::No, String::new())),
    }
    Ok((Known::Yes, String::new()))
}

fn host(world: &World) -> Result<&Host, String> {
    world.hosting.as_ref().ok_or_else(|| "there is no host: begin with `host github` or `host gitlab`".to_owned())
}

/// From now on controllers that start ask there.
fn begin(world: &mut World, kind: &str, how: &[&str]) -> Result<(), String> {
    let kind = if kind == "github" { HostKind::Github } else { HostKind::Gitlab };
    let clock = world.stage.clock.clone();
    let host = Host::new(kind, &world.stage.repository(), move || clock.now());
    match how {
        [] => {}
        ["app"] => host.as_app(),
        _ => return Err("host github|gitlab, or: host github app".to_owned()),
    }
    host.protect(DECISIONS, true);
    world.log.hide(host.secrets());
    world.stage.host(GitHost { site: host.site(world.folder()), transport: host.transport() });
    // What was pushed is seen before the next push hides it.
    let seen = host.clone();
    world.stage.judge_git(move |_, _| {
        seen.look();
        RemoteFault::Pass
    });
    world.hosting = Some(host);
    Ok(())
}

fn fail(host: &Host, what: &str, part: &[&str]) -> Result<(), String> {
    let (part, left) = match part {
        ["once", part @ ..] => (part, Some(1)),
        part => (part, None),
    };
    let wrong = match what {
        "half" => Wrong::Half,
        "endless" => Wrong::Endless,
        "unmodified" => Wrong::Unmodified,
        code => Wrong::Status(code.parse().map_err(|_| format!("nothing fails like {code}"))?),
    };
    host.fault(Some((&part.join(" "), wrong, left)));
    Ok(())
}

/// The last pull request of a rollout for a step, or of a branch.
fn find(world: &World, of: &str, which: &str) -> Result<Page, String> {
    let is_it = |page: &&Page| match of {
        "branch" => page.branch == which,
        app => page.branch.contains(&format!("/shop/{app}/")) && page.branch.ends_with(&format!("-{which}")),
    };
    let all = host(world)?.pulls();
    all.iter().find(is_it).cloned().ok_or_else(|| format!("there is no such request: {}", lines(&all)))
}

/// What a person does to one.
fn person(host: &Host, act: &str, of: &Page, who: &str, how: &str) -> Result<(), String> {
    let change = |change: Change| host.change(who, of.number, change);
    match act {
        "approve" => host.review(who, of.number, Says::Approved),
        "object" => host.review(who, of.number, Says::ChangesRequested),
        "dismiss" => host.review(who, of.number, Says::Dismissed),
        "comment" => host.comment(who, of.number, how),
        "close" => change(Change { standing: Some(Standing::Closed), ..Change::default() }),
        "reopen" => change(Change { standing: Some(Standing::Open), ..Change::default() }),
        "title" => change(Change { title: Some(how.to_owned()), ..Change::default() }),
        "text" => change(Change { body: Some(how.to_owned()), ..Change::default() }),
        "lead" => change(Change { base: Some(how.to_owned()), ..Change::default() }),
        "draft" => {
            let title = (host.kind() == HostKind::Gitlab).then(|| format!("Draft: {}", of.title));
            change(Change { title, draft: Some(true), ..Change::default() });
        }
        "finish" => change(Change { draft: Some(false), ..Change::default() }),
        "lock" => host.lock(of.number),
        "merge" => {
            let way = match how {
                "" => Way::Merge,
                "squash" => Way::Squash,
                "rebase" => Way::Rebase,
                _ => return Err(format!("nothing is merged by {how}")),
            };
            host.merge(way, who, of.number)?;
        }
        "delete" => host.delete_branch(&of.branch),
        "rival" => {
            let base = if how.is_empty() { &of.base } else { how };
            host.open(who, ["mine", &of.body], [&of.branch, base])?;
        }
        "write" | "rewrite" => {
            let (path, text) = written(host, of, how)?;
            if act == "rewrite" {
                host.undo(&of.branch)?;
            }
            host.push(who, &of.branch, &of.branch, (&path, &text))?;
        }
        "forestall" => {
            let (path, text) = written(host, of, how)?;
            // The next run of the same content differs in its number alone.
            let next = |text: &str| text.replacen("1-", "2-", 1);
            let (_, run) = of.branch.rsplit_once('/').ok_or("it is none of ours")?;
            let [branch, path, text] =
                [&of.branch, &path, &text].map(|text| text.replace(&run[..10], &next(&run[..10])));
            host.push(who, &branch, DECISIONS, (&path, &text))?;
        }
        "bypass" => {
            let (path, text) = written(host, of, how)?;
            host.push(who, DECISIONS, DECISIONS, (&path, &text))?;
        }
        "smuggle" => {
            let (path, text) = written(host, of, how)?;
            host.merge_with(who, of.number, (&path, &text))?;
        }
        _ => return Err(format!("nobody can {act} a request")),
    }
    Ok(())
}

/// What somebody writes to a branch: the decision that it asks for in other words, or a word for all that is to come, or one more file.
fn written(host: &Host, of: &Page, how: &str) -> Result<(String, String), String> {
    let files = host.files(of.number);
    let path = files.iter().find(|path| path.contains(of.branch.rsplit('/').next().unwrap_or_default()));
    let path = path.ok_or_else(|| format!("it asks for no decision: {files:?}"))?;
    let text = host.file(&of.head, path).ok_or("its head is gone")?;
    match how {
        "" | "words" => Ok((path.clone(), format!("{text}# in other words, in place of {}\n", &of.head[..8]))),
        "all" => {
            let (_, step) = of.branch.rsplit_once('-').ok_or("it leads to no step")?;
            Ok((path.replace(step, "promotion"), text.replace(step, "promotion")))
        }
        file => {
            let (path, text) = file.split_once(' ').unwrap_or((file, "more: true"));
            Ok((path.to_owned(), format!("{text}\n")))
        }
    }
}

fn lines(all: &[Page]) -> String {
    let line = |page: &Page| {
        let standing = format!("{:?}", page.standing).to_lowercase();
        format!("{} {standing}: {}, to {}\n", page.named, page.title, page.base)
    };
    all.iter().rev().map(line).collect()
}

/// How a branch's tip is said to stand.
fn statuses(world: &World, branch: &str) -> Result<String, String> {
    let all = host(world)?.statuses(branch);
    let lines = all.iter().map(|(name, (mark, text))| format!("{name} {mark}: {text}\n"));
    Ok(world.names.plain(&lines.collect::<String>()))
}

/// What Apps say of a branch's tip, with what they show at lines.
fn checks(world: &World, branch: &str) -> Result<String, String> {
    let mut out = String::new();
    for (run, annotations) in host(world)?.checks(branch) {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let [name, status, conclusion] = ["name", "status", "conclusion"].map(|field| word(&run[field]));
        writeln!(out, "{name} {status} {conclusion}: {}", word(&run["output"]["title"])).unwrap();
        for one in annotations {
            let [path, level, title, message] =
                ["path", "annotation_level", "title", "message"].map(|field| word(&one[field]));
            let column = one["start_column"].as_u64().map(|column| format!(":{column}")).unwrap_or_default();
            writeln!(out, "{path}:{}{column}: {level} {title}: {message}", one["start_line"]).unwrap();
        }
    }
    Ok(world.names.plain(&out))
}

/// Panics if anybody was told what lets tidegate in.
pub(crate) fn no_secret_is_told(host: &Host, log: &Log) {
    let told = [log.shown(), host.told(&host.secrets())].concat();
    assert_eq!(told, [""; 0], "a secret is told");
}

/// All pull requests, the first one first.
fn list(world: &World) -> Result<String, String> {
    Ok(world.names.plain(&lines(&host(world)?.pulls())))
}

/// One of them, as people see it.
fn page(world: &World, page: &Page) -> String {
    let mut out = lines(std::slice::from_ref(page));
    writeln!(out, "by {}, from {}; {}", page.by, page.branch, page.labels.join(", ")).unwrap();
    page.body.lines().for_each(|line| writeln!(out, "| {line}").unwrap());
    for (by, text) in &page.comments {
        writeln!(out, "{by}:").unwrap();
        text.lines().for_each(|line| writeln!(out, "| {line}").unwrap());
    }
    // A line without anything else would end in a space.
    let out = out.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>();
    world.names.plain(&out)
}
