//! Tests of the Rust programs beyond the contract of an executor. Each test has its own control plane: kube-apiserver,
//! kube-controller-manager without the controllers that the executor runs or observes, kube-scheduler and kwok's fake
//! kubelets. The server and the executor are separate processes.

mod analysis;
mod apiserver;
mod check;
mod cli;
mod companion;
mod crashes;
mod etcd;
mod failures;
mod live;
mod observe;
mod overhead;
mod owners;
mod policies;
mod policy_commands;
mod policy_rollouts;
mod recipes;
mod replicas;
mod revisions;
mod rights;
mod rollouts;
mod skew;
mod status;
mod traces;
mod what_if;
