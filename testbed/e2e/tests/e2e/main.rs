//! What the Rust programs have beyond the contract of an executor, each on a control plane of its own: kube-apiserver, kube-controller-manager without its DaemonSet controller,
//! kube-scheduler, and kwok's fake kubelets. The server and the executor run as separate processes.

mod apiserver;
mod cli;
mod companion;
mod crashes;
mod etcd;
mod failures;
mod observe;
mod replicas;
mod revisions;
mod rights;
mod traces;
