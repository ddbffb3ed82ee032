//! Requests with a key: the first is done, the second is answered as the first, and what is kept stays small.

use plumbline_store::repeats::{KEPT_S, MOST_KEPT, Repeat};

use crate::support::{NOON, for_each_database};

fn hash(n: i64) -> [u8; 32] {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(&n.to_be_bytes());
    hash
}

#[tokio::test]
async fn a_key_is_one_request_for_a_day() {
    for_each_database(async |store| {
        let ask =
            async |who: &str, key, request, at| store.begin_answer(who, hash(key), hash(request), at).await.unwrap();
        assert_eq!(ask("operator", 1, 7, NOON).await, Repeat::First);
        assert_eq!(ask("operator", 1, 7, NOON + 1).await, Repeat::Running);
        assert_eq!(ask("operator", 1, 8, NOON + 1).await, Repeat::Other);
        assert_eq!(ask("token 3", 1, 8, NOON + 1).await, Repeat::First, "keys of others are theirs");
        store.keep_answer("operator", hash(1), Some(b"done")).await.unwrap();
        assert_eq!(ask("operator", 1, 7, NOON + KEPT_S - 1).await, Repeat::Answered(b"done".to_vec()));
        assert_eq!(ask("operator", 1, 8, NOON + KEPT_S - 1).await, Repeat::Other);
        assert_eq!(ask("operator", 1, 8, NOON + KEPT_S).await, Repeat::First, "after a day it is free");
        store.keep_answer("operator", hash(1), None).await.unwrap();
        assert_eq!(ask("operator", 1, 9, NOON + KEPT_S).await, Repeat::First, "what failed may be tried again");
        assert_eq!(ask("operator", 1, 9, NOON + KEPT_S + 121).await, Repeat::Unknown, "whoever answered is gone");
        assert_eq!(
            ask("operator", 1, 9, NOON + 2 * KEPT_S).await,
            Repeat::First,
            "after a day it is free all the same"
        );
    })
    .await;
}

#[tokio::test]
async fn of_each_asker_only_the_newest_answers_are_kept() {
    for_each_database(async |store| {
        for n in 0..MOST_KEPT + 20 {
            assert_eq!(store.begin_answer("operator", hash(n), hash(n), NOON + n).await.unwrap(), Repeat::First);
            store.keep_answer("operator", hash(n), Some(b"done")).await.unwrap();
        }
        let kept: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM kept_answer").fetch_one(store.reader()).await.unwrap();
        assert_eq!(kept, MOST_KEPT);
        let newest = MOST_KEPT + 19;
        let again = store.begin_answer("operator", hash(newest), hash(newest), NOON + newest).await.unwrap();
        assert_eq!(again, Repeat::Answered(b"done".to_vec()));
        assert_eq!(store.begin_answer("operator", hash(0), hash(0), NOON + newest).await.unwrap(), Repeat::First);
    })
    .await;
}
