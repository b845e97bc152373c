//! Asks Prometheus, by an instant query. Others speak its API as well, such as Thanos, Mimir and VictoriaMetrics.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use nodewise_proto::v1::measurement;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::{Number, value::RawValue};

use super::address::Address;
use super::credentials::Token;
use super::dial::Dialer;
use super::post::{Answer, Post, check_value, post};

/// Prometheus reports what is worth knowing about a query among the warnings, if it is older than version 3.
const INFO: &str = "PromQL info:";

/// Asks, and returns the value as the condition of a check reads it.
pub(super) async fn ask(
    dialer: &Dialer,
    address: &Address,
    query: &str,
    token: Option<Token>,
    limit: Duration,
) -> Result<measurement::Result, String> {
    let limit = format!("{}ms", limit.as_millis());
    let form = form_urlencoded::Serializer::new(String::new())
        .append_pair("query", query)
        .append_pair("timeout", &limit)
        .finish();
    let path = path(&address.path)?;
    let call = Post {
        address,
        path: &path,
        content_type: "application/x-www-form-urlencoded",
        body: form.into(),
        token,
    };
    let answer = post(dialer, call).await?;
    value(&answer).map(measurement::Result::Value)
}

/// The path of the API below that of the address.
fn path(base: &str) -> Result<String, String> {
    if base.contains('?') {
        return Err("the address of a Prometheus has no query".to_owned());
    }
    Ok(format!("{}/api/v1/query", base.trim_end_matches('/')))
}

/// What the API answers. A refusal has `errorType` and `error`. Nothing of it is read into a tree, which would take up to a hundred
/// times as much memory: an answer has the labels of all series, and is longer than a value may be.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Response<'a> {
    status: String,
    error_type: String,
    error: String,
    #[serde(borrow)]
    warnings: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    result_type: String,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Series<'a> {
    #[serde(borrow)]
    metric: Option<&'a RawValue>,
    #[serde(borrow)]
    value: Option<Sample<'a>>,
}

/// A time and a number as text.
#[derive(Deserialize)]
struct Sample<'a>(IgnoredAny, #[serde(borrow)] Cow<'a, str>);

/// The value of the only sample, or the list of the values of several, as JSON.
fn value(answer: &Answer) -> Result<String, String> {
    let response: Result<Response<'_>, _> = serde_json::from_slice(&answer.body);
    let response = match response {
        // The API explains its refusals.
        Ok(response) if response.status == "error" => {
            return Err(format!("{}: {}", response.error_type, response.error));
        }
        _ if !answer.status.is_success() => return Err(answer.refused()),
        Ok(response) if response.status == "success" => response,
        Ok(_) => return Err("its answer is not that of a Prometheus: it has no status".to_owned()),
        Err(error) => return Err(format!("its answer is not that of a Prometheus: {error}")),
    };
    // With a warning the result may be a part of what there is, and what is missing may be the bad part.
    let mut warnings = response.warnings.iter();
    if let Some(warning) = warnings.find(|warning| !warning.starts_with(INFO)) {
        return Err(format!("it warns that {warning:?}"));
    }
    let data = response.data.ok_or("its answer has no data")?;
    let result = data.result.map_or("null", RawValue::get);
    match &*data.result_type {
        "scalar" => {
            let sample: Sample<'_> = read(result)?;
            Ok(number(&sample.1, "")?.to_string())
        }
        "vector" => {
            let values: Values = read(result)?;
            values.value()
        }
        other => Err(format!(
            "the query gives a {other}, and an instant vector or a scalar is needed"
        )),
    }
}

/// The values of samples, one after another.
#[derive(Default)]
struct Values {
    /// As JSON, separated by commas, as far as they are taken.
    list: String,
    /// The bytes of the whole list.
    bytes: usize,
    count: usize,
    /// The first that is no number.
    failure: Option<String>,
}

impl Values {
    fn add(&mut self, value: Result<Number, String>) {
        match value {
            Ok(number) => {
                let number = number.to_string();
                self.count += 1;
                self.bytes += number.len() + 1;
                if check_value(self.bytes).is_ok() {
                    self.list.push_str(if self.count > 1 { "," } else { "" });
                    self.list.push_str(&number);
                }
            }
            Err(failure) => _ = self.failure.get_or_insert(failure),
        }
    }

    /// The only value, or the list of several.
    fn value(self) -> Result<String, String> {
        let Self {
            list,
            bytes,
            count,
            failure,
        } = self;
        if let Some(failure) = failure {
            return Err(failure);
        }
        match count {
            0 => Err("the query has no result: no series matches".to_owned()),
            1 => Ok(list),
            _ => {
                let why = |why| format!("{why}: the query gives {count} series; aggregate them");
                check_value(bytes + 1).map_err(why)?;
                Ok(format!("[{list}]"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self::default())
    }
}

impl<'de> Visitor<'de> for Values {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of samples")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut samples: A) -> Result<Self, A::Error> {
        while let Some(series) = samples.next_element::<Series<'de>>()? {
            self.add(number_of(&series));
        }
        Ok(self)
    }
}

fn number_of(series: &Series<'_>) -> Result<Number, String> {
    let metric = series.metric.map_or("", RawValue::get);
    let Some(sample) = &series.value else {
        return Err(format!("{metric} is a histogram, and a number is needed"));
    };
    number(&sample.1, metric)
}

fn read<'a, T: Deserialize<'a>>(result: &'a str) -> Result<T, String> {
    serde_json::from_str(result).map_err(|error| format!("its result cannot be read: {error}"))
}

/// A number as JSON, which has none for NaN and infinity. A condition would be false for NaN, which is no measurement of anything:
/// often nothing was counted yet (0 / 0).
fn number(text: &str, metric: &str) -> Result<Number, String> {
    let of = if matches!(metric, "" | "{}") {
        String::new()
    } else {
        format!(" of {metric}")
    };
    let number: f64 = text
        .parse()
        .map_err(|_| format!("the value{of} is {text:?}, which is no number"))?;
    let number = Number::from_f64(number);
    number.ok_or_else(|| {
        format!("the value{of} is {text}, about which no condition can decide: change the query so that it gives a number")
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

    fn of(status: u16, body: &str) -> Result<Value, String> {
        let value = value(&Answer {
            status: StatusCode::from_u16(status).expect("a status"),
            body: Bytes::copy_from_slice(body.as_bytes()),
        })?;
        Ok(serde_json::from_str(&value).expect("JSON"))
    }

    fn vector(samples: &str) -> Result<Value, String> {
        of(
            200,
            &format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{samples}]}}}}"#),
        )
    }

    // L-31: as conditions read it.
    #[test]
    fn values() {
        let sample = |text: &str| format!(r#"{{"metric":{{"a":"b"}},"value":[1435781451.781,"{text}"]}}"#);
        assert_eq!(vector(&sample("0.5")), Ok(json!(0.5)));
        assert_eq!(vector(&sample("1e-7")), Ok(json!(1e-7)));
        let two = format!("{},{}", sample("0"), sample("3"));
        assert_eq!(vector(&two), Ok(json!([0.0, 3.0])));
        let scalar = r#"{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"2"]},"infos":["x"],
            "warnings":["PromQL info: metric might not be a counter"]}"#;
        assert_eq!(of(200, scalar), Ok(json!(2.0)));
    }

    // What is no number is an error, which says what was found.
    #[test]
    fn what_is_no_value() {
        let sample = |text: &str| format!(r#"{{"metric":{{"a":"b"}},"value":[1,"{text}"]}}"#);
        let matrix = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        let warned = r#"{"status":"success","warnings":["store x is gone"],"data":{"resultType":"scalar","result":[1,"2"]}}"#;
        let bad = r#"{"status":"error","errorType":"bad_data","error":"parse error at char 3"}"#;
        for (found, part) in [
            (vector(""), "no series matches"),
            (vector(&sample("NaN")), r#"the value of {"a":"b"} is NaN"#),
            (vector(&sample("+Inf")), "is +Inf"),
            (vector(&sample("x")), "no number"),
            (vector(&format!("{},{}", sample("1"), sample("NaN"))), "is NaN"),
            (vector(r#"{"metric":{},"histogram":[1,{}]}"#), "is a histogram"),
            (of(200, matrix), "gives a matrix"),
            (of(200, warned), "store x is gone"),
            (of(400, bad), "bad_data: parse error at char 3"),
            (of(500, "oops"), "500 Internal Server Error"),
            (of(302, ""), "no redirect is followed"),
            (of(200, "<html>"), "not that of a Prometheus"),
            (of(200, "{}"), "not that of a Prometheus"),
            (of(200, r#"{"status":"success"}"#), "no data"),
        ] {
            let error = found.expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }

    // The service takes no longer value. The labels of series are not part of it.
    #[test]
    fn a_value_has_a_limited_size() {
        let series = |count: usize, label: usize| {
            let one = format!(
                r#"{{"metric":{{"a":"{}"}},"value":[1,"1.5"]}}"#,
                "b".repeat(label)
            );
            vector(&vec![one; count].join(","))
        };
        assert_eq!(series(500, 1_000), Ok(json!(vec![1.5; 500])));
        assert!(series(16_383, 1).is_ok());
        let error = series(16_384, 1).expect_err("it is too long");
        assert!(
            error.contains("the value has 65537 bytes; at most 65536 are taken")
                && error.contains("16384 series"),
            "{error}"
        );
    }

    #[test]
    fn paths() {
        for (base, expected) in [
            ("/", "/api/v1/query"),
            ("/prometheus/", "/prometheus/api/v1/query"),
            ("/select/0/prometheus", "/select/0/prometheus/api/v1/query"),
        ] {
            assert_eq!(path(base).as_deref(), Ok(expected));
        }
        assert!(path("/?a=b").is_err());
    }
}
