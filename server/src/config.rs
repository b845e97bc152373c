//! What a server is told, after flags and environment have been read.

use std::{num::NonZeroUsize, thread::available_parallelism, time::Duration};

use crate::{limits::Limits, size::ByteSize};

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct Config {
    /// What one request may hold.
    pub limits: Limits,
    /// Most bytes of one message, before and after decompression.
    pub max_message_size: ByteSize,
    /// Most bytes of memory for requests, from their arrival to the end of their answers.
    pub max_request_memory: ByteSize,
    /// Most bytes of memory for decoded buckets.
    pub bucket_cache_size: ByteSize,
    /// Plans computed at the same time. One client has at most four fifths of them.
    pub max_concurrent_plans: usize,
    /// Calls that wait for one of these; further ones are shed.
    pub max_queued_plans: usize,
    /// Questions of one stream in work at the same time.
    pub max_plans_per_stream: NonZeroUsize,
    /// Streams open at the same time, on all connections; further ones are shed.
    pub max_streams: usize,
    /// How long a stream may ask nothing before it makes room for another one that there is no room for.
    pub stream_idle_timeout: Duration,
    /// Longest time of a question on a stream, and of any other call, its message's way over the network included.
    pub longest_call: Duration,
    /// Longest time that a message may be on its way, or a piece of its answer.
    pub transfer_timeout: Duration,
    /// Longest time from the request to stop until the server has stopped.
    pub drain_timeout: Duration,
    /// Connections at the same time; further ones are closed.
    pub max_connections: usize,
    /// HTTP/2 streams, that is calls, of one connection at the same time.
    pub max_calls_per_connection: u32,
    /// How often an idle connection is probed; also how long the answer may take.
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
