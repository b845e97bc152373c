//! The configuration of a server, after flags and environment have been read.

use std::{num::NonZeroUsize, thread::available_parallelism, time::Duration};

use crate::{limits::Limits, size::ByteSize};

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// Limits of one request.
    pub limits: Limits,
    /// Most bytes of one message, before and after decompression.
    pub max_message_size: ByteSize,
    /// Most bytes of memory for requests, from their arrival until their responses are sent.
    pub max_request_memory: ByteSize,
    /// Most bytes of memory for decoded buckets.
    pub bucket_cache_size: ByteSize,
    /// Most plans computed at the same time. One client gets at most four fifths of them.
    pub max_concurrent_plans: usize,
    /// Most calls in the queue for planning. The server sheds calls over it.
    pub max_queued_plans: usize,
    /// Most requests of one stream in progress at the same time.
    pub max_plans_per_stream: NonZeroUsize,
    /// Most open streams, on all connections together. The server sheds streams over it.
    pub max_streams: usize,
    /// Idle time after which the server may end a stream to accept another one. Only used at the limit of `max_streams`.
    pub stream_idle_timeout: Duration,
    /// Longest time of a call other than a stream, and of one request on a stream. Includes the time for the message to arrive.
    pub longest_call: Duration,
    /// Longest time for a request message to arrive, and for a client to read a chunk of a response.
    pub transfer_timeout: Duration,
    /// Longest time from the shutdown signal until the server has stopped.
    pub drain_timeout: Duration,
    /// Most open connections. The server closes connections over it.
    pub max_connections: usize,
    /// Most concurrent calls (HTTP/2 streams) on one connection.
    pub max_calls_per_connection: u32,
    /// Interval of HTTP/2 keepalive pings on an idle connection, and their timeout.
    pub keepalive: Duration,
    /// Serve gRPC reflection.
    pub reflection: bool,
}

impl Default for Config {
    fn default() -> Self {
        let parallelism = available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            limits: Limits::default(),
            max_message_size: ByteSize::mib(64),
            max_request_memory: ByteSize::mib(1024),
            bucket_cache_size: ByteSize::mib(1024),
            max_concurrent_plans: 2 * parallelism,
            max_queued_plans: 8 * parallelism,
            max_plans_per_stream: NonZeroUsize::new(16).expect("16 is not 0"),
            max_streams: 32,
            stream_idle_timeout: Duration::from_mins(1),
            longest_call: Duration::from_mins(1),
            transfer_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(20),
            max_connections: 256,
            max_calls_per_connection: 128,
            keepalive: Duration::from_secs(20),
            reflection: false,
        }
    }
}
