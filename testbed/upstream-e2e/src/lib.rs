//! Runs Kubernetes' own end-to-end tests of DaemonSets (`Daemon set [Serial]`) with two owners of DaemonSets.
//!
//! Both runs use the same test program ([`nodewise_testbed::Tool::KubernetesE2e`]) and equal new control planes with
//! the same fake nodes. In one run kube-controller-manager owns DaemonSets, in the other Nodewise does. [`comparison`]
//! decides whether Nodewise did as well.

pub mod comparison;
pub mod owner;
pub mod report;
pub mod suite;
