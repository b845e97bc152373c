//! Checks how long the certificates of the service and of the executor are valid.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use x509_parser::pem::Pem;

use super::{
    facts::{Facts, Seen},
    finding::{Finding, Section},
    install::{pod_spec, title},
};

const SECTION: Section = Section::Certificates;
/// The volume of the certificates, in `deploy/`.
const VOLUME: &str = "tls";
/// The files of a Secret that have certificates, and what they are.
const FILES: [(&str, &str); 2] = [("tls.crt", "certificate"), ("ca.crt", "certificate authority")];
const WARNING_DAYS: i64 = 30;
const ERROR_DAYS: i64 = 7;
const DAY: i64 = 86_400;

/// The Secret with certificates that a Deployment mounts.
pub(crate) fn secret(deployment: &Deployment) -> Option<&str> {
    let volumes = pod_spec(deployment)?.volumes.as_deref()?;
    let volume = volumes.iter().find(|volume| volume.name == VOLUME)?;
    volume.secret.as_ref()?.secret_name.as_deref()
}

pub(crate) fn check(facts: &Facts) -> Vec<Finding> {
    let here = |deployment: &&Deployment| deployment.metadata.namespace.as_deref() == Some(&facts.namespace);
    let deployments = facts
        .servers
        .iter()
        .chain(&facts.executors)
        .flatten()
        .filter(here);
    let now = facts.clock.now();
    let of = |deployment: &Deployment| match secret(deployment) {
        Some(name) => of_secret(&facts.namespace, name, &facts.secrets, now),
        None => vec![SECTION.warning(
            format!(
                "{} has no certificates: its connections are plaintext",
                title(deployment)
            ),
            "use certificates (docs/security.md), unless a service mesh encrypts the traffic",
        )],
    };
    deployments.flat_map(of).collect()
}

fn of_secret(
    namespace: &str,
    name: &str,
    secrets: &BTreeMap<String, Seen<Option<Secret>>>,
    now: Timestamp,
) -> Vec<Finding> {
    let what = format!("Secret {namespace}/{name}");
    let secret = match secrets.get(name) {
        Some(Ok(Some(secret))) => secret,
        Some(Err(unread)) => return vec![SECTION.unread(&what, unread)],
        Some(Ok(None)) | None => {
            return vec![SECTION.error(
                format!("{what} does not exist; pods that mount it cannot start"),
                "create it with cert-manager or deploy/certificates.sh (deploy/README.md, \"TLS\")",
            )];
        }
    };
    let of_file = |(file, noun): (&str, &str)| {
        let data = secret.data.as_ref().and_then(|data| data.get(file));
        let text = data.map_or(&[][..], |bytes| &bytes.0);
        of_file(&what, file, noun, text, now)
    };
    FILES.into_iter().map(of_file).collect()
}

fn of_file(what: &str, file: &str, noun: &str, text: &[u8], now: Timestamp) -> Finding {
    let end = match first_end(text) {
        Ok(Some(end)) => end,
        Ok(None) => {
            return SECTION.error(
                format!("{what}: {file} has no certificate"),
                "create the Secret again (deploy/README.md, \"TLS\")",
            );
        }
        Err(problem) => {
            return SECTION.error(
                format!("{what}: {file}: {problem}"),
                "create the Secret again (deploy/README.md, \"TLS\")",
            );
        }
    };
    let days = end.duration_since(now).as_secs().div_euclid(DAY);
    let day = end.strftime("%Y-%m-%d");
    let text = format!("{what}: the {noun} ({file}) is valid for {days} more days, until {day}");
    let hint = "renew it: look at cert-manager's Certificate, or run deploy/certificates.sh again (docs/operations.md)";
    match days {
        ..0 => SECTION.error(format!("{what}: the {noun} ({file}) expired on {day}"), hint),
        0..ERROR_DAYS => SECTION.error(text, hint),
        ERROR_DAYS..WARNING_DAYS => SECTION.warning(text, hint),
        _ => SECTION.ok(text),
    }
}

/// When the first certificate of a PEM file expires. `None`: it has none.
fn first_end(text: &[u8]) -> Result<Option<Timestamp>, String> {
    let mut end: Option<Timestamp> = None;
    for pem in Pem::iter_from_buffer(text) {
        let pem = pem.map_err(|error| format!("not in PEM format: {error}"))?;
        if pem.label != "CERTIFICATE" {
            continue;
        }
        let certificate = pem
            .parse_x509()
            .map_err(|error| format!("no certificate: {error}"))?;
        let seconds = certificate.validity().not_after.timestamp();
        let this =
            Timestamp::from_second(seconds).map_err(|error| format!("its end cannot be read: {error}"))?;
        end = Some(end.map_or(this, |end| end.min(this)));
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::finding::Outcome;

    /// A certificate that is valid until 2026-06-15.
    fn certificate() -> String {
        let mut params = rcgen::CertificateParams::new(vec!["nodewise-server".to_owned()]).expect("a name");
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 6, 15);
        let key = rcgen::KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").pem()
    }

    #[test]
    fn certificates_that_end_soon_are_reported() {
        let pem = certificate();
        let table = [
            (pem.as_str(), "2026-01-01T00:00:00Z", Outcome::Ok, "165 more days"),
            (&pem, "2026-05-16T00:00:00Z", Outcome::Ok, "30 more days"),
            (
                &pem,
                "2026-05-17T00:00:00Z",
                Outcome::Warning,
                "29 more days, until 2026-06-15",
            ),
            (&pem, "2026-06-08T00:00:00Z", Outcome::Warning, "7 more days"),
            (&pem, "2026-06-09T00:00:00Z", Outcome::Error, "6 more days"),
            (
                &pem,
                "2026-06-15T00:00:01Z",
                Outcome::Error,
                "expired on 2026-06-15",
            ),
            (
                "",
                "2026-01-01T00:00:00Z",
                Outcome::Error,
                "tls.crt has no certificate",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "2026-01-01T00:00:00Z",
                Outcome::Error,
                "no certificate: ",
            ),
        ];
        for (text, now, result, part) in table {
            let now = now.parse().expect("a time");
            let found = of_file("Secret n/s", "tls.crt", "certificate", text.as_bytes(), now);
            assert_eq!(found.result, result, "{found:?}");
            assert!(found.message.contains(part), "{found:?}");
        }
    }

    #[test]
    fn a_secret_that_is_missing_or_cannot_be_read_is_named() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let forbidden = Err(crate::check::facts::Unread::Forbidden("no".to_owned()));
        let secrets = BTreeMap::from([("absent".to_owned(), Ok(None)), ("hidden".to_owned(), forbidden)]);
        for (name, result) in [("absent", Outcome::Error), ("hidden", Outcome::Warning)] {
            let found = of_secret("n", name, &secrets, now);
            assert_eq!(found[0].result, result, "{found:?}");
            assert!(
                found[0].message.contains(&format!("Secret n/{name}")),
                "{found:?}"
            );
        }
    }
}
