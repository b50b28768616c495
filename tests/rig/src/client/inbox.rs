//! What a client is told on its standard input: to adopt locks, and, at its end, to end.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::line::Order;

/// Whether the client is to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// Reads the standard input to its end: the orders as they come, and the flag for its end.
pub(crate) fn listen() -> (Stop, UnboundedReceiver<Order>) {
    let stop = Stop::default();
    let (sender, orders) = unbounded_channel();
    let flag = stop.0.clone();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        for order in lines.filter_map(|line| Order::parse(&line)) {
            // A client that takes no orders still hears the end.
            let _ = sender.send(order);
        }
        flag.store(true, Ordering::SeqCst);
    });
    (stop, orders)
}
