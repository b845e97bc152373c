//! Lists Events with bounded memory. Who may create Events may create many, each of up to 1.5 MB.

use futures::{FutureExt as _, future::BoxFuture};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1 as core,
    apimachinery::pkg::apis::meta::v1::{ListMeta, MicroTime, Time},
};
use kube::{Client, Resource as _, api::ListParams, core::Request};
use serde::{Deserialize, Deserializer, de};
use tokio::sync::Semaphore;

/// The number of Events in one answer of the apiserver. With [`MAX_LISTS`] it limits the memory for answers to about 120 MB.
const PAGE: u32 = 10;
/// The most lists at a time in this process.
const MAX_LISTS: usize = 4;
/// The most Events of a list. Further ones are not read.
const MAX_EVENTS: usize = 1_000;
/// The most bytes of a message that are kept.
const MAX_MESSAGE: usize = 1_024;

/// What is read of an Event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Event {
    pub(crate) metadata: Metadata,
    pub(crate) involved_object: InvolvedObject,
    pub(crate) reason: String,
    #[serde(deserialize_with = "shortened")]
    pub(crate) message: String,
    first_timestamp: Option<Time>,
    last_timestamp: Option<Time>,
    #[serde(rename = "eventTime")]
    time: Option<MicroTime>,
    series: Option<Series>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Metadata {
    pub(crate) namespace: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InvolvedObject {
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Series {
    last_observed_time: Option<MicroTime>,
}

#[derive(Debug, Deserialize)]
struct Page {
    metadata: ListMeta,
    items: Vec<Event>,
}

impl Event {
    /// When what the Event says happened first.
    pub(crate) fn first_time(&self) -> Option<Timestamp> {
        let first = self.first_timestamp.as_ref().map(|time| time.0);
        first.or(self.time.as_ref().map(|time| time.0))
    }

    /// When it happened last.
    pub(crate) fn last_time(&self) -> Option<Timestamp> {
        let series = self.series.as_ref();
        let observed = series.and_then(|series| series.last_observed_time.as_ref());
        let last = self.last_timestamp.as_ref().map(|time| time.0);
        let last = observed.map(|time| time.0).or(last);
        last.or(self.time.as_ref().map(|time| time.0))
    }
}

/// The Events of a namespace with a reason, about the object with `uid` if that is given. What cannot be read is left out: Events only
/// explain.
pub(crate) fn list<'a>(
    client: &'a Client,
    namespace: &'a str,
    reason: &'a str,
    uid: Option<&'a str>,
) -> BoxFuture<'a, Vec<Event>> {
    read(client, namespace, reason, uid).boxed()
}

async fn read(client: &Client, namespace: &str, reason: &str, uid: Option<&str>) -> Vec<Event> {
    static LISTS: Semaphore = Semaphore::const_new(MAX_LISTS);
    let Ok(_slot) = LISTS.acquire().await else {
        return Vec::new();
    };
    let about = uid.map(|uid| format!(",involvedObject.uid={uid}"));
    let selector = format!("reason={reason}{}", about.unwrap_or_default());
    let mut params = ListParams::default().fields(&selector).limit(PAGE);
    let requests = Request::new(core::Event::url_path(&(), Some(namespace)));
    let mut events = Vec::new();
    while let Ok(request) = requests.list(&params) {
        let Ok(page) = client.request::<Page>(request).await else {
            break;
        };
        events.extend(page.items);
        let next = page.metadata.continue_.filter(|next| !next.is_empty());
        match next {
            Some(next) if events.len() < MAX_EVENTS => params = params.continue_token(&next),
            _ => break,
        }
    }
    events
}

/// The first bytes of a string, or nothing of a null.
fn shortened<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Shortened;
    impl de::Visitor<'_> for Shortened {
        type Value = String;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a string")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            let end = text.floor_char_boundary(MAX_MESSAGE);
            let ellipsis = if end < text.len() { "…" } else { "" };
            Ok(format!("{}{ellipsis}", &text[..end]))
        }

        fn visit_unit<E>(self) -> Result<String, E> {
            Ok(String::new())
        }
    }
    deserializer.deserialize_any(Shortened)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_messages_are_cut_and_odd_fields_are_missing() {
        let read = |value| serde_json::from_value::<Event>(value).expect("an Event").message;
        assert_eq!(read(json!({"message": "short"})), "short");
        assert_eq!(read(json!({"message": null})), "");
        assert_eq!(read(json!({})), "");
        let long = read(json!({"message": format!("x{}", "ä".repeat(600))}));
        assert_eq!(long.len(), 1_023 + "…".len());
        assert!(long.ends_with("ä…"), "{long}");
    }
}
