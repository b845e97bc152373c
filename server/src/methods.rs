//! The methods of the contract: how each is traced, and how the server admits its calls.

use nodewise_telemetry::grpc::Method;

/// How the server admits calls of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// One request that runs on the planning pool: the call needs a permit and has a deadline.
    Planning,
    /// A stream of requests: each request needs a permit when it arrives. The stream itself has no time limit.
    Stream,
    /// Next to no work: no permit is needed.
    Cheap,
}

const TABLE: [(Method, Class); 7] = [
    (method("nodewise.v1.ReconcileService/Plan", true), Class::Planning),
    (
        method("nodewise.v1.ReconcileService/PlanStream", true),
        Class::Stream,
    ),
    (
        method("nodewise.v1.ReconcileService/Report", true),
        Class::Planning,
    ),
    (
        method("nodewise.v1.ReconcileService/Explain", true),
        Class::Planning,
    ),
    (
        method("nodewise.v1.ReconcileService/Simulate", true),
        Class::Planning,
    ),
    (
        method("nodewise.v1.ReconcileService/EvaluateNodes", true),
        Class::Planning,
    ),
    // Clients may call this every few seconds as a health check, so it starts no trace.
    (
        method("nodewise.v1.ReconcileService/GetCapabilities", false),
        Class::Cheap,
    ),
];

/// The methods as they appear in traces.
pub(crate) const TRACED: &[Method] = &{
    let mut traced = [TABLE[0].0; TABLE.len()];
    let mut index = 1;
    while index < TABLE.len() {
        traced[index] = TABLE[index].0;
        index += 1;
    }
    traced
};

/// The names of the methods.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TRACED.iter().map(Method::rpc)
}

const fn method(name: &'static str, begins_traces: bool) -> Method {
    Method { name, begins_traces }
}

/// The class of the method at a path. An unknown method is cheap: the server refuses it without work.
pub(crate) fn class(path: &str) -> Class {
    let rpc = path.rsplit('/').next();
    TABLE
        .iter()
        .find(|(method, _)| Some(method.rpc()) == rpc)
        .map_or(Class::Cheap, |(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use nodewise_proto::v1::reconcile_service_server::SERVICE_NAME;
    use prost::Message as _;

    use super::*;

    #[test]
    fn every_method_of_the_contract_has_a_class_and_a_span() {
        let contract = prost_types::FileDescriptorSet::decode(nodewise_proto::FILE_DESCRIPTOR_SET)
            .expect("the contract's descriptors");
        let services = contract.file.iter().flat_map(|file| {
            let name = |service: &str| format!("{}.{service}", file.package());
            file.service
                .iter()
                .map(move |service| (name(service.name()), service))
        });
        let service = services
            .filter(|(name, _)| name == SERVICE_NAME)
            .map(|(_, service)| service);
        let methods = service.flat_map(|service| &service.method);
        let mut streams: Vec<_> = methods
            .map(|method| (method.name().to_owned(), method.client_streaming()))
            .collect();
        streams.sort();
        let mut table: Vec<_> = TRACED
            .iter()
            .map(|method| (method.rpc().to_owned(), class(method.rpc()) == Class::Stream))
            .collect();
        table.sort();
        assert_eq!(table, streams);
        assert_eq!(class(&format!("/{SERVICE_NAME}/Plan")), Class::Planning);
        for method in TRACED {
            assert_eq!(method.name, format!("{SERVICE_NAME}/{}", method.rpc()));
        }
    }
}
