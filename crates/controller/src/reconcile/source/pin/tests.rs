use super::super::super::testing::{World, manifest, moved};
use super::super::{LoadedRecords, Poll, Source};
use super::*;
use crate::forge::host::Pass;
use crate::forge::host::testing::{Fault, REPOSITORY, Server};
use crate::manifest::installation::{Access, HostKind, PullHost};
use crate::plan::input::Git;
use crate::record::fixture::time;

/// Git as a controller sees it whose Installation names the repository.
fn pinned(world: &World, server: &Server, kind: HostKind, cache: &str) -> Source {
    let token_file = world.dir.path().join("token");
    std::fs::write(&token_file, "token").unwrap();
    let (owner, name) = ("acme".to_owned(), "shop".to_owned());
    let (access, pass) = (Access::Token(token_file.clone()), Pass::Token(token_file));
    let site = PullHost { kind, api: server.api(), owner, name, access };
    let host = Host::new(site, pass, Box::new(|_, _| ()), Box::new(|| time("12:00:00"))).unwrap();
    world.source(cache).pinned(Some(Pin::new(REPOSITORY, host)))
}

/// The host says so of the repository.
fn says(server: &Server, status: u16, body: &str) {
    let headers = vec![("location", "http://evil.test/".to_owned())];
    server.state().fault = Some(Fault { at: "acme", status, headers, body: body.to_owned() });
}

#[tokio::test]
async fn attack_22_another_repository_of_the_same_name_is_not_followed() {
    for kind in [HostKind::Github, HostKind::Gitlab] {
        let (world, server) = (World::new().await, Server::start(kind).await);
        let mut source = pinned(&world, &server, kind, "c");
        let good = moved(&mut source, None).await;
        assert!(matches!(source.look_up(None).await, Poll::Unchanged));
        assert_eq!(server.state().asked.len(), 1, "the host is asked only where something has moved");

        // Who has taken its name shows the same: there is nothing to follow, and nothing is written there.
        assert!(matches!(source.look_up_to_write(None).await, Poll::Unchanged));
        says(&server, 200, "{\"id\": 666}");
        assert!(matches!(source.look_up(None).await, Poll::Unchanged));
        assert!(matches!(source.look_up_to_write(None).await, Poll::WrongRepository(_)));

        // The same past, and one commit more.
        world.commit("main", &[("teams/shop/a/app.yaml", Some(&manifest("a", "a:evil")))]).await;
        for _ in 0..2 {
            let looked = source.look_up(None).await;
            let Poll::WrongRepository(why) = looked else { panic!("{looked:?}") };
            assert!(why.contains("the number 666") && why.contains("means number 7"), "{why}");
            let view = source.offline(Git::Replaced(why), None).await;
            assert_eq!((&view.main.commit, &view.tips), (&good.main.commit, &good.tips));
        }
        // A process that has nothing of before believes nothing.
        let mut fresh = pinned(&world, &server, kind, "d");
        assert!(matches!(fresh.look_up(None).await, Poll::WrongRepository(_)));
        let view = fresh.offline(Git::Replaced("another".to_owned()), None).await;
        assert!(matches!(view.records, LoadedRecords::Unreadable(_)) && view.main.commit.is_none());

        // A host that does not tell is no yes.
        for (status, body) in
            [(500, ""), (404, "{}"), (301, ""), (200, "{}"), (200, "<html>"), (200, "{\"id\": \"7\"}")]
        {
            says(&server, status, body);
            let looked = source.look_up(None).await;
            let Poll::Unreachable(why) = looked else { panic!("{status} {body}: {looked:?}") };
            assert!(why.starts_with("it is not known which repository lies there: "), "{why}");
        }
        server.state().fault = None;
        assert_ne!(moved(&mut source, None).await.main.commit, good.main.commit, "it is the one that is meant");
    }
}
