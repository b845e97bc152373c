//! Command-line flags. Each flag has an environment variable.

use std::{net::SocketAddr, num::NonZeroUsize, time::Duration};

use clap::Parser;
use nodewise_telemetry::LogFormat;

use crate::{config::Config, limits::Limits, size::ByteSize};

mod tls;

pub use tls::{TlsArgs, TlsError};

/// Plans what must happen next for a Kubernetes workload, over gRPC (nodewise.v1). Keeps no state and needs no access to a
/// cluster.
#[derive(Debug, Clone, Parser)]
#[command(name = "nodewise-server", version)]
pub struct Args {
    /// Address to listen on. With port 0 the system chooses a free port; the log line `listening on` contains it
    #[arg(
        long,
        env = "NODEWISE_LISTEN",
        default_value = "127.0.0.1:7443",
        value_name = "ADDRESS"
    )]
    pub listen: SocketAddr,

    /// TLS of the gRPC address
    #[command(flatten)]
    pub tls: TlsArgs,

    /// Address of `/healthz`, `/readyz` and `/metrics`, over HTTP [default: not served]
    #[arg(long, env = "NODEWISE_HTTP_LISTEN", value_name = "ADDRESS")]
    pub http_listen: Option<SocketAddr>,

    /// Form of the log on standard error
    #[arg(long, env = "NODEWISE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Human)]
    pub log_format: LogFormat,

    /// What to log: a level, or directives such as `info,nodewise_server=debug`
    #[arg(long, env = "NODEWISE_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,

    /// Most bytes of one message, before and after decompression
    #[arg(
        long,
        env = "NODEWISE_MAX_MESSAGE_SIZE",
        default_value = "64MiB",
        value_name = "SIZE"
    )]
    pub max_message_size: ByteSize,

    /// Memory for requests and their responses: at least ten times the longest message. Requests over it are refused, and
    /// clients retry
    #[arg(
        long,
        env = "NODEWISE_MAX_REQUEST_MEMORY",
        default_value = "1GiB",
        value_name = "SIZE"
    )]
    pub max_request_memory: ByteSize,

    /// Memory for the cache of decoded buckets, about 0.2 kB for each pod and each node (100 DaemonSets on 5,000 nodes: 100 MB);
    /// 0 disables the cache
    #[arg(
        long,
        env = "NODEWISE_BUCKET_CACHE_SIZE",
        default_value = "1GiB",
        value_name = "SIZE"
    )]
    pub bucket_cache_size: ByteSize,

    /// Most nodes in a snapshot
    #[arg(long, env = "NODEWISE_MAX_NODES", default_value_t = Limits::default().nodes, value_name = "N")]
    pub max_nodes: u32,

    /// Most pods in a snapshot
    #[arg(long, env = "NODEWISE_MAX_PODS", default_value_t = Limits::default().pods, value_name = "N")]
    pub max_pods: u32,

    /// Most buckets of nodes, and of pods, in a snapshot
    #[arg(long, env = "NODEWISE_MAX_BUCKETS", default_value_t = Limits::default().buckets, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_buckets: u32,

    /// Most revisions of a workload that are read. If there are more, the oldest are left out and the plan has a warning
    #[arg(long, env = "NODEWISE_MAX_REVISIONS", default_value_t = Limits::default().revisions, value_name = "N")]
    pub max_revisions: u32,

    /// Most plans computed at the same time. One client gets at most four fifths of them [default: twice the processors]
    #[arg(long, env = "NODEWISE_MAX_CONCURRENT_PLANS", value_name = "N")]
    pub max_concurrent_plans: Option<NonZeroUsize>,

    /// Most calls in the queue for planning. Calls over it are refused, and clients retry [default: eight times the processors]
    #[arg(long, env = "NODEWISE_MAX_QUEUED_PLANS", value_name = "N")]
    pub max_queued_plans: Option<usize>,

    /// Most requests of one stream in progress at the same time
    #[arg(long, env = "NODEWISE_MAX_PLANS_PER_STREAM", default_value_t = Config::default().max_plans_per_stream,
          value_name = "N")]
    pub max_plans_per_stream: NonZeroUsize,

    /// Most open streams, on all connections together. Streams over it are refused, and clients retry
    #[arg(long, env = "NODEWISE_MAX_STREAMS", default_value_t = Config::default().max_streams, value_name = "N")]
    pub max_streams: usize,

    /// Idle time after which the server may end a stream to accept another one. While there is room, idle streams stay open
    #[arg(long, env = "NODEWISE_STREAM_IDLE_TIMEOUT", default_value = "60s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub stream_idle_timeout: Duration,

    /// Most open connections. Connections over it are closed. One address may have a quarter of them
    #[arg(long, env = "NODEWISE_MAX_CONNECTIONS", default_value_t = Config::default().max_connections, value_name = "N")]
    pub max_connections: usize,

    /// Most concurrent calls on one connection
    #[arg(long, env = "NODEWISE_MAX_CALLS_PER_CONNECTION",
          default_value_t = Config::default().max_calls_per_connection, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub max_calls_per_connection: u32,

    /// Longest time of one call, or of one request on a stream, whatever its own deadline. Streams themselves may last longer
    #[arg(long, env = "NODEWISE_LONGEST_CALL", default_value = "60s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub longest_call: Duration,

    /// Longest time for a request message to arrive, and for a client to read nothing of a response
    #[arg(long, env = "NODEWISE_TRANSFER_TIMEOUT", default_value = "10s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub transfer_timeout: Duration,

    /// Longest time from SIGTERM to the end of the process
    #[arg(long, env = "NODEWISE_DRAIN_TIMEOUT", default_value = "20s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub drain_timeout: Duration,

    /// Interval of HTTP/2 keepalive pings on an idle connection
    #[arg(long, env = "NODEWISE_KEEPALIVE", default_value = "20s", value_name = "DURATION",
          value_parser = humantime::parse_duration)]
    pub keepalive: Duration,

    /// Serve gRPC reflection, for tools like grpcurl
    #[arg(long, env = "NODEWISE_REFLECTION")]
    pub reflection: bool,
}

impl Args {
    /// The configuration that these flags describe.
    #[must_use]
    pub fn config(&self) -> Config {
        let defaults = Config::default();
        Config {
            limits: Limits {
                nodes: self.max_nodes,
                pods: self.max_pods,
                buckets: self.max_buckets,
                revisions: self.max_revisions,
            },
            max_message_size: self.max_message_size,
            max_request_memory: self.max_request_memory,
            bucket_cache_size: self.bucket_cache_size,
            max_concurrent_plans: self
                .max_concurrent_plans
                .map_or(defaults.max_concurrent_plans, NonZeroUsize::get),
            max_queued_plans: self.max_queued_plans.unwrap_or(defaults.max_queued_plans),
            max_plans_per_stream: self.max_plans_per_stream,
            max_streams: self.max_streams,
            stream_idle_timeout: self.stream_idle_timeout,
            longest_call: self.longest_call,
            transfer_timeout: self.transfer_timeout,
            drain_timeout: self.drain_timeout,
            max_connections: self.max_connections,
            max_calls_per_connection: self.max_calls_per_connection,
            keepalive: self.keepalive,
            reflection: self.reflection,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_flag_is_an_environment_variable_of_the_same_name() {
        let command = Args::command();
        command.clone().debug_assert();
        let flags = command
            .get_arguments()
            .filter(|flag| !["help", "version"].contains(&flag.get_id().as_str()));
        let mut count = 0;
        for flag in flags {
            let name = flag
                .get_long()
                .expect("flags have long names")
                .to_uppercase()
                .replace('-', "_");
            assert_eq!(
                flag.get_env().expect("a variable").to_str().unwrap(),
                format!("NODEWISE_{name}")
            );
            count += 1;
        }
        assert!(count > 10, "{count} flags");
    }

    #[test]
    fn flags_without_a_value_mean_the_defaults() {
        let config = Args::parse_from(["nodewise-server"]).config();
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn sizes_and_durations_are_written_for_people() {
        let args = [
            "nodewise-server",
            "--max-message-size",
            "128MiB",
            "--drain-timeout",
            "1m 5s",
            "--listen",
            "[::1]:0",
        ];
        let args = Args::parse_from(args);
        assert_eq!(args.config().max_message_size, ByteSize::mib(128));
        assert_eq!(args.config().drain_timeout, Duration::from_secs(65));
        assert!(args.listen.is_ipv6());
        assert!(Args::try_parse_from(["nodewise-server", "--max-message-size", "big"]).is_err());
        assert!(Args::try_parse_from(["nodewise-server", "--max-concurrent-plans", "0"]).is_err());
    }
}
