//! The service over TCP, on nodes inside the process.

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use quorlock::Locker;
use quorlock::testing::Nodes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::database::Database;
use crate::routes;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

async fn serve(locker: Locker, database: Arc<Database>) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, routes(locker, database)).await });
    Ok(addr)
}

/// Its status line.
async fn pay(service: SocketAddr, order: u64) -> Result<String> {
    let mut stream = TcpStream::connect(service).await?;
    let request = format!(
        "POST /orders/{order}/payment HTTP/1.1\r\nhost: {service}\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_requests_at_once_each_order_is_paid_by_one() -> Result<()> {
    let nodes = Nodes::new(3);
    let database = Arc::new(Database::default());
    // Two processes of the service, which know nothing of each other.
    let mut services = Vec::new();
    for _ in 0..2 {
        services.push(serve(nodes.locker().build()?, database.clone()).await?);
    }
    let mut requests = JoinSet::new();
    for request in 0..200 {
        requests.spawn(pay(services[request % 2], request as u64 / 10));
    }
    let mut answers = BTreeMap::new();
    while let Some(answer) = requests.join_next().await {
        *answers.entry(answer??).or_insert(0) += 1;
    }
    let expected = [("HTTP/1.1 200 OK", 20), ("HTTP/1.1 409 Conflict", 180)];
    assert_eq!(answers, expected.map(|(line, count)| (line.to_owned(), count)).into());
    assert_eq!(database.paid(), vec![1; 20]);
    Ok(())
}

#[tokio::test]
async fn without_its_nodes_the_service_says_when_to_come_again() -> Result<()> {
    let nodes = Nodes::new(3);
    let service = serve(nodes.locker().build()?, Arc::default()).await?;
    nodes.iter().for_each(|node| node.stop());
    assert_eq!(pay(service, 7).await?, "HTTP/1.1 503 Service Unavailable");
    Ok(())
}
