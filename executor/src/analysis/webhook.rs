//! Asks a webhook, by a POST of the policy's status of the workload as JSON.

use bytes::Bytes;
use nodewise_proto::v1::{self, AnalysisVerdict, measurement};
use serde_json::Value;

use super::address::Address;
use super::credentials::Token;
use super::dial::Dialer;
use super::post::{Answer, Post, check_value, post};

/// Asks, and returns the answer.
pub(super) async fn ask(
    dialer: &Dialer,
    address: &Address,
    status: Bytes,
    token: Option<Token>,
) -> Result<measurement::Result, String> {
    let call = Post {
        address,
        path: &address.path,
        content_type: "application/json",
        body: status,
        token,
    };
    result(&post(dialer, call).await?)
}

/// The verdict of an answer, or its value as JSON: null if it is empty, and its text if it is no JSON.
fn result(answer: &Answer) -> Result<measurement::Result, String> {
    if !answer.status.is_success() {
        return Err(answer.refused());
    }
    check_value(answer.body.len())?;
    let text = String::from_utf8_lossy(&answer.body);
    let text = text.trim();
    let value = match text {
        "" => Value::Null,
        text => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    if let Some(verdict) = value.get("verdict").and_then(Value::as_str) {
        return self::verdict(verdict, &value).map(measurement::Result::Verdict);
    }
    let value = value.to_string();
    check_value(value.len())?;
    Ok(measurement::Result::Value(value))
}

fn verdict(name: &str, value: &Value) -> Result<v1::MeasuredVerdict, String> {
    let verdict = match name {
        "pass" => AnalysisVerdict::Pass,
        "fail" => AnalysisVerdict::Fail,
        "inconclusive" => AnalysisVerdict::Inconclusive,
        _ => {
            return Err(format!(
                "its verdict is {name:?}, and not pass, fail or inconclusive"
            ));
        }
    };
    let message = value.get("message").and_then(Value::as_str).unwrap_or_default();
    Ok(v1::MeasuredVerdict {
        verdict: verdict.into(),
        message: nodewise_telemetry::in_short(message),
    })
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn of(status: u16, body: &[u8]) -> Result<measurement::Result, String> {
        result(&Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            body: Bytes::copy_from_slice(body),
        })
    }

    #[test]
    fn answers() {
        for (status, body, expected) in [
            (200, r#"{"errors": 0}"#, r#"{"errors":0}"#),
            (204, "", "null"),
            (201, " 3 ", "3"),
            (200, "ok\n", r#""ok""#),
            (200, r#"{"verdict": 3}"#, r#"{"verdict":3}"#),
        ] {
            let found = of(status, body.as_bytes());
            assert_eq!(
                found,
                Ok(measurement::Result::Value(expected.to_owned())),
                "{body}"
            );
        }
        for (name, verdict) in [
            ("pass", AnalysisVerdict::Pass),
            ("fail", AnalysisVerdict::Fail),
            ("inconclusive", AnalysisVerdict::Inconclusive),
        ] {
            let body = format!(r#"{{"verdict": "{name}", "message": "so it is"}}"#);
            let expected = v1::MeasuredVerdict {
                verdict: verdict.into(),
                message: "so it is".to_owned(),
            };
            assert_eq!(
                of(200, body.as_bytes()),
                Ok(measurement::Result::Verdict(expected))
            );
        }
    }

    #[test]
    fn what_is_an_error() {
        // Each byte takes three in a text.
        let binary = vec![0xff; 64 << 10];
        let long = format!(r#"{{"verdict": "fail", "message": "{}"}}"#, "x".repeat(64 << 10));
        for (status, body, part) in [
            (500, &b"{}"[..], "500 Internal Server Error"),
            (307, b"", "no redirect is followed"),
            (200, br#"{"verdict": "maybe"}"#, "\"maybe\""),
            (
                200,
                &binary,
                "the value has 196610 bytes; at most 65536 are taken",
            ),
            (
                200,
                long.as_bytes(),
                "the value has 65570 bytes; at most 65536 are taken",
            ),
        ] {
            let error = of(status, body).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
