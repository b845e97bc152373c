//! A server in this process, on a free port.

use std::{future::Future, net::SocketAddr, time::Duration};

use nodewise_proto::v1::reconcile_service_client::ReconcileServiceClient;
use nodewise_server::{Config, Ended, Error, run};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::Instant};
use tonic::transport::Channel;

use super::SOON;

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    shutdown: Option<oneshot::Sender<()>>,
    running: JoinHandle<Result<Ended, Error>>,
}

impl Server {
    pub async fn start(config: Config) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().unwrap();
        let (shutdown, stop) = oneshot::channel::<()>();
        let running = tokio::spawn(run(config, listener, async move {
            let _ = stop.await;
        }));
        Self {
            address,
            shutdown: Some(shutdown),
            running,
        }
    }

    pub async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address))
            .unwrap()
            .connect()
            .await
            .expect("a connection")
    }

    pub async fn client(&self) -> ReconcileServiceClient<Channel> {
        ReconcileServiceClient::new(self.channel().await).max_decoding_message_size(usize::MAX)
    }

    /// Asks the server to stop.
    pub fn stop(&mut self) {
        let _ = self.shutdown.take().expect("asked once").send(());
    }

    /// Waits for the end of the server.
    pub async fn ended(self) -> Ended {
        tokio::time::timeout(SOON, self.running)
            .await
            .expect("ends in time")
            .unwrap()
            .expect("no error")
    }
}

/// Polls `ask` until it returns a value.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + SOON;
    while Instant::now() < deadline {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("timed out: {what}");
}
