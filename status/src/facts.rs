//! What is read from objects for people. Each reader takes an object as the apiserver serves it.

mod node;
mod pod;
mod policy;
pub(crate) mod read;
mod template;
mod workload;

pub use node::NodeFacts;
pub use pod::PodFacts;
pub use policy::PolicyFacts;
pub(crate) use policy::StageFacts;
pub use template::TemplateFacts;
pub use workload::WorkloadFacts;
