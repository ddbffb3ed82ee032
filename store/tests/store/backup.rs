//! Copies: made while others work, known to be good, and brought back.

use plumbline_store::backup::{manifest_path, restore, verify};
use plumbline_store::{Error, Store};

use crate::support::{NOON, judged, number, one_card, ruleset, seen};

async fn filled(path: &str) -> Store {
    let store = Store::open(path).await.unwrap();
    let rules = ruleset(&store).await;
    let surface = one_card(&store).await;
    store.record(&[seen(surface, NOON, "{}", judged(rules, &[("a2a/e", 'F')]))]).await.unwrap();
    store
}

#[tokio::test]
async fn a_copy_comes_back_whole_and_what_was_there_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let database = path("live.db").to_str().unwrap().to_owned();
    let store = filled(&database).await;
    let copy = path("copy.db");
    let made = store.backup(&copy, NOON).await.unwrap();
    assert_eq!((made.rows["finding"], made.rows["target"]), (1, 1));
    assert!(matches!(store.backup(&copy, NOON).await, Err(Error::Copy { .. })), "nothing is written over");
    assert_eq!(verify(&copy).await.unwrap(), made);

    sqlx::query("UPDATE target SET name = 'lost'").execute(store.writer()).await.unwrap();
    store.close().await;
    assert_eq!(restore(&copy, &database).await.unwrap(), made);
    let store = Store::open(&database).await.unwrap();
    assert_eq!(number(&store, "SELECT COUNT(*) FROM target WHERE name = 'lost'").await, 0);
    store.close().await;
    let before = Store::open(path("live.db.before-restore").to_str().unwrap()).await.unwrap();
    assert_eq!(number(&before, "SELECT COUNT(*) FROM target WHERE name = 'lost'").await, 1);
    before.close().await;
}

#[tokio::test]
async fn a_damaged_copy_and_one_of_a_newer_schema_are_refused_and_the_database_stays() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("live.db").to_str().unwrap().to_owned();
    let store = filled(&database).await;
    let (damaged, newer) = (folder.path().join("damaged.db"), folder.path().join("newer.db"));
    for copy in [&damaged, &newer] {
        store.backup(copy, NOON).await.unwrap();
    }
    let mut bytes = std::fs::read(&damaged).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&damaged, bytes).unwrap();
    assert!(matches!(restore(&damaged, &database).await, Err(Error::Copy { .. })));

    std::fs::remove_file(manifest_path(&newer)).unwrap();
    let other = Store::open(newer.to_str().unwrap()).await.unwrap();
    sqlx::query(
        "UPDATE _sqlx_migrations SET version = 9999 WHERE version = (SELECT MAX(version) FROM _sqlx_migrations)",
    )
    .execute(other.writer())
    .await
    .unwrap();
    other.close().await;
    assert!(matches!(restore(&newer, &database).await, Err(Error::Newer { found: 9999, .. })));
    assert_eq!(number(&store, "SELECT COUNT(*) FROM target").await, 1);
    store.close().await;
}
