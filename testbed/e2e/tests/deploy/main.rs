//! What `deploy/` gives for installing: the Kustomize overlays, the Helm chart and the scripts. Overlays and chart say the same, are
//! what a real apiserver takes, and fit the programs. That executors get by with their rights is in the test `e2e`, which runs them with these.

mod apiserver;
mod chart;
mod crds;
mod deployed;
mod documented;
mod programs;
mod render;
mod same;
mod scripts;
