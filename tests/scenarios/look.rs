//! The commands that only look.

use crate::scenarios::commands::id;
use crate::scenarios::live;
use crate::scenarios::world::{World, label};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What is only looked at.
pub(crate) async fn look(world: &World, words: &[&str]) -> Result<Option<String>, String> {
    let api = &world.stage.api;
    Ok(Some(match *words {
        ["live"] => world.names.plain(&api.look(live::show)),
        ["record"] => record(world, "web").await?,
        ["record", app] => record(world, app).await?,
        ["dashboard"] => world.names.plain(&world.ana.dashboard().await),
        ["waits"] => world.waits(),
        ["told"] => world.stage.tester.told().iter().map(|line| format!("  {line}\n")).collect(),
        ["files"] => world.ana.state().await.keys().map(|path| world.names.path(path.as_str()) + "\n").collect(),
        ["field", object, path] => world.names.plain(&api.look(|cluster| live::field(cluster, object, path))?) + "\n",
        ["pods", deployment] => pods(world, deployment)?,
        ["served", service] => world.served(service)?,
        _ => return Ok(None),
    }))
}

/// The pods of a Deployment that are alike, counted.
fn pods(world: &World, deployment: &str) -> Result<String, String> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (image, born) in world.stage.api.look(|cluster| live::born(cluster, deployment))? {
        *found.entry(format!("of {image} since {}", world.time(born))).or_default() += 1;
    }
    Ok(found.iter().map(|(what, count)| format!("{count} {what}\n")).collect())
}

/// What Git says of a rollout.
async fn record(world: &World, app: &str) -> Result<String, String> {
    let Some(record) = world.ana.record(&id(app)?).await else { return Ok("no record\n".to_owned()) };
    let mut out = label(&record.phase) + "\n";
    if let Some(promoted) = &record.promoted {
        writeln!(out, "promoted {} by run {}", world.names.set(&promoted.set), number(promoted.run.as_str())).unwrap();
    }
    if let Some(run) = &record.run {
        let [from, to] = [&run.from, &run.to].map(|set| world.names.set(set));
        writeln!(out, "run {} from {from} to {to}", number(run.id.as_str())).unwrap();
    }
    for past in &record.history {
        let (run, to) = (number(past.run.as_str()), world.names.set(&past.to));
        let why = if past.why.is_empty() { String::new() } else { format!(": {}", past.why) };
        writeln!(out, "{}", world.names.plain(&format!("past run {run} to {to}: {:?}{why}", past.outcome))).unwrap();
    }
    for refused in &record.refused {
        let text = format!("refused {} {:?}: {}", refused.revision.short(), refused.outcome, refused.why);
        writeln!(out, "{}", world.names.plain(&text)).unwrap();
    }
    for word in &record.consumed {
        let counted = if word.void.is_some() { "void" } else { "counted" };
        let by = word.proven.iter().flat_map(|proven| &proven.by).map(|by| {
            let what = by.review.map_or("the merge".to_owned(), |number| format!("review {number}"));
            format!("{} by {what}", by.login)
        });
        let by = by.collect::<Vec<_>>().join(", ");
        let by = if by.is_empty() { by } else { format!(": {by}") };
        writeln!(out, "{counted} {} in run {}{by}", word.action, number(word.run.as_str())).unwrap();
    }
    for condition in &record.conditions {
        let text = format!("condition {}: {}", condition.reason, condition.message);
        writeln!(out, "{}", world.names.plain(&text)).unwrap();
    }
    if let Some(allowed) = world.allowed(&record) {
        writeln!(out, "allows {allowed}").unwrap();
    }
    Ok(out)
}

pub(crate) fn number(run: &str) -> &str {
    run.split('-').next().unwrap_or(run)
}
