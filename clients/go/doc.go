// Package nodewise is an executor for the planning service: it watches a cluster, asks the service what must happen next for each
// DaemonSet, applies the plan and reports back.
//
// # A controller
//
//	planner, err := planclient.New(ctx, []string{"dns:///planner.tools.svc:7443"})
//	...
//	reconciler, err := nodewise.New(config, planner)
//	...
//	err = reconciler.Run(ctx)
//
// [Reconciler.Run] has watches, a work queue and workers of its own. A controller that has these already feeds the Reconciler
// with [Reconciler.Start], which puts workloads into its queue, and calls [Reconciler.Reconcile] for what it takes out; package
// ctrl does that for controller-runtime. [Reconciler.Ready] says why nothing can be done, if so.
//
// # What is where
//
// The loop is in reconcile.go: gate, snapshot, plan, hold, apply, report. What is remembered between reconciles is in state.go,
// all of it behind one lock and in memory only: whoever starts, or becomes the leader, starts with an empty one. The packages
// convert, served and planclient are of use without the Reconciler.
package nodewise
