// Package nodewise is an executor for the planning service. It watches a cluster, asks the service what must happen next for each
// DaemonSet, ReplicaSet or Deployment, applies the plan and reports the outcomes.
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
// [Reconciler.Run] has a work queue and workers of its own. A controller that has these already calls [Reconciler.Start] with its queue, waits
// for [Reconciler.WaitForSync], and calls [Reconciler.Reconcile] for each key from the queue. Package ctrl does that for
// controller-runtime. [Reconciler.Ready] is a readiness check.
//
// # What is owned
//
// All DaemonSets of the cluster, unless [WithKinds], [WithNamespace], [WithSelector] or [WithPredicate] are given. The selector and the predicate are
// evaluated with the same object that the service plans for. A filter in front of [Reconciler.Reconcile] sees an older or newer object: it
// saves work, but does not limit what is owned.
//
// # Logs and errors
//
// The Reconciler logs to the logger of the context. For each plan with actions it logs one line, with the number of actions of each kind. At
// verbosity 1 it logs one line for each action, with its reason and result. Errors of Reconcile wrap their cause: an error of the apiserver
// or of gRPC, or the error of the context.
//
// # Traces
//
// Each reconcile is one trace. Spans are made with the API of OpenTelemetry, by the global tracer provider or the one of
// [WithTracerProvider]. Without an SDK nothing is recorded.
//
//	reconcile                                        its outcome, the events that caused it, and the time in the queue
//	├─ snapshot                                      the request is built
//	├─ nodewise.v1.ReconcileService/Plan             with the service's own spans below
//	├─ apply                                         if there is something to do
//	│  └─ batch                                      how many actions of each kind, and how many failed
//	│     └─ POST /api/v1/namespaces/{namespace}/pods   one per call, with kube-apiserver's own spans below
//	└─ nodewise.v1.ReconcileService/Report
//
// The span of a reconcile is linked to the previous reconcile of the same workload and generation. It is also linked to the trace contexts in
// the annotation nodewise.dev/traceparent of the DaemonSet and of the pods whose events caused the reconcile. Created pods have the
// annotation with [WithTraceparentAnnotation]. The calls of a large batch have no spans of their own, see [WithMaxTracedCalls]. Log lines of a
// reconcile have the values trace_id and span_id.
//
// The trace context goes to the service with the global propagator, and to the apiserver as W3C trace context, the only format that it reads.
//
// # Files
//
// The reconcile loop is in reconcile.go. What is kept between reconciles is in state.go, in memory only: after a start, and for a new leader,
// it is empty. The packages convert, served and planclient can be used without the Reconciler.
package nodewise
