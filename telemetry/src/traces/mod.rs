//! Traces: the configuration by OpenTelemetry's environment variables, and the export.

use std::{path::PathBuf, sync::OnceLock};

use nodewise_tls::client::{Files, Identity};
use opentelemetry_sdk::trace::SdkTracer;

mod export;
mod step;
pub(crate) mod tally;

pub use export::{SpanLayer, layer, lost, provider, shut_down};
pub use step::{Step, count, step};

/// The tracer for spans that are made without `tracing`. Not set while traces are off.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Whether spans of this process are recorded.
#[must_use]
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// The tracer for spans that would be too expensive with `tracing`, for example because they are entered at every poll.
pub(crate) fn tracer() -> Option<&'static SdkTracer> {
    TRACER.get()
}

/// The destination of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traces {
    /// Traces are off: no span is recorded.
    Off,
    /// Traces go to a collector over OTLP/gRPC.
    Otlp {
        /// Its URL with the scheme, such as `http://localhost:4317`.
        endpoint: String,
        /// The certificates for an `https://` URL.
        tls: Files,
        /// The value of `OTEL_SERVICE_NAME`, if it is set.
        service: Option<String>,
    },
    /// The configuration is invalid, for this reason. No span is recorded.
    Unusable(String),
}

impl Traces {
    /// Reads the configuration from environment variables. The endpoint is `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, or else
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`; [`Traces::to`] describes the others. Traces are off if `OTEL_SDK_DISABLED` is `true` or
    /// `OTEL_TRACES_EXPORTER` names another exporter than `otlp`. The SDK itself reads the variables for headers, timeouts, the
    /// sampler, resource attributes and the size of the queue.
    #[must_use]
    pub fn from_env(read: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name| given(&read, name);
        let either = |of_traces, of_all| get(of_traces).or_else(|| get(of_all));
        let disabled = get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let elsewhere = get("OTEL_TRACES_EXPORTER").is_some_and(|exporter| exporter != "otlp");
        let endpoint = either(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        );
        let Some(endpoint) = endpoint.filter(|_| !disabled && !elsewhere) else {
            return Self::Off;
        };
        let protocol = either(
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        );
        if let Some(protocol) = protocol.filter(|protocol| protocol != "grpc") {
            return Self::Unusable(format!(
                "only the protocol grpc is supported, and the environment asks for {protocol}"
            ));
        }
        Self::to(&endpoint, read)
    }

    /// Export to a collector at this endpoint, with the other settings from the environment. An endpoint without a scheme means
    /// `https://`, unless `OTEL_EXPORTER_OTLP_INSECURE` is `true`. The certificates are those of `OTEL_EXPORTER_OTLP_CERTIFICATE`,
    /// `_CLIENT_CERTIFICATE` and `_CLIENT_KEY`. For each of these there is a variable for traces alone, which begins with
    /// `OTEL_EXPORTER_OTLP_TRACES_` and comes first.
    #[must_use]
    pub fn to(endpoint: &str, read: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name| given(&read, name);
        let either = |of_traces, of_all| get(of_traces).or_else(|| get(of_all));
        let insecure = either(
            "OTEL_EXPORTER_OTLP_TRACES_INSECURE",
            "OTEL_EXPORTER_OTLP_INSECURE",
        );
        let certificate = either(
            "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        );
        let key = either(
            "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
            "OTEL_EXPORTER_OTLP_CLIENT_KEY",
        );
        if certificate.is_some() != key.is_some() {
            return Self::Unusable(
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY must be set together, and only one \
                 of them is set"
                    .to_owned(),
            );
        }
        let authorities = either(
            "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        );
        Self::Otlp {
            endpoint: match scheme(endpoint) {
                Some(_) => endpoint.to_owned(),
                None if insecure.is_some_and(|value| value.eq_ignore_ascii_case("true")) => {
                    format!("http://{endpoint}")
                }
                None => format!("https://{endpoint}"),
            },
            tls: Files {
                authorities: authorities.map(PathBuf::from),
                identity: certificate.zip(key).map(|(certificate, key)| Identity {
                    certificate: certificate.into(),
                    key: key.into(),
                }),
            },
            service: get("OTEL_SERVICE_NAME"),
        }
    }
}

/// The value of a variable. Empty values count as unset, as in the specification.
fn given(read: impl Fn(&str) -> Option<String>, name: &str) -> Option<String> {
    let value = read(name)?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

/// The scheme of an endpoint. `collector:4317` has none, although a URL parser would take `collector` for one.
fn scheme(endpoint: &str) -> Option<&str> {
    let (scheme, _) = endpoint.split_once("://")?;
    (!scheme.contains(['/', '?', '#'])).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Traces {
        Traces::from_env(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn otlp(endpoint: &str, service: Option<&str>) -> Traces {
        Traces::Otlp {
            endpoint: endpoint.to_owned(),
            tls: Files::default(),
            service: service.map(str::to_owned),
        }
    }

    #[test]
    fn traces_are_off_unless_a_collector_is_named() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317");
        const OF_TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4317");
        let all = otlp("http://all:4317", None);
        for (variables, expected) in [
            (&[][..], Traces::Off),
            (&[("OTEL_SERVICE_NAME", "x")], Traces::Off),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], Traces::Off),
            (&[ALL], all.clone()),
            (&[ALL, OF_TRACES], otlp("http://traces:4317", None)),
            (
                &[ALL, ("OTEL_SERVICE_NAME", "x")],
                otlp("http://all:4317", Some("x")),
            ),
            (&[ALL, ("OTEL_SDK_DISABLED", "True")], Traces::Off),
            (&[ALL, ("OTEL_SDK_DISABLED", "1")], all.clone()),
            (&[ALL, ("OTEL_TRACES_EXPORTER", "none")], Traces::Off),
            (&[ALL, ("OTEL_TRACES_EXPORTER", "otlp")], all.clone()),
            (&[ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], all),
        ] {
            assert_eq!(read(variables), expected, "{variables:?}");
        }
        let http = read(&[ALL, ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")]);
        assert!(matches!(http, Traces::Unusable(reason) if reason.contains("http/protobuf")));
    }

    /// The exporter would add a scheme as well, but only after this code has decided about TLS.
    #[test]
    fn an_endpoint_without_a_scheme_gets_the_default_scheme() {
        const ALL: &str = "OTEL_EXPORTER_OTLP_INSECURE";
        const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_INSECURE";
        for (endpoint, variables, expected) in [
            ("all:4317", &[][..], "https://all:4317"),
            ("127.0.0.1:4317", &[], "https://127.0.0.1:4317"),
            ("all:4317/a://b", &[], "https://all:4317/a://b"),
            ("all:4317", &[(ALL, "True")], "http://all:4317"),
            ("all:4317", &[(ALL, "1")], "https://all:4317"),
            (
                "all:4317",
                &[(ALL, "true"), (OF_TRACES, "false")],
                "https://all:4317",
            ),
            ("all:4317", &[(OF_TRACES, "true")], "http://all:4317"),
            ("http://all:4317", &[], "http://all:4317"),
            ("https://all:4317", &[(ALL, "true")], "https://all:4317"),
            ("HTTPS://all:4317", &[(ALL, "true")], "HTTPS://all:4317"),
        ] {
            let named = [&[("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)], variables].concat();
            assert_eq!(read(&named), otlp(expected, None), "{named:?}");
        }
    }

    #[test]
    fn certificates_come_from_the_standard_variables() {
        const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all:4317");
        const CERTIFICATE: (&str, &str) = ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/client.crt");
        let variables = [
            ENDPOINT,
            CERTIFICATE,
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/client.key"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.crt"),
            ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/traces.crt"),
        ];
        let expected = Files {
            authorities: Some("/traces.crt".into()),
            identity: Some(Identity {
                certificate: "/client.crt".into(),
                key: "/client.key".into(),
            }),
        };
        assert!(matches!(read(&variables), Traces::Otlp { tls, .. } if tls == expected));
        let half = read(&[ENDPOINT, CERTIFICATE]);
        assert!(matches!(half, Traces::Unusable(reason) if reason.contains("OTEL_EXPORTER_OTLP_CLIENT_KEY")));
    }
}
