// Package nodewise is an executor for the planning service: it watches a cluster, asks the service what must happen next for each
// DaemonSet, applies the plan and reports back.
//
// # A controller
//
//	secured := planclient.WithTransportCredentials(credentials.NewTLS(tlsConfig))
//	planner, err := planclient.New(ctx, []string{"dns:///planner.tools.svc:7443"}, secured)
//	...
//	reconciler, err := nodewise.New(config, planner)
//	...
//	err = reconciler.Run(ctx)
//
// [Reconciler.Run] has watches, a work queue and workers of its own. A controller that has these already feeds the Reconciler
// with [Reconciler.Start], which puts workloads into its queue, waits for [Reconciler.WaitForSync], and calls [Reconciler.Reconcile] for
// what it takes out; package ctrl does that for controller-runtime. [Reconciler.Ready] says why nothing can be done, if so.
//
// # What is owned
//
// All DaemonSets of the cluster, unless [WithNamespace], [WithSelector] or [WithPredicate] say otherwise. These are asked about the very
// object that the service plans for. A filter in front of [Reconciler.Reconcile] only saves work: what it sees may be older or newer,
// so it does not limit what is owned.
//
// # Logs and errors
//
// It logs to the logger of the context. A plan with actions is one line, with how many there are of each kind; at verbosity 1 each action has
// a line with its reason and result. What Reconcile returns wraps what it was made from: an error of the apiserver or of gRPC, or the end of
// the context.
//
// # Traces
//
// Each reconcile is one trace, made with the API of OpenTelemetry: the global tracer provider, or that of [WithTracerProvider]. Without
// an SDK that is set up nothing is recorded.
//
//	reconcile                                        how it ended, what woke it and how long it waited
//	├─ snapshot                                      the request is built
//	├─ nodewise.v1.ReconcileService/Plan             with the service's own spans below
//	├─ apply                                         if there is something to do
//	│  └─ batch                                      how many actions of each kind, and how many failed
//	│     └─ POST /api/v1/namespaces/{namespace}/pods   one per call, with kube-apiserver's own spans below
//	└─ nodewise.v1.ReconcileService/Report
//
// A reconcile is linked to the one before it of the same workload and generation, and to the traces that what woke it came from: those
// that pods and the DaemonSet name in their annotation nodewise.dev/traceparent. Created pods have it with
// [WithTraceparentAnnotation]. The calls of a large batch have no spans of their own, see [WithMaxTracedCalls]. What a reconcile logs
// has the values trace_id and span_id.
//
// The service is told of the trace by the global propagator, and the apiserver by W3C trace context, which is what it reads.
//
// # What is where
//
// The loop is in reconcile.go: gate, snapshot, plan, hold, apply, report. What is remembered between reconciles is in state.go,
// all of it behind one lock and in memory only: whoever starts, or becomes the leader, starts with an empty one. The packages
// convert, served and planclient are of use without the Reconciler.
package nodewise
