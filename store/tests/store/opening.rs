//! Opening: what is made, what is refused, and in which words.

use plumbline_store::{Error, Options, Store};
use sqlx::{AnyConnection, Connection, Executor, Row};

use crate::support::{Schema, for_each_database, number};

async fn refusal(url: &str) -> Error {
    let options = Options { busy_ms: 20, ..Options::default() };
    Store::open_with(url, &options).await.expect_err("it should not open")
}

async fn raw(path: &std::path::Path, sql: &'static str) {
    sqlx::any::install_default_drivers();
    let mut file = AnyConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    file.execute(sql).await.unwrap();
    file.close().await.unwrap();
}

#[tokio::test]
async fn a_new_database_has_every_table_and_opens_again() {
    for_each_database(async |store| {
        assert_eq!(number(&store, "SELECT COUNT(*) FROM cohort").await, 6);
        assert_eq!(number(&store, "SELECT COUNT(*) FROM wh_delivery").await, 0);
        assert_eq!(store.counts().await.unwrap(), plumbline_store::Totals::default());
    })
    .await;
}

#[tokio::test]
async fn a_new_file_is_laid_out_for_years() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space & 100%.db");
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    assert!(path.exists());
    for (pragma, expected) in [
        ("SELECT * FROM pragma_page_size", 8192),
        ("SELECT * FROM pragma_auto_vacuum", 2),
        ("SELECT * FROM pragma_foreign_keys", 1),
        ("SELECT * FROM pragma_query_only", 1),
        ("SELECT timeout FROM pragma_busy_timeout", 5000),
    ] {
        assert_eq!(number(&store, pragma).await, expected, "{pragma}");
    }
    let mode = sqlx::query("SELECT * FROM pragma_journal_mode").fetch_one(store.reader()).await.unwrap();
    assert_eq!(mode.get::<String, _>(0), "wal");
    store.close().await;
    Store::open(&format!("sqlite://{}", path.display())).await.unwrap().close().await;
}

#[tokio::test]
async fn a_newer_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    let mut urls = vec![path.to_str().unwrap().to_owned()];
    let schema = Schema::make().await;
    urls.extend(schema.as_ref().map(|schema| schema.url.clone()));
    for url in urls {
        Store::open(&url).await.unwrap().close().await;
        sqlx::any::install_default_drivers();
        let address = if url.starts_with("postgres") { url.clone() } else { format!("sqlite://{url}") };
        let mut connection = AnyConnection::connect(&address).await.unwrap();
        let newest = "(SELECT MAX(version) FROM _sqlx_migrations)";
        let leap = format!("UPDATE _sqlx_migrations SET version = 9999 WHERE version = {newest}");
        connection.execute(sqlx::AssertSqlSafe(leap)).await.unwrap();
        connection.close().await.unwrap();
        let error = refusal(&url).await;
        assert!(matches!(error, Error::Newer { found: 9999, .. }), "{error}");
        assert!(error.to_string().contains("newer version of Plumbline"));
    }
    if let Some(schema) = schema {
        schema.drop().await;
    }
}

#[tokio::test]
async fn an_older_file_is_copied_before_it_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    // The schema as it was before the eleventh migration.
    let older = folder.path().join("migrations");
    std::fs::create_dir(&older).unwrap();
    for file in std::fs::read_dir("../migrations").unwrap().map(Result::unwrap) {
        if file.file_name().to_str().unwrap() < "0011" {
            std::fs::copy(file.path(), older.join(file.file_name())).unwrap();
        }
    }
    sqlx::any::install_default_drivers();
    let mut file = AnyConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.unwrap();
    sqlx::migrate::Migrator::new(older).await.unwrap().run(&mut file).await.unwrap();
    file.close().await.unwrap();
    let store = Store::open(path.to_str().unwrap()).await.unwrap();
    assert_eq!(number(&store, "SELECT COUNT(*) FROM report").await, 0);
    store.close().await;
    let copy = folder.path().join("t.db.before-10");
    let mut copy = AnyConnection::connect(&format!("sqlite://{}", copy.display())).await.unwrap();
    let tables =
        sqlx::query("SELECT COUNT(*) FROM sqlite_master WHERE name = 'report'").fetch_one(&mut copy).await.unwrap();
    assert_eq!(tables.get::<i64, _>(0), 0);
}

#[tokio::test]
async fn what_cannot_be_opened_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();

    std::fs::write(at("text.db"), "this is a diary, and long enough to be taken for a header of sorts".repeat(20))
        .unwrap();
    assert!(matches!(refusal(&at("text.db")).await, Error::NotADatabase(_)));
    assert!(matches!(refusal(&at("no/such/folder/t.db")).await, Error::Unreadable(_)));
    assert!(matches!(refusal(&at("")).await, Error::Unreadable(_)), "a folder is no database");
    assert!(matches!(refusal("postgres://127.0.0.1:1/nobody").await, Error::Unreachable { .. }));
    let error = refusal("postgres://127.0.0.1:1/nobody").await.to_string();
    assert!(error.starts_with("cannot connect to the database postgres://127.0.0.1:1/nobody"), "{error}");

    raw(folder.path().join("locked.db").as_path(), "CREATE TABLE t (a INTEGER)").await;
    let mut holder = AnyConnection::connect(&format!("sqlite://{}", at("locked.db"))).await.unwrap();
    holder.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").await.unwrap();
    let error = refusal(&at("locked.db")).await;
    assert!(matches!(error, Error::Locked(_)), "{error:?}");
}

#[tokio::test]
async fn two_processes_may_write_to_one_database() {
    for_each_database(async |store| {
        // Another process: its own connections, its own memory of what was written.
        let other = match store.backend() {
            plumbline_store::Backend::Sqlite => {
                let row = sqlx::query("SELECT file FROM pragma_database_list WHERE name = 'main'")
                    .fetch_one(store.reader())
                    .await
                    .unwrap();
                Store::open(row.get::<String, _>(0).as_str()).await.unwrap()
            }
            plumbline_store::Backend::Postgres => store.clone(),
        };
        for n in 0..10 {
            let (a, b) = (format!("a{n}"), format!("b{n}"));
            let kind = plumbline_store::words::SourceKind::File;
            let (a, b) = tokio::join!(store.ensure_source(kind, &a, None, n), other.ensure_source(kind, &b, None, n));
            assert_ne!(a.unwrap(), b.unwrap());
        }
        assert_eq!(number(&store, "SELECT COUNT(DISTINCT id) FROM source").await, 20);
    })
    .await;
}
