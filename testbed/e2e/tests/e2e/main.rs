//! The scenarios, each on a control plane of its own: kube-apiserver, kube-controller-manager without its DaemonSet controller,
//! kube-scheduler, and kwok's fake kubelets. The server and the executor run as separate processes.

mod apiserver;
mod claims;
mod cli;
mod crashes;
mod failures;
mod observe;
mod placement;
mod replicas;
mod revisions;
mod rollout;
mod takeover;
