//! What closed with its branch, as nobody has said no to it.

use super::*;

/// Whoever takes back a branch has closed its pull request, which nobody has said no to; the view tells it a tick later.
#[tokio::test]
async fn x_4_what_closed_with_its_branch_is_not_opened_again() {
    let mut setup = Setup::on(HostKind::Github).await;
    let view = Arc::clone(&setup.view);
    let (branch, mut request) = setup.shows_there().await;
    request.rule = Some(ApprovalRule {
        approvers: ["ana".to_owned()].into(),
        approvals: 1,
        trust: Trust::default(),
        by: By::Reviews,
    });
    let wanted = BTreeMap::from([(branch.clone(), request)]);
    setup.worker.round(&view, &wanted).await.unwrap();
    setup.asked();

    setup.server.change(1, json!({"state": "closed"}));
    setup.world.delete(&branch).await;
    setup.worker.round(&view, &wanted).await.unwrap();
    assert_eq!(setup.asked().len(), 1, "the list alone");
    setup.world.commit(&branch, &[("other.txt", Some("another head"))]).await;
    setup.worker.round(&view, &wanted).await.unwrap();
    assert_eq!(setup.asked().len(), 1, "nor if the branch asks for something else by now");
}

/// Gitea closes in a queue what had a branch that was deleted, and finds the next one of that name.
#[tokio::test]
async fn x_4_what_the_host_closed_late_is_no_answer() {
    for (kind, by, answers) in [
        (HostKind::Gitea, USER, [false, true]),
        (HostKind::Gitea, 7, [true, true]),
        (HostKind::Github, USER, [true, true]),
    ] {
        let mut setup = Setup::on(kind).await;
        let (branch, request) = setup.shows_there().await;
        let (wanted, view) = (BTreeMap::from([(branch.clone(), request)]), Arc::clone(&setup.view));
        let by = json!({"id": by, "login": "bot"});
        let events = json!([{"type": "close", "user": by.clone()}]);
        setup.server.state().there =
            [("issues/1/timeline".to_owned(), events), ("issues/1".to_owned(), json!({"closed_by": by}))].into();
        for answer in answers {
            setup.server.change(1, json!({"state": "closed"}));
            setup.worker.round(&view, &wanted).await.unwrap();
            assert_eq!(setup.world.tip(&branch).await.is_none(), answer, "{kind:?}");
        }
    }
}
