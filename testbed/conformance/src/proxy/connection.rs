//! Connections of executors. Each can be reset, alone or together with all others.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{Shared, forward::forward};

/// The flow-control window, in bytes, large enough for a whole snapshot.
const WINDOW: u32 = 16 << 20;
/// The pause after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Too many files are open. Wait until one is closed.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let reset = {
            let state = shared.state();
            (!state.cut).then(|| state.connections.child_token())
        };
        if let Some(reset) = reset {
            connections.spawn(serve(stream, Arc::clone(&shared), reset));
        } else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            abandon(&stream);
        }
    }
}

/// Serves a connection until it ends or is reset.
async fn serve(stream: TcpStream, shared: Arc<Shared>, reset: CancellationToken) {
    // Without TCP_NODELAY responses are only later.
    let _ = stream.set_nodelay(true);
    abandon(&stream);
    let of_this = reset.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (shared, reset) = (Arc::clone(&shared), of_this.clone());
        async move { Ok::<_, Infallible>(forward(shared, reset, request).await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        // The client has closed the connection.
        _ = connection => {}
        () = reset.cancelled() => {}
    }
}

/// Makes closing the socket send a reset instead of an orderly end.
fn abandon(stream: &TcpStream) {
    // On failure the connection still ends.
    let _ = stream.set_zero_linger();
}
