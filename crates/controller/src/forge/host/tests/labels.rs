//! What people filter by.

use super::*;

const LABELS: [&str; 2] = ["tidegate", "tidegate/advance"];

#[tokio::test]
async fn a_pull_request_is_labelled_with_one_call_and_labels_are_made_where_they_are_missing() {
    for (kind, first) in [(HostKind::Gitea, 4), (HostKind::Github, 1), (HostKind::Gitlab, 1)] {
        let mut client = Client::new(kind).await;
        for (number, calls) in [(1, first), (2, 1)] {
            assert_eq!(client.server.open(USER, &format!("x/{number}"), "main", "b"), number);
            client.host.label(number, &LABELS).await.unwrap();
            assert_eq!(client.server.labels(number), LABELS);
            assert_eq!((client.asked().len(), client.counted().len()), (calls, calls), "{kind:?}");
        }
        assert_eq!(client.server.state().labels, LABELS.map(str::to_owned).into());
    }
}

#[tokio::test]
async fn a_label_of_people_s_own_is_used_and_what_else_a_pull_request_has_stays() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut client = Client::new(kind).await;
        client.server.state().labels = LABELS.map(str::to_owned).into();
        client.server.open(USER, "x/1", "main", "b");
        client.server.change(1, json!({"labels": [{"id": 7, "name": "urgent"}]}));
        client.host.label(1, &LABELS).await.unwrap();
        assert_eq!(client.server.labels(1), ["urgent", "tidegate", "tidegate/advance"]);
        assert_eq!(client.asked().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_labels_is_told_and_counted() {
    for kind in [HostKind::Gitea, HostKind::Github, HostKind::Gitlab] {
        let mut client = Client::new(kind).await;
        client.server.open(USER, "x/1", "main", "b");
        let at = if kind == HostKind::Gitlab { "PUT" } else { "/labels" };
        let why = r#"{"message": "You do not have permission to create labels on this repository."}"#;
        client.fails(at, 403, &[], why);
        let error = client.host.label(1, &LABELS).await.unwrap_err();
        assert!(error.to_string().contains("permission to create labels"), "{error}");
        assert_eq!((client.asked().len(), client.counted()), (1, vec![CallOutcome::Refused]));
    }
    let mut client = Client::new(HostKind::Gitea).await;
    client.server.open(USER, "x/1", "main", "b");
    client.fails("/labels", 200, &[], "<html>log in</html>");
    assert!(matches!(client.host.label(1, &LABELS).await, Err(HostError::Unusable { .. })));
    assert_eq!(client.counted(), [CallOutcome::Failed]);
}
