//! Who changed what: the newest first, of one thing or of all, and gone after two years.

use plumbline_store::audit::Noted;
use plumbline_store::housekeeping::{Job, Retention};
use serde_json::json;

use crate::support::{DAY, NOON, for_each_database};

#[tokio::test]
async fn what_was_changed_is_noted_read_and_let_go() {
    for_each_database(async |store| {
        for n in 0..5 {
            let noted = Noted {
                actor: "operator".to_owned(),
                action: "silence.add",
                entity: format!("silence:{}", n % 2),
                before: None,
                after: Some(json!({ "match": "owner:harbour\0", "n": n })),
                ip: Some("127.0.0.1".to_owned()),
            };
            store.note(&noted, NOON + n * DAY).await.unwrap();
        }
        let all = store.noted(i64::MAX, None, 10).await.unwrap();
        assert_eq!(all.iter().map(|row| row.id).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
        assert_eq!((all[0].at_s, all[0].action.as_str()), (NOON + 4 * DAY, "silence.add"));
        assert_eq!(all[0].after.as_ref().unwrap()["n"], 4);
        assert_eq!(store.noted(4, None, 2).await.unwrap(), all[2..4]);
        let one = store.noted(i64::MAX, Some("silence:1"), 10).await.unwrap();
        assert_eq!(one.iter().map(|row| row.id).collect::<Vec<_>>(), [4, 2]);

        let long = Noted { action: "x", after: Some(json!("x".repeat(100_000))), ..Noted::default() };
        store.note(&long, NOON + 5 * DAY).await.unwrap();
        assert_eq!(store.noted(i64::MAX, None, 1).await.unwrap()[0].after, Some(json!("100002 bytes")));

        let (retention, late) = (Retention::default(), NOON + 732 * DAY);
        assert_eq!(store.sweepable(Job::Audit, &retention, late).await.unwrap(), 2);
        let mut sweep = store.begin_sweep(Job::Audit, &retention, late).await.unwrap();
        while store.sweep_step(&mut sweep).await.unwrap() {}
        assert_eq!(store.noted(i64::MAX, None, 10).await.unwrap().len(), 4);
        assert_eq!(store.sweepable(Job::Audit, &retention, late + 900 * DAY).await.unwrap(), 3, "the newest stays");
    })
    .await;
}
