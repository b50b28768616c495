//! What stands for a database: it takes a while, and lets two requests do the same at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A round trip to a database.
const TAKES: Duration = Duration::from_millis(1);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Payment {
    order: u64,
}

impl Payment {
    pub(crate) fn new(order: u64) -> Self {
        Self { order }
    }
}

impl fmt::Display for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "order {} is paid", self.order)
    }
}

/// Payments, each as often as it was saved: a second one for an order is the harm.
#[derive(Default)]
pub(crate) struct Database(Mutex<BTreeMap<u64, Vec<Payment>>>);

impl Database {
    pub(crate) async fn payment(&self, order: u64) -> Option<Payment> {
        tokio::time::sleep(TAKES).await;
        self.with(|payments| payments.get(&order)?.first().cloned())
    }

    pub(crate) async fn save(&self, payment: Payment) {
        tokio::time::sleep(TAKES).await;
        self.with(|payments| payments.entry(payment.order).or_default().push(payment));
    }

    /// How often each order was paid.
    #[cfg(test)]
    pub(crate) fn paid(&self) -> Vec<usize> {
        self.with(|payments| payments.values().map(Vec::len).collect())
    }

    fn with<R>(&self, change: impl FnOnce(&mut BTreeMap<u64, Vec<Payment>>) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
