//! An OTLP trace collector in this process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use tokio::{net::TcpListener, task::JoinHandle};
use tonic::{
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

/// The received spans, each with the name of the service that sent it.
pub type Spans = Vec<(String, Span)>;

/// A collector that runs until it is dropped.
pub struct Collector {
    pub url: String,
    spans: Arc<Mutex<Spans>>,
    serving: JoinHandle<()>,
}

struct Receiver(Arc<Mutex<Spans>>);

#[tonic::async_trait]
impl TraceService for Receiver {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_spans {
            let resource = of_resource.resource.unwrap_or_default();
            let service = text(&resource.attributes, "service.name").expect("senders name themselves");
            let spans = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.0
                .lock()
                .unwrap()
                .extend(spans.map(|span| (service.clone(), span)));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().unwrap());
        let spans = Arc::<Mutex<Spans>>::default();
        let service = TraceServiceServer::new(Receiver(Arc::clone(&spans)));
        let server = Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener));
        let serving = tokio::spawn(async { server.await.expect("serves") });
        Self { url, spans, serving }
    }

    /// The spans received so far.
    pub fn spans(&self) -> Spans {
        self.spans.lock().unwrap().clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The attributes of a span, as text.
pub fn attributes(span: &Span) -> HashMap<&str, String> {
    let read = |attribute: &KeyValue| text(&span.attributes, &attribute.key).expect("a plain value");
    let pairs = span.attributes.iter();
    pairs
        .map(|attribute| (attribute.key.as_str(), read(attribute)))
        .collect()
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::DoubleValue(number) => Some(number.to_string()),
        _ => None,
    }
}
