//! What `deploy/` gives for installing: the Kustomize overlays and the Helm chart. They say the same, are what a real apiserver
//! takes, and fit the programs. That executors get by with their rights is in the test `e2e`, which runs them with these.

mod apiserver;
mod chart;
mod crds;
mod deployed;
mod programs;
mod render;
mod same;
