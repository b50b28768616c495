//! A web service that takes payments: of all requests for an order, to all its processes, one pays.
//!
//! ```sh
//! cargo run -p quorlock-example-web-service                            # nodes of its own
//! cargo run -p quorlock-example-web-service -- redis://127.0.0.1:6379
//! curl -X POST http://127.0.0.1:3000/orders/7/payment
//! ```

#![expect(clippy::disallowed_methods, reason = "users sleep by tokio; this library by its clock")]

mod database;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use quorlock::Locker;
use quorlock::testing::Nodes;
use tokio::net::TcpListener;

use database::{Database, Payment};

#[derive(Clone)]
struct Service {
    locker: Locker,
    database: Arc<Database>,
}

/// What can go wrong, and what the client is told.
enum Refusal {
    AlreadyPaid,
    /// The lock ended before anything was written.
    TooLate,
    /// The lock could not be had, or was lost on the way.
    Lock(quorlock::Error),
}

impl From<quorlock::Error> for Refusal {
    fn from(error: quorlock::Error) -> Self {
        Self::Lock(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let try_again = |why: String| {
            (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "1")], why).into_response()
        };
        match self {
            Self::AlreadyPaid => (StatusCode::CONFLICT, "it is paid already\n").into_response(),
            Self::TooLate => try_again("nothing was paid: it took too long\n".into()),
            Self::Lock(error) if error.is_retryable() => try_again(format!("{error}\n")),
            Self::Lock(error) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
            }
        }
    }
}

/// Pays an order, once. A client that goes away ends this at any `.await`: the lock is released,
/// and the database is left as it is by then.
async fn pay(
    State(Service { locker, database }): State<Service>,
    Path(order): Path<u64>,
) -> Result<String, Refusal> {
    // A client waits two seconds for its turn, and is told within one where too few nodes answer.
    let request = locker.lock(format!("order:{order}")).wait(Duration::from_secs(2));
    let payment = request
        .run(|held| async move {
            if database.payment(order).await.is_some() {
                return Err(Refusal::AlreadyPaid);
            }
            let payment = Payment::new(order);
            if !held.is_valid() {
                return Err(Refusal::TooLate);
            }
            database.save(payment.clone()).await;
            Ok(payment)
        })
        .await?;
    Ok(format!("{payment}\n"))
}

fn routes(locker: Locker, database: Arc<Database>) -> Router {
    Router::new()
        .route("/orders/{order}/payment", post(pay))
        .with_state(Service { locker, database })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    let nodes = Nodes::new(3);
    let builder = if urls.is_empty() { nodes.locker() } else { Locker::quorum(urls)? };
    let locker = builder.prefix("shop:").build()?;
    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}", listener.local_addr()?);
    let routes = routes(locker.clone(), Arc::default());
    let ended = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("{error}");
        }
    };
    axum::serve(listener, routes).with_graceful_shutdown(ended).await?;
    // What is still held is released, and the nodes have heard it.
    locker.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
