//! Asks a VerdictService, over gRPC.

use std::error::Error as _;
use std::io;

use hyper_util::rt::TokioIo;
use nodewise_proto::v1::{self, measurement, verdict_service_client::VerdictServiceClient};
use nodewise_telemetry::{grpc::code_name, in_short, with_causes};
use nodewise_tls::client::Protocol;
use tokio::time::Instant;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::address::Address;
use super::credentials::Token;
use super::dial::Dialer;
use super::post::{AGENT, MOST_BYTES};
use super::subject::About;

/// What is asked.
pub(super) fn request(about: About, measure: &v1::Measure) -> v1::GetVerdictRequest {
    let About {
        workload,
        uid,
        status,
        ..
    } = about;
    let workload = v1::WorkloadReference {
        kind: workload.kind.to_owned(),
        namespace: workload.namespace.to_string(),
        name: workload.name.to_string(),
        uid,
        resource_version: String::new(),
    };
    v1::GetVerdictRequest {
        id: measure.id.clone(),
        policy_name: measure.policy_name.clone(),
        workload: Some(workload),
        status,
    }
}

/// Asks, and returns the verdict.
pub(super) async fn ask(
    dialer: &Dialer,
    address: &Address,
    about: v1::GetVerdictRequest,
    token: Option<Token>,
    deadline: Instant,
) -> Result<measurement::Result, String> {
    let channel = connect(dialer, address).await?;
    let mut client = VerdictServiceClient::new(channel).max_decoding_message_size(MOST_BYTES);
    let mut request = tonic::Request::new(about);
    // The service sees the deadline as well. `Endpoint::timeout` would not send it.
    request.set_timeout(deadline.saturating_duration_since(Instant::now()));
    if let Some(token) = token {
        let mut value = MetadataValue::try_from(token.as_bytes())
            .map_err(|_| "the token has characters that gRPC does not send".to_owned())?;
        value.set_sensitive(true);
        request.metadata_mut().insert("authorization", value);
    }
    let response = client.get_verdict(request).await.map_err(|status| {
        let mut text = format!("{}: {}", code_name(status.code()), status.message());
        if let Some(source) = status.source() {
            text = with_causes(text, source);
        }
        text
    })?;
    let v1::GetVerdictResponse { verdict, message } = response.into_inner();
    // A verdict that this executor does not know is none, as one that is not set.
    let verdict = match v1::AnalysisVerdict::try_from(verdict).unwrap_or_default() {
        v1::AnalysisVerdict::Unspecified => v1::AnalysisVerdict::Inconclusive,
        verdict => verdict,
    };
    Ok(measurement::Result::Verdict(v1::MeasuredVerdict {
        verdict: verdict.into(),
        message: in_short(&message),
    }))
}

/// A channel over one connection. It ends with the channel.
async fn connect(dialer: &Dialer, address: &Address) -> Result<Channel, String> {
    let stream = dialer.connect(address, Protocol::Http2).await?;
    let mut stream = Some(TokioIo::new(stream));
    let scheme = if address.tls { "https" } else { "http" };
    let failed = |error: &dyn std::fmt::Display| format!("no connection: {error}");
    let origin = format!("{scheme}://{}", address.host_header())
        .parse::<Uri>()
        .map_err(|error| failed(&error))?;
    // With https:// tonic would start its own TLS. The connection has it already.
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .and_then(|endpoint| endpoint.user_agent(AGENT))
        .map_err(|error| failed(&error))?;
    let once = service_fn(move |_: Uri| {
        let stream = stream.take();
        let lost = || io::Error::new(io::ErrorKind::NotConnected, "the connection has ended");
        std::future::ready(stream.ok_or_else(lost))
    });
    let channel = endpoint.origin(origin).connect_with_connector(once).await;
    channel.map_err(|error| with_causes(error.to_string(), &error))
}
