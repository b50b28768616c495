//! `LockRequest::until`.

use std::cell::Cell;
use std::future::ready;

use super::{all_at_once, ms, pass};
use crate::error::Error;
use crate::recipe::Until;
use crate::testing::Nodes;

/// Many wait for one that does the work: it is done once, and each of them is told what it came to.
#[tokio::test(start_paused = true)]
async fn all_who_wait_find_what_the_first_has_done() {
    let nodes = Nodes::new(5);
    let lockers = [(); 4].map(|()| nodes.locker().build().unwrap());
    let (stored, computed) = (Cell::new(None), Cell::new(0));
    let ask = async |number: usize| {
        let request = lockers[number % lockers.len()].lock("k").wait(ms(5_000));
        match request.until(|| ready(Ok::<_, Error>(stored.get()))).await.unwrap() {
            Until::Found(value) => value,
            Until::Held(guard) => {
                computed.set(computed.get() + 1);
                pass(ms(100)).await;
                stored.set(Some(7));
                assert!(guard.release().await.unwrap().is_released());
                7
            }
        }
    };
    let asked = all_at_once(20, ask).await;
    assert_eq!((asked, computed.get()), (vec![7; 20], 1));
    pass(ms(1)).await;
    assert_eq!(nodes.holding("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_there_already_is_found_without_a_command() {
    let nodes = Nodes::new(3);
    let locker = nodes.locker().build().unwrap();
    let found = locker.lock("k").until(|| ready(Ok::<_, Error>(Some("v")))).await.unwrap();
    assert!(matches!(found, Until::Found("v")));
    assert!(nodes.iter().all(|node| node.calls("set") == 0));
}

/// It is not there, and then it is: between the first look and the lock.
#[tokio::test(start_paused = true)]
async fn a_look_under_the_lock_that_finds_it_lets_go() {
    let nodes = Nodes::new(3);
    let locker = nodes.locker().build().unwrap();
    let looks = Cell::new(0);
    let look = || {
        looks.set(looks.get() + 1);
        ready(Ok::<_, Error>((looks.get() == 2).then_some("v")))
    };
    let found = locker.lock("k").until(look).await.unwrap();
    assert!(matches!(found, Until::Found("v")), "{found:?}");
    pass(ms(1)).await;
    assert_eq!(nodes.holding("k"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_over_ends_with_one_more_look() {
    let nodes = Nodes::new(3);
    let [locker, other] = [(); 2].map(|()| nodes.locker().build().unwrap());
    let _held = other.lock("k").await.unwrap();
    let found = |at: u32| {
        let mut looks = 0;
        let look = move || {
            looks += 1;
            ready(Ok::<_, Error>((looks == at).then_some("v")))
        };
        locker.lock("k").wait(ms(300)).until(look)
    };
    assert!(matches!(found(2).await, Ok(Until::Found("v"))));
    assert!(found(3).await.unwrap_err().is_contended());
}

#[tokio::test(start_paused = true)]
async fn a_look_that_fails_ends_it_and_leaves_no_lock() {
    let nodes = Nodes::new(3);
    let locker = nodes.locker().build().unwrap();
    for at in [1, 2] {
        let looks = Cell::new(0);
        let look = || {
            looks.set(looks.get() + 1);
            ready(if looks.get() == at { Err(Error::misuse("no")) } else { Ok(None::<()>) })
        };
        assert!(locker.lock("k").until(look).await.unwrap_err().is_misuse());
        pass(ms(1)).await;
        assert_eq!(nodes.holding("k"), 0);
    }
}
