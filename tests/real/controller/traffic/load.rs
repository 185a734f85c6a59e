//! People who use the application all the time: requests through the proxy, each counted.

use crate::support::cluster::eventually;
use reqwest::header::HOST;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// Where the proxy listens.
const PROXY: &str = "http://127.0.0.1:18080/";

/// What was answered.
#[derive(Debug, Default, Clone)]
pub(super) struct Tally {
    /// How often, by version.
    pub(super) versions: BTreeMap<String, u32>,
    /// What was no success: who answered, and what.
    pub(super) failed: BTreeMap<String, u32>,
    /// The version that answered last, and how often in a row, while all was well.
    row: (String, u32),
}

impl Tally {
    fn add(&mut self, answer: Result<(String, u16), String>) {
        match &answer {
            Ok((version, 200)) if *version == self.row.0 => self.row.1 += 1,
            Ok((version, 200)) => self.row = (version.clone(), 1),
            Ok(_) | Err(_) => self.row = Default::default(),
        }
        match answer {
            Ok((version, code)) => {
                if code != 200 {
                    *self.failed.entry(format!("version {version}: {code}")).or_default() += 1;
                }
                *self.versions.entry(version).or_default() += 1;
            }
            Err(why) => *self.failed.entry(why).or_default() += 1,
        }
    }

    /// All answers of a version.
    pub(super) fn all(&self) -> u32 {
        self.versions.values().sum()
    }

    /// Those of one version.
    pub(super) fn of(&self, version: u8) -> u32 {
        self.versions.get(&version.to_string()).copied().unwrap_or_default()
    }
}

/// Requests without end, over a few connections that stay open; they stop when this is dropped.
pub(super) struct Load {
    tally: Arc<Mutex<Tally>>,
    _tasks: JoinSet<()>,
}

impl Load {
    /// Of people who send this header, or none.
    pub(super) fn start(host: &str, header: Option<(&'static str, &'static str)>) -> Self {
        let (tally, mut tasks) = (Arc::new(Mutex::new(Tally::default())), JoinSet::new());
        for _ in 0..2 {
            let (tally, host) = (Arc::clone(&tally), host.to_owned());
            tasks.spawn(async move {
                let client = reqwest::Client::builder().no_proxy().build().unwrap();
                loop {
                    let answer = ask(&client, &host, header).await;
                    tally.lock().unwrap().add(answer);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
        Self { tally, _tasks: tasks }
    }

    /// All so far.
    pub(super) fn tally(&self) -> Tally {
        self.tally.lock().unwrap().clone()
    }

    /// What is answered from now on, until there are so many.
    pub(super) async fn next(&self, count: u32) -> Tally {
        let before = self.tally();
        let enough = async || Some(self.tally()).filter(|now| now.all() >= before.all() + count);
        let now = eventually(&format!("{count} answers"), enough).await;
        let since = |(version, count): (String, u32)| {
            let known = before.versions.get(&version).copied().unwrap_or_default();
            (count > known).then_some((version, count - known))
        };
        Tally { versions: now.versions.into_iter().filter_map(since).collect(), ..now }
    }

    /// Waits until so many answers in a row, all from now on, are that version's, and none of them is a failure: however long the
    /// proxy takes to follow.
    pub(super) async fn row(&self, version: u8, count: u32) {
        let before = self.tally().all();
        let is_long =
            |now: &Tally| now.row.0 == version.to_string() && now.row.1 >= count && now.all() >= before + count;
        let long = async || Some(self.tally()).filter(is_long).map(drop);
        eventually(&format!("{count} answers of version {version} in a row"), long).await;
    }
}

/// One request: the version that answered, and its code.
pub(super) async fn ask(
    client: &reqwest::Client,
    host: &str,
    header: Option<(&str, &str)>,
) -> Result<(String, u16), String> {
    let mut request = client.get(PROXY).header(HOST, host);
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    let answer = request.send().await.map_err(|why| format!("{why:?}"))?;
    let (code, body) = (answer.status().as_u16(), answer.text().await.map_err(|why| why.to_string())?);
    // A version is a number; whatever else is said comes from the proxy.
    if body.parse::<u8>().is_ok() { Ok((body, code)) } else { Err(format!("{code}: {body}")) }
}
