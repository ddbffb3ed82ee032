//! Every way a receiver can answer, and what becomes of the message and of the receiver.

use std::sync::Arc;

use plumbline_alerts::sync::put;
use plumbline_crawler::net::NetSettings;
use plumbline_store::hooks::{DeliveryState, EndpointState, Mode, SecretRole};
use plumbline_store::words::EventKind;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Notify;

use crate::support::{Behaviour, NOW, Receiver, SECRET, World, says, says_with};

/// One message, one try, and how the row stands after it: state, status, seconds to the next try, state of the receiver.
async fn after_one_try(behaviour: Behaviour) -> (DeliveryState, Option<i64>, Option<i64>, EndpointState) {
    let world = World::new().await;
    let receiver = Receiver::new(vec![behaviour]).await;
    let id = world.endpoint("r", &receiver.url(), Mode::Events).await;
    world.event(EventKind::TargetDown, None, 7, Some("refused")).await;
    world.teller.events().await.unwrap();
    world.courier.once().await.unwrap();
    let row = world.store.deliveries(Some(id), None, None, 10).await.unwrap().remove(0);
    let endpoint = world.store.endpoint("r").await.unwrap();
    (row.state, row.last_code, row.next_s.map(|next_s| next_s - NOW), endpoint.state)
}

#[tokio::test]
async fn each_answer_is_treated_as_the_table_says() {
    use DeliveryState::{Delivered, Pending};
    let date = "retry-after: Tue, 01 Dec 2026 00:10:00 GMT\r\n";
    let never = Arc::new(Notify::new());
    let rows = [
        ("200", says("200 OK"), Delivered, Some(200), None, EndpointState::Active),
        ("204", says("204 No Content"), Delivered, Some(204), None, EndpointState::Active),
        (
            "301",
            says_with("301 Moved", "location: http://127.0.0.1:1/\r\n", ""),
            Pending,
            Some(301),
            Some(4..=6),
            EndpointState::Active,
        ),
        ("410", says("410 Gone"), Pending, Some(410), Some(4..=6), EndpointState::Disabled),
        (
            "429 in seconds",
            says_with("429 Slow", "retry-after: 90\r\n", ""),
            Pending,
            Some(429),
            Some(90..=90),
            EndpointState::Active,
        ),
        ("429 by date", says_with("429 Slow", date, ""), Pending, Some(429), Some(600..=600), EndpointState::Active),
        ("500", says("500 Oh"), Pending, Some(500), Some(4..=6), EndpointState::Active),
        ("502", says("502 Oh"), Pending, Some(502), Some(60..=60), EndpointState::Active),
        ("hangs", Behaviour::Hangs(never), Pending, None, Some(60..=60), EndpointState::Active),
        ("drips", Behaviour::Drips, Delivered, Some(200), None, EndpointState::Active),
        ("floods", Behaviour::Floods, Delivered, Some(200), None, EndpointState::Active),
        ("resets", Behaviour::Resets, Pending, None, Some(4..=6), EndpointState::Active),
    ];
    for (name, behaviour, state, code, wait, endpoint) in rows {
        let (is, status, next, stands) = after_one_try(behaviour).await;
        assert_eq!((is, status, stands), (state, code, endpoint), "{name}");
        match (wait, next) {
            (None, None) => {}
            (Some(range), Some(next)) => assert!(range.contains(&next), "{name}: {next}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn what_answers_without_tls_is_a_failure_of_theirs_and_plain_http_by_name_is_not_called() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"this is no TLS\r\n").await;
        }
    });
    let id = world.endpoint("no-tls", &format!("https://127.0.0.1:{port}/"), Mode::Events).await;
    let plain = world.endpoint("plain", "http://hooks.example.com/x", Mode::Events).await;
    world.event(EventKind::TargetDown, None, 7, None).await;
    world.teller.events().await.unwrap();
    world.courier.once().await.unwrap();
    for (id, what) in [(id, "TLS"), (plain, "called")] {
        let row = world.store.deliveries(Some(id), None, None, 1).await.unwrap().remove(0);
        assert_eq!((row.state, row.attempts), (DeliveryState::Pending, 1));
        assert!(row.last_error.clone().unwrap().contains(what), "{:?}", row.last_error);
    }
}

#[tokio::test]
async fn a_retry_has_the_same_id_and_body_and_is_signed_anew() {
    let world = World::new().await;
    let receiver = Receiver::new(vec![says("500 Oh"), says("204 No Content")]).await;
    let id = world.endpoint("r", &receiver.url(), Mode::Events).await;
    world.event(EventKind::FindingRegressed, None, 7, Some("again document")).await;
    world.teller.events().await.unwrap();
    world.courier.once().await.unwrap();
    world.later(10);
    world.courier.once().await.unwrap();

    let requests = receiver.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    assert!(!requests[0].header("webhook-id").contains('.'));
    assert_eq!(requests[0].body, requests[1].body, "the same bytes");
    assert_eq!(requests[0].header("plumbline-attempt"), "1");
    assert_eq!(requests[1].header("plumbline-attempt"), "2");
    assert!(requests[1].header("user-agent").starts_with("Plumbline-Webhooks/"));
    for (request, at_s) in requests.iter().zip([NOW, NOW + 10]) {
        assert_eq!(request.header("webhook-timestamp"), at_s.to_string());
        // The library checks the age against its own clock, so its signature is compared instead.
        let by_library = standardwebhooks::Webhook::new(SECRET).unwrap();
        let signed = by_library.sign(request.header("webhook-id"), at_s, &request.body).unwrap();
        assert_eq!(request.header("webhook-signature"), signed);
    }
    let (row, body, tries) = world.store.delivery(id, requests[0].header("webhook-id")).await.unwrap().unwrap();
    assert_eq!((row.state, row.attempts, tries.len()), (DeliveryState::Delivered, 2, 2));
    assert_eq!(body, requests[0].body, "the log has the exact bytes");
    assert!(!tries.iter().any(|one| one.request.contains(SECRET)));
    let used = world.store.secrets(id, NOW).await.unwrap()[0].last_used_s;
    assert_eq!(used, Some(NOW + 10), "it is known when the secret last signed something accepted");
}

#[tokio::test]
async fn a_replay_keeps_the_id_and_says_so_and_a_new_sending_has_an_id_of_its_own() {
    let world = World::new().await;
    let receiver = Receiver::new(vec![says("204 No Content")]).await;
    let id = world.endpoint("r", &receiver.url(), Mode::Events).await;
    world.event(EventKind::TargetDown, None, 7, None).await;
    world.teller.events().await.unwrap();
    world.courier.once().await.unwrap();
    let first = receiver.ids().remove(0);
    assert!(world.store.replay(id, &first, world.now_s()).await.unwrap());
    world.courier.once().await.unwrap();
    let new = world.teller.ids.next(world.now_s() * 1000);
    assert!(world.store.send_as_new(id, &first, &new, world.now_s()).await.unwrap());
    world.courier.once().await.unwrap();
    assert_eq!(receiver.ids(), [first.clone(), first, new]);
    let replays: Vec<String> =
        receiver.requests.lock().unwrap().iter().map(|request| request.header("plumbline-replay").to_owned()).collect();
    assert_eq!(replays, ["", "true", ""]);
    assert!(!world.store.replay(id, "msg_none", 0).await.unwrap());
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let world = World::new().await;
    let release = Arc::new(Notify::new());
    let hanging = Receiver::new(vec![Behaviour::Hangs(release.clone())]).await;
    let healthy = Receiver::new(vec![says("204 No Content")]).await;
    world.endpoint("hanging", &hanging.url(), Mode::Events).await;
    let id = world.endpoint("healthy", &healthy.url(), Mode::Events).await;
    for subject in 0..20 {
        world.event(EventKind::TargetDown, None, subject, None).await;
    }
    world.teller.events().await.unwrap();
    let (courier, store) = (world.courier.clone(), world.store.clone());
    let sending = tokio::spawn(async move { courier.once().await });
    // The hanging one is let go only after the healthy one has everything.
    loop {
        let done = store.deliveries(Some(id), Some(DeliveryState::Delivered), None, 100).await.unwrap().len();
        if done == 20 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    release.notify_waiters();
    sending.abort();
    let ids = healthy.ids();
    let mut sorted = ids.clone();
    sorted.sort();
    assert_eq!(sorted.len(), 20);
    // Four are in flight together, so neighbours may change places.
    for (at, id) in ids.iter().enumerate() {
        let place = sorted.iter().position(|one| one == id).unwrap();
        assert!(place.abs_diff(at) < 8, "{id} came at {at} instead of {place}");
    }
}

#[tokio::test]
async fn a_failing_receiver_is_tried_by_one_message_and_the_others_hear_of_it() {
    let world = World::new().await;
    let dead = Receiver::new(vec![says("500 Oh")]).await;
    let healthy = Receiver::new(vec![says("204 No Content")]).await;
    let id = world.endpoint("dead", &dead.url(), Mode::Events).await;
    world.endpoint("healthy", &healthy.url(), Mode::Events).await;
    for subject in 0..12 {
        world.event(EventKind::TargetDown, None, subject, None).await;
    }
    world.teller.events().await.unwrap();
    // It has been down for a while: the next attempts of their own are many hours away.
    sqlx::query("UPDATE wh_delivery SET attempts = 7").execute(world.store.writer()).await.unwrap();
    world.courier.once().await.unwrap();
    assert_eq!(world.store.endpoint("dead").await.unwrap().state, EndpointState::Failing);
    let tried = dead.ids().len();
    for _ in 0..5 {
        world.courier.once().await.unwrap();
    }
    assert_eq!(dead.ids().len(), tried, "the rest waits for the probe");

    world.teller.events().await.unwrap();
    world.courier.once().await.unwrap();
    let heard: Vec<String> = healthy
        .requests
        .lock()
        .unwrap()
        .iter()
        .map(|request| {
            serde_json::from_slice::<serde_json::Value>(&request.body).unwrap()["type"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(heard.iter().filter(|kind| *kind == "webhook.failing").count(), 1, "{heard:?}");
    let own = world.store.deliveries(Some(id), None, None, 50).await.unwrap();
    assert!(own.iter().all(|row| row.kind == "target.down"), "it is not told about itself");

    world.later(660);
    world.courier.once().await.unwrap();
    assert_eq!(dead.ids().len(), tried + 1, "one message is the probe");
    let probe = dead.ids().pop();
    world.later(1_260);
    world.courier.once().await.unwrap();
    assert_eq!(dead.ids().len(), tried + 2);
    assert_ne!(dead.ids().pop(), probe, "and not the same every time: it may be the message that it does not take");

    dead.behaviours.lock().unwrap()[0] = says("204 No Content");
    world.later(2_460);
    world.courier.once().await.unwrap();
    let left = world.store.backlog(Some(id)).await.unwrap();
    assert_eq!((left.pending, left.dead), (0, 0), "one accepted probe opens the gate for the rest");
    assert_eq!(world.store.endpoint("dead").await.unwrap().state, EndpointState::Active);
}

#[tokio::test]
async fn whoever_is_paused_or_moves_while_much_waits_hears_the_rest_so() {
    let world = World::new().await;
    let bell = Arc::new(Notify::new());
    let before = Receiver::new(vec![Behaviour::Hangs(bell.clone()), says("204 No Content")]).await;
    let after = Receiver::new(vec![says("204 No Content")]).await;
    let id = world.endpoint("r", &before.url(), Mode::Events).await;
    for subject in 0..80 {
        world.event(EventKind::TargetDown, None, subject, None).await;
    }
    world.teller.events().await.unwrap();
    let courier = world.courier.clone();
    let sending = tokio::spawn(async move { courier.once().await });
    while before.ids().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.endpoint("r", &after.url(), Mode::Events).await;
    let other = standardwebhooks::Webhook::from_bytes(vec![7; 32]).unwrap();
    put(&world.store, &world.courier.vault, id, SecretRole::Current, "v1", &[7; 32], NOW).await.unwrap();
    bell.notify_one();
    sending.await.unwrap().unwrap();
    assert_eq!((before.ids().len(), after.ids().len()), (32, 48), "only what was read before went to the old address");
    let signed = after.requests.lock().unwrap()[0].clone();
    let signature = other.sign(signed.header("webhook-id"), NOW, &signed.body).unwrap();
    assert_eq!(signed.header("webhook-signature"), signature, "the rest is signed with what signs now");
}

#[tokio::test]
async fn a_message_out_of_attempts_is_dead_and_can_be_sent_again() {
    let world = World::new().await;
    let receiver = Receiver::new(vec![says("500 Oh")]).await;
    let id = world.endpoint("r", &receiver.url(), Mode::Events).await;
    world.event(EventKind::TargetDown, None, 7, None).await;
    world.teller.events().await.unwrap();
    for _ in 0..40 {
        world.courier.once().await.unwrap();
        world.later(4 * 3_600);
    }
    let dead = world.store.deliveries(Some(id), Some(DeliveryState::Dead), None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert!(receiver.ids().len() >= 10);
    receiver.behaviours.lock().unwrap()[0] = says("204 No Content");
    world.store.enable_endpoint(id, true, "", world.now_s()).await.unwrap();
    assert_eq!(world.store.replay_since(id, 0, world.now_s()).await.unwrap(), 1);
    world.courier.once().await.unwrap();
    assert_eq!(world.store.backlog(Some(id)).await.unwrap().dead, 0);
    assert_eq!(receiver.ids().iter().collect::<std::collections::HashSet<_>>().len(), 1, "always the same id");
}

/// Answers every question for an address with these, in turn; the last one stays.
async fn name_server(answers: Vec<[u8; 4]>) -> std::net::SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut buffer, mut asked) = ([0; 1500], 0_usize);
        while let Ok((n, from)) = socket.recv_from(&mut buffer).await {
            let question = &buffer[..n];
            let is_a = question[n.saturating_sub(4)..].starts_with(&[0, 1])
                || question.windows(4).any(|part| part == [0, 1, 0, 1]);
            let mut answer = question.to_vec();
            answer[2] = 0x81;
            answer[3] = 0x80;
            // No additional records in the answer.
            answer[10] = 0;
            answer[11] = 0;
            let end = 12 + question[12..].iter().position(|b| *b == 0).unwrap_or(0) + 5;
            answer.truncate(end);
            if is_a {
                answer[7] = 1;
                answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                answer.extend_from_slice(&answers[asked.min(answers.len() - 1)]);
                asked += 1;
            }
            let _ = socket.send_to(&answer, from).await;
        }
    });
    address
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_called_even_when_it_first_led_outside() {
    // First a public address, where nobody answers; ever after the machine's metadata service.
    let names = name_server(vec![[198, 51, 100, 7], [169, 254, 169, 254]]).await;
    let world = World::with(NetSettings { name_servers: vec![names], ..NetSettings::default() }).await;
    let id = world.endpoint("r", "https://rebind.example.com/x", Mode::Events).await;
    world.event(EventKind::TargetDown, None, 7, None).await;
    world.teller.events().await.unwrap();
    for _ in 0..2 {
        world.courier.once().await.unwrap();
        world.later(600);
    }
    let row = world.store.deliveries(Some(id), None, None, 1).await.unwrap().remove(0);
    let tries = world.store.delivery(id, &row.message).await.unwrap().unwrap().2;
    assert_eq!(tries.len(), 2);
    for one in tries {
        let error = one.error.unwrap();
        assert!(error.contains("not one we may call"), "{error}");
    }
}

#[tokio::test]
async fn many_receivers_of_many_events_are_written_in_steps_so_that_the_first_message_leaves_soon() {
    let world = World::new().await;
    for n in 0..50 {
        world.endpoint(&format!("r{n}"), "http://127.0.0.1:1/", Mode::Events).await;
    }
    for subject in 0..40 {
        world.event(EventKind::TargetDown, None, subject, None).await;
    }
    let mut from = world.store.begin_reading().await.unwrap();
    let mut steps = Vec::new();
    while let Some(taken) = world.teller.some_events(from).await.unwrap() {
        steps.push(taken.messages);
        assert_eq!(world.teller.cursor().await.unwrap(), taken.until);
        from = taken.until;
    }
    assert_eq!(steps, [10, 10, 10, 10], "five hundred deliveries each");
    assert_eq!(world.store.backlog(None).await.unwrap().pending, 2_000);
}
