//! `Cached`.

use std::cell::Cell;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use super::{all_at_once, ms, pass, store};
use crate::client::Client;
use crate::recipe::{CacheOptions, Cached, CachedError, OnUnavailable};
use crate::testing::Nodes;

type Cache = Cached<Client, String>;
type Found = Result<Option<Arc<[u8]>>, CachedError<String>>;

const TTL: Duration = ms(10_000);

/// Not early, and not at random.
fn exact() -> CacheOptions {
    CacheOptions { early: 0.0, jitter: 0.0, ..CacheOptions::default() }
}

fn caches<const N: usize>(nodes: &Nodes, client: &Client, options: &CacheOptions) -> [Cache; N] {
    let cache = |locker| Cached::with_options(client.clone(), locker, options.clone());
    [(); N].map(|()| cache(nodes.locker().build().unwrap()).unwrap())
}

/// Work of 200 ms that comes to so much, counted.
async fn work(count: &Cell<u32>) -> Result<Option<Vec<u8>>, String> {
    count.set(count.get() + 1);
    pass(ms(200)).await;
    Ok(Some(format!("value {}", count.get()).into()))
}

fn text(found: Found) -> String {
    String::from_utf8(found.unwrap().unwrap().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_value_that_all_miss_is_computed_once_in_all_processes() {
    let (nodes, (store, client)) = (Nodes::new(5), store());
    let (caches, count) = (caches::<8>(&nodes, &client, &exact()), Cell::new(0));
    let ask = async |number: usize| text(caches[number % 8].get("k", TTL, || work(&count)).await);
    let began = crate::clock::Clock::default().now();
    let told = all_at_once(200, ask).await;
    let took = crate::clock::Clock::default().now().since(began);
    assert_eq!((told, count.get()), (vec!["value 1".to_owned(); 200], 1));
    assert!(took < ms(220), "all had it when it was there: {took:?}");
    // Three of each process: at first, before the lock is asked for, and under it.
    let looks = store[0].calls("get");
    assert!(looks <= 8 * 3, "callers of a process look together: {looks}");
    assert_eq!(store[0].remaining("k"), Some(TTL - (took - ms(200))), "for as long as was asked");
    assert_eq!(text(caches[3].get("k", TTL, || work(&count)).await), "value 1");
    pass(TTL).await;
    assert_eq!(text(caches[3].get("k", TTL, || work(&count)).await), "value 2");
    pass(ms(1)).await;
    assert_eq!(nodes.holding("k/computed"), 0);
}

#[tokio::test(start_paused = true)]
async fn that_there_is_none_is_remembered_too() {
    let (nodes, (_store, client)) = (Nodes::new(1), store());
    let options = CacheOptions { negative_ttl: Some(ms(1_000)), ..exact() };
    let [cache] = caches(&nodes, &client, &options);
    let count = Cell::new(0);
    let none = || {
        count.set(count.get() + 1);
        ready(Ok(None))
    };
    for _ in 0..3 {
        assert_eq!(cache.get("k", TTL, none).await.unwrap(), None);
    }
    assert_eq!(count.get(), 1);
    pass(ms(1_000)).await;
    assert_eq!(cache.get("k", TTL, none).await.unwrap(), None);
    assert_eq!(count.get(), 2, "for its own time");
}

#[tokio::test(start_paused = true)]
async fn an_error_is_told_to_each_that_waited_and_is_not_kept() {
    let (nodes, (_store, client)) = (Nodes::new(3), store());
    let [cache] = caches(&nodes, &client, &exact());
    let count = Cell::new(0);
    let ask = async |_| {
        let fails = || async {
            count.set(count.get() + 1);
            pass(ms(200)).await;
            Err("no".to_owned())
        };
        cache.get("k", TTL, fails).await
    };
    for told in all_at_once(20, ask).await {
        assert!(matches!(&told, Err(CachedError::Compute(error)) if **error == "no"), "{told:?}");
    }
    assert_eq!(count.get(), 1);
    assert_eq!(text(cache.get("k", TTL, || work(&count)).await), "value 2");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_leaves_it_to_the_next() {
    let (nodes, (_store, client)) = (Nodes::new(3), store());
    let ([cache], count) = (caches(&nodes, &client, &exact()), Cell::new(0));
    let mut first = Box::pin(cache.get("k", TTL, || work(&count)));
    let second = cache.get("k", TTL, || work(&count));
    tokio::pin!(second);
    tokio::select! {
        biased;
        _ = first.as_mut() => unreachable!(),
        _ = second.as_mut() => unreachable!(),
        () = pass(ms(100)) => {}
    }
    drop(first);
    assert_eq!(text(second.await), "value 2");
}

/// One reader computes it anew, and the others have it as it is meanwhile.
#[tokio::test(start_paused = true)]
async fn a_stale_value_serves_while_one_computes_it_anew() {
    let (nodes, (_store, client)) = (Nodes::new(3), store());
    let options = CacheOptions { stale: ms(5_000), ..exact() };
    let ([one, two], count) = (caches(&nodes, &client, &options), Cell::new(0));
    assert_eq!(text(one.get("k", TTL, || work(&count)).await), "value 1");
    pass(TTL + ms(1_000)).await;
    let ask = async |number: usize| {
        pass(ms(number as u64)).await;
        let cache = if number % 2 == 0 { &one } else { &two };
        text(cache.get("k", TTL, || work(&count)).await)
    };
    let mut told = all_at_once(20, ask).await;
    assert_eq!((told.remove(0), told), ("value 2".into(), vec!["value 1".to_owned(); 19]));
    // By the first one, the second, and the first reader of the other process.
    assert_eq!(nodes[0].calls("set"), 3, "readers ask for no lock that others hold");
    // Behind its bound it is gone.
    pass(TTL + ms(5_000)).await;
    assert_eq!(text(two.get("k", TTL, || work(&count)).await), "value 3");
}

/// Of readers that come all the time, one computes it anew before it ends: none ever misses it.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_read_all_the_time_never_ends() {
    let (nodes, (_store, client)) = (Nodes::new(3), store());
    let options = CacheOptions { jitter: 0.0, ..CacheOptions::default() };
    let ([one, two], count, waited) =
        (caches(&nodes, &client, &options), Cell::new(0), Cell::new(0));
    assert_eq!(text(one.get("k", ms(2_000), || work(&count)).await), "value 1");
    let ask = async |number: usize| {
        let cache = if number % 2 == 0 { &one } else { &two };
        let clock = crate::clock::Clock::default();
        let end = clock.now().plus(ms(60_000));
        while clock.now() < end {
            let began = clock.now();
            cache.get("k", ms(2_000), || work(&count)).await.unwrap();
            if clock.now().since(began) > ms(100) {
                waited.set(waited.get() + 1);
            }
            pass(ms(20)).await;
        }
    };
    all_at_once(64, ask).await;
    let (anew, waited) = (count.get() - 1, waited.get());
    assert!((30..90).contains(&anew), "about once in its time, and a little sooner: {anew}");
    assert_eq!(waited, anew, "none waited but who computed");
}

#[tokio::test(start_paused = true)]
async fn where_no_lock_can_be_had_it_is_done_as_was_asked() {
    for policy in [OnUnavailable::Compute, OnUnavailable::Stale, OnUnavailable::Fail] {
        let (nodes, (_store, client)) = (Nodes::new(3), store());
        let options = CacheOptions { stale: TTL, on_unavailable: policy, ..exact() };
        let ([cache], count) = (caches(&nodes, &client, &options), Cell::new(0));
        assert_eq!(text(cache.get("stale", TTL, || work(&count)).await), "value 1");
        pass(TTL).await;
        nodes.iter().for_each(|node| node.stop());
        let stale = cache.get("stale", TTL, || work(&count)).await;
        let missed = cache.get("missed", TTL, || work(&count)).await;
        let is_away = |found: &Found| match found {
            Err(CachedError::Lock(error)) => error.is_unavailable(),
            _ => false,
        };
        match policy {
            OnUnavailable::Compute => {
                assert_eq!((text(stale), text(missed)), ("value 2".into(), "value 3".into()));
            }
            OnUnavailable::Stale => assert!(is_away(&missed) && text(stale) == "value 1"),
            OnUnavailable::Fail => assert!(is_away(&stale) && is_away(&missed)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_is_an_error_and_what_cannot_be_stored_is_given() {
    let (nodes, (store, client)) = (Nodes::new(1), store());
    let ([cache], count) = (caches(&nodes, &client, &exact()), Cell::new(0));
    let denied = || async {
        store[0].stop();
        work(&count).await
    };
    assert_eq!(text(cache.get("k", TTL, denied).await), "value 1");
    let away = cache.get("k", TTL, || work(&count)).await;
    assert!(matches!(away, Err(CachedError::Store(_))), "{away:?}");
    let never = cache.get("k", Duration::ZERO, || work(&count)).await;
    assert!(matches!(never, Err(CachedError::Lock(error)) if error.is_misuse()));
}

/// What is there is given where it cannot be computed anew, for whatever reason.
#[tokio::test(start_paused = true)]
async fn a_value_that_is_there_is_not_lost_to_a_failed_refresh() {
    for policy in [OnUnavailable::Compute, OnUnavailable::Stale, OnUnavailable::Fail] {
        let (nodes, (_store, client)) = (Nodes::new(3), store());
        // Each reader is to compute it anew.
        let options = CacheOptions { early: 1e9, on_unavailable: policy, ..exact() };
        let ([cache], count) = (caches(&nodes, &client, &options), Cell::new(0));
        assert_eq!(text(cache.get("k", TTL, || work(&count)).await), "value 1");
        let failing = || {
            count.set(count.get() + 1);
            ready(Err("no".to_owned()))
        };
        assert_eq!(text(cache.get("k", TTL, failing).await), "value 1");
        // For as long as it takes none tries again.
        assert_eq!(text(cache.get("k", TTL, failing).await), "value 1");
        assert_eq!(count.get(), 2, "{policy:?}");
        pass(ms(201)).await;
        nodes.iter().for_each(|node| node.stop());
        let computes = policy == OnUnavailable::Compute;
        let value = if computes { "value 3" } else { "value 1" };
        assert_eq!(text(cache.get("k", TTL, || work(&count)).await), value, "{policy:?}");
    }
}

/// The one that computed has stored nothing: of those who waited another does, and then another.
#[tokio::test(start_paused = true)]
async fn where_one_has_failed_the_others_compute_in_turn() {
    let (nodes, (_store, client)) = (Nodes::new(3), store());
    let (caches, count) = (caches::<5>(&nodes, &client, &exact()), Cell::new(0));
    let ask = async |number: usize| {
        let fails_twice = || async {
            count.set(count.get() + 1);
            pass(ms(200)).await;
            if count.get() < 3 { Err("no".to_owned()) } else { Ok(Some(b"value".to_vec())) }
        };
        caches[number].get("k", TTL, fails_twice).await
    };
    let told = all_at_once(5, ask).await;
    let failed = told.iter().filter(|told| told.is_err()).count();
    assert_eq!((failed, count.get()), (2, 3), "{told:?}");
}

#[tokio::test]
async fn an_option_that_cannot_be_is_said() {
    let check = |set: &dyn Fn(&mut CacheOptions)| {
        let mut options = CacheOptions::default();
        set(&mut options);
        let locker = Nodes::new(1).locker().build().unwrap();
        let client = Client::new("redis://127.0.0.1:1").unwrap();
        Cache::with_options(client, locker, options).unwrap_err().to_string()
    };
    for early in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(check(&|options| options.early = early).contains("`early`"));
    }
    for jitter in [-0.1, 1.1, f64::NAN] {
        assert!(check(&|options| options.jitter = jitter).contains("`jitter`"));
    }
    assert!(check(&|options| options.stale = Duration::MAX).contains("at most ten years"));
    assert!(check(&|options| options.negative_ttl = Some(Duration::MAX)).contains("ten years"));
}

#[tokio::test(start_paused = true)]
async fn what_stands_there_and_is_no_entry_is_left() {
    let (nodes, (store, client)) = (Nodes::new(1), store());
    let ([cache], count) = (caches(&nodes, &client, &exact()), Cell::new(0));
    for words in [&["SET", "k", "mine"][..], &["SET", "k", "mine", "PX", "60000"]] {
        store[0].command(words);
        let error = cache.get("k", TTL, || work(&count)).await.unwrap_err();
        assert!(error.to_string().contains("something else uses the key"), "{error}");
        assert_eq!(store[0].value("k").as_deref(), Some(b"mine".as_slice()));
    }
    assert_eq!(count.get(), 0);
}
