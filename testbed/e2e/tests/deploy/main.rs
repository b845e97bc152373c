//! Tests of `deploy/`: the Kustomize overlays, the Helm chart and the scripts. Overlays and chart agree, a real
//! apiserver accepts them, and they fit the programs. The test `e2e` runs executors with the rights given here.

mod apiserver;
mod chart;
mod crds;
mod deployed;
mod documented;
mod programs;
mod render;
mod same;
mod scripts;
