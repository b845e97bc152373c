//! What is read from objects for people. Each reader takes an object as the apiserver serves it.

mod node;
mod pod;
mod read;
mod template;
mod workload;

pub use node::NodeFacts;
pub use pod::PodFacts;
pub use template::TemplateFacts;
pub use workload::WorkloadFacts;
