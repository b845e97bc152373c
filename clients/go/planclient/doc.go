// Package planclient is a client of the planning service. It chooses the replica that is asked, bounds and repeats calls, sends only
// the buckets that a replica lacks, and follows the health of the replicas.
//
// # Balancing
//
// The replica of a workload is chosen by rendezvous hashing on the workload's uid. So a workload asks the same replica again, which has its
// buckets, and a replica that goes away moves only its own workloads. Replicas that fail or drain are asked last.
//
// gRPC's own balancers are not suitable here. A balancer picks the replica when the request is sent, but which buckets a request carries depends
// on the replica that gets it. pick_first and round_robin know nothing of workloads. ring_hash can hash a header, but it picks the same
// replica again after a failed call. The dns resolver looks a name up again only when a connection breaks, and 30 seconds after the last
// look-up at the earliest: behind a headless Service a new replica would get no work until an old one goes away. gRPC's health checking takes
// a server without a health service for a healthy one. So this client has a connection of its own to each replica, watches the health of
// each, and looks names up every ten seconds and whenever a replica fails.
//
// # Security
//
// Connections are plain text, unless [WithTransportCredentials] is given. [New] refuses plain text to servers that are not on loopback
// (127.0.0.0/8, ::1 and localhost), unless [WithPlaintext] is given because something else protects the connections. A server that is
// written https://HOST:PORT always needs credentials, and its certificate must be one for HOST. So must the certificates of all
// replicas that dns:///HOST:PORT leads to.
//
// # Failures
//
// A call has one deadline, and each attempt gets a share of the time. A replica that failed is asked last until a health check
// (grpc.health.v1) succeeds. A replica that drains says so in its health, and is asked after all others. When a replica lacks buckets,
// the client sends it the same request again with these buckets inline, and finally with all buckets. A request of more than
// [WithMaxPieceBytes] is sent in several calls. After an error the caller must write nothing to the cluster.
//
// # Traces
//
// Every connection has the stats handler of otelgrpc. Calls are spans of the global tracer provider, or of the provider of
// [WithTracerProvider], and the global propagator sends their context. The span of a call for a plan also has the size of the request, and
// the verdict and the number of actions of the plan. Health checks have no spans.
package planclient
