// Package planclient asks replicas of the planning service: which one is asked, for how long, what is sent inline, and what
// happens when one does not answer.
//
// # Balancing
//
// A workload's replica is chosen by rendezvous hashing on its uid, so that the replica that has the workload's buckets is asked
// again, and one that goes moves only its own workloads. Who fails or is about to end is asked last. gRPC's own balancers
// cannot do that: pick_first and round_robin know nothing of workloads, and a balancer's set of addresses is renewed only
// when a connection breaks. Behind a headless Service a new replica would get no work until an old one goes, since the
// dns resolver looks a name up again only when it is asked to. So each replica has a connection of its own here, and a name
// is looked up every ten seconds and whenever a replica fails.
//
// # Security
//
// Connections are plain text, unless [WithTransportCredentials] says otherwise. That is for servers on loopback: 127.0.0.0/8, ::1 and
// localhost. [New] refuses others without credentials, unless [WithPlaintext] says that something else protects the connections. A
// server that is written https://HOST:PORT is never spoken to without credentials. Whoever is reached has to prove to be HOST, be it at an address that a name was found at.
//
// # Failures
//
// A call has one deadline, of which each attempt has a share. A replica that does not answer is left alone until a health
// check (grpc.health.v1) succeeds; one that drains says so there, and is asked no more. A replica that lacks buckets is sent
// the same call again with those inline, at last with all; in several calls when they are more than [WithMaxPieceBytes] allows. After any
// error nothing may be written to the cluster.
//
// # Traces
//
// Every connection has the stats handler of otelgrpc: calls are spans of the global tracer provider, or that of [WithTracerProvider],
// and their context goes out with the global propagator. The span of a plan tells besides how large the request was, and what was
// answered. Health checks have no spans.
package planclient
