//! A TCP proxy that can delay responses.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::{JoinHandle, JoinSet},
};

/// A TCP proxy that delays the bytes from the server. It ends when dropped.
#[derive(Debug)]
pub struct SlowProxy {
    address: SocketAddr,
    delay: Arc<AtomicU64>,
    relaying: JoinHandle<()>,
}

impl SlowProxy {
    /// A proxy to the server at `to`, without a delay.
    pub async fn to(to: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("a free port")?;
        let address = listener.local_addr()?;
        let delay = Arc::new(AtomicU64::new(0));
        let relaying = tokio::spawn(relay(listener, to, Arc::clone(&delay)));
        Ok(Self {
            address,
            delay,
            relaying,
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on bytes from the server are delayed by this.
    pub fn delay(&self, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.delay.store(delay, Ordering::Relaxed);
    }
}

impl Drop for SlowProxy {
    fn drop(&mut self) {
        self.relaying.abort();
    }
}

async fn relay(listener: TcpListener, to: SocketAddr, delay: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        // If the server is not reachable, the client's connection is closed.
        if let Ok(server) = TcpStream::connect(to).await {
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            connections.spawn(copy(from_client, to_server, Arc::default()));
            connections.spawn(copy(from_server, to_client, Arc::clone(&delay)));
        }
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Arc<AtomicU64>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        tokio::time::sleep(Duration::from_millis(delay.load(Ordering::Relaxed))).await;
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}
