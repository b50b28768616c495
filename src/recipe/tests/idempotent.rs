//! `Locker::idempotent`.

use std::cell::Cell;
use std::future::{pending, ready};
use std::time::Duration;

use super::{all_at_once, ms, pass, store};
use crate::options::Extend;
use crate::recipe::{Done, Idempotent};
use crate::testing::{Nodes, Reaction, When};

type Error = Box<dyn std::error::Error + Send + Sync>;

const KEEP: Duration = ms(600_000);

/// Does work that is done at once.
async fn run(request: &Idempotent, outcome: &str) -> Done {
    let work = || ready(Ok::<_, Error>(outcome.into()));
    request.clone().run::<_, _, Error>(work).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn of_many_repeats_at_once_one_does_it_and_all_learn_what_it_came_to() {
    let (nodes, (store, client)) = (Nodes::new(3), store());
    let lockers = [(); 4].map(|()| nodes.locker().build().unwrap());
    let done = Cell::new(0);
    let ask = async |number: usize| {
        let request = lockers[number % 4].idempotent(&client, "payment:7", KEEP);
        let work = || async {
            done.set(done.get() + 1);
            pass(ms(100)).await;
            Ok::<_, Error>(format!("receipt {number}").into_bytes())
        };
        request.run::<_, _, Error>(work).await.unwrap()
    };
    let mut told = all_at_once(12, ask).await;
    assert_eq!(done.get(), 1);
    let first = told.iter().position(|done| matches!(done, Done::First(_))).unwrap();
    let first = told.swap_remove(first).outcome().unwrap();
    assert!(first.starts_with(b"receipt "));
    assert_eq!(told, vec![Done::Again(first); 11]);
    pass(ms(1)).await;
    assert_eq!(nodes.holding("payment:7"), 0);
    assert_eq!(store[0].remaining("payment:7/outcome"), Some(KEEP - ms(1)));
}

#[tokio::test(start_paused = true)]
async fn what_was_begun_and_not_ended_is_unknown_and_not_begun_again() {
    let (nodes, (store, client)) = (Nodes::new(3), store());
    let locker = nodes.locker().build().unwrap();
    let request = |id: &str| locker.idempotent(&client, id, KEEP);
    // Its work has failed.
    let failed = request("failed").run::<_, _, Error>(|| ready(Err("no".into()))).await;
    assert_eq!(failed.unwrap_err().to_string(), "no");
    // Its process has died: neither polled nor dropped.
    let of_dead = nodes.locker().auto_extend(Extend::Off).build().unwrap();
    let dead = of_dead.idempotent(&client, "dead", KEEP);
    let mut dead = Box::pin(dead.run::<_, _, Error>(pending));
    let mut dropped = Box::pin(request("dropped").run::<_, _, Error>(pending));
    tokio::select! {
        biased;
        _ = dead.as_mut() => unreachable!(),
        _ = dropped.as_mut() => unreachable!(),
        () = pass(ms(50)) => {}
    }
    std::mem::forget(dead);
    drop(dropped);
    for id in ["failed", "dead", "dropped"] {
        let again = run(&request(id).wait(ms(60_000)), "again").await;
        assert_eq!(again, Done::Unknown, "{id}");
    }
    // As long as it is kept, and no longer.
    let left = store[0].remaining("failed/outcome").unwrap();
    pass(left).await;
    assert_eq!(run(&request("failed"), "again").await, Done::First(b"again".to_vec()));
}

/// The mark may be set, and the reply is lost: then none may do it.
#[tokio::test(start_paused = true)]
async fn a_mark_that_may_be_set_is_one() {
    let (nodes, (store, client)) = (Nodes::new(3), store());
    let request = nodes.locker().build().unwrap().idempotent(&client, "k", KEEP);
    run(&request.clone(), "x").await;
    store[0].command(["DEL", "k/outcome"]);
    store[0].add(When::after("set").nth(1).then(Reaction::Drop));
    let work = || -> std::future::Ready<Result<Vec<u8>, Error>> { panic!("it is not begun") };
    let error = request.clone().run::<_, _, Error>(work).await.unwrap_err();
    assert!(error.to_string().contains("executed is not known"), "{error}");
    pass(ms(10_000)).await; // the connection that did not answer is given up
    assert_eq!(run(&request, "again").await, Done::Unknown);
}

/// It was done, and that cannot be stored: who did it knows, the others do not.
#[tokio::test(start_paused = true)]
async fn an_outcome_that_cannot_be_stored_is_known_to_the_first_alone() {
    let (nodes, (store, client)) = (Nodes::new(3), store());
    let request = nodes.locker().build().unwrap().idempotent(&client, "k", KEEP);
    store[0].add(When::before("set").nth(2).then(Reaction::Cut { after_bytes: 0 }));
    assert_eq!(run(&request, "x").await, Done::First(b"x".to_vec()));
    pass(ms(1_000)).await; // its connection is made anew
    assert_eq!(run(&request, "again").await, Done::Unknown);
}

#[tokio::test(start_paused = true)]
async fn what_stands_there_and_is_no_mark_is_left() {
    let (nodes, (store, client)) = (Nodes::new(3), store());
    let locker = nodes.locker().build().unwrap();
    store[0].command(["SET", "k/outcome", "mine"]);
    let work = || ready(Ok::<_, Error>(Vec::new()));
    let error = locker.idempotent(&client, "k", KEEP).run::<_, _, Error>(work).await.unwrap_err();
    assert!(error.to_string().contains("something else uses the key"), "{error}");
    assert_eq!(store[0].value("k/outcome").as_deref(), Some(b"mine".as_slice()));
    let never = locker.idempotent(&client, "k", Duration::ZERO).run::<_, _, Error>(work).await;
    assert!(never.unwrap_err().to_string().contains("at least 1 ms"));
}
