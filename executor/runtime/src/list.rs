//! Lists of the apiserver, page by page, with bounded memory.
//!
//! The apiserver limits a page by objects, not by bytes, and it may serve `<` as six bytes that etcd stores as one. A page of
//! 250 of the largest pods would have 2 GB. A page that is longer than 32 MiB is dropped and requested again with fewer
//! objects.

use kube::Client;
use kube::api::ListParams;
use prost::Message as _;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::encoding::{self, DecodeError, Payload};
use crate::object::Object;
use crate::protobuf;
use crate::response::{self, MAX_OBJECT_BYTES};

/// Most bytes of a page with more than one object. A page with one object may have up to [`MAX_OBJECT_BYTES`].
const PAGE_BYTES: usize = 32 << 20;

/// Requests the pages of one list.
#[derive(Debug)]
pub struct ListPager {
    /// The collection's path.
    path: String,
    /// Number of objects to request next.
    size: u32,
    /// Most objects in a page.
    most: u32,
    token: String,
    asks_for_protobuf: bool,
}

impl ListPager {
    /// Lists the collection of this path, with at most `most` objects in a page.
    #[must_use]
    pub fn new(path: impl Into<String>, most: u32) -> Self {
        Self {
            path: path.into(),
            size: most,
            most,
            token: String::new(),
            asks_for_protobuf: false,
        }
    }

    /// Asks for Protobuf where the apiserver speaks it, if `asks` is true. Otherwise, the pages are JSON.
    pub(crate) fn ask_for_protobuf(mut self, asks: bool) -> Self {
        self.asks_for_protobuf = asks;
        self
    }

    /// Requests the next page and returns its text. Returns `None` if the page is too long; call again to request fewer
    /// objects.
    pub async fn next(&mut self, client: &Client) -> Result<Option<String>, kube::Error> {
        let page = self.next_payload(client).await?;
        page.map(Payload::into_json).transpose()
    }

    /// Like [`Self::next`], in any encoding.
    pub(crate) async fn next_payload(&mut self, client: &Client) -> Result<Option<Payload>, kube::Error> {
        let params = ListParams::default().limit(self.size);
        let params = match &*self.token {
            "" => params,
            token => params.continue_token(token),
        };
        let mut request = kube::core::Request::new(self.path.as_str())
            .list(&params)
            .map_err(kube::Error::BuildRequest)?;
        if self.asks_for_protobuf {
            encoding::ask_for_protobuf(request.headers_mut());
        }
        let is_one = self.size == 1;
        let most = if is_one { MAX_OBJECT_BYTES } else { PAGE_BYTES };
        let response = response::open(client, request).await?;
        let payload = match response::read(response, most).await? {
            Some(payload) => payload,
            None if is_one => return Err(response::too_long(most)),
            None => {
                self.size = (self.size / 4).max(1);
                return Ok(None);
            }
        };
        if payload.len() <= PAGE_BYTES / 4 {
            self.size = self.size.saturating_mul(2).min(self.most);
        }
        Ok(Some(payload))
    }

    /// Continues after this page. Returns whether there is another one.
    pub fn advance(&mut self, page: &PageMeta) -> bool {
        self.token.clone_from(&page.continue_token);
        !self.token.is_empty()
    }
}

/// A page of a list. Its objects are not parsed.
#[derive(Debug, Deserialize)]
pub struct Page<'a> {
    /// The metadata of the page.
    pub metadata: PageMeta,
    /// The objects. The API writes an empty list as null.
    #[serde(borrow)]
    pub items: Option<Vec<&'a RawValue>>,
}

impl<'a> Page<'a> {
    /// Reads the text of a page.
    pub fn read(text: &'a str) -> Result<Self, kube::Error> {
        serde_json::from_str(text).map_err(kube::Error::SerdeError)
    }
}

/// A page of a list in any encoding. Its objects are not parsed.
pub(crate) struct EncodedPage<'a> {
    pub(crate) metadata: PageMeta,
    pub(crate) items: Vec<Object<'a>>,
}

impl<'a> EncodedPage<'a> {
    /// Reads a page of objects of this kind.
    pub(crate) fn read(payload: &'a Payload, kind: &str) -> Result<Self, kube::Error> {
        let failed = |error: DecodeError| kube::Error::Service(error.into());
        match payload {
            Payload::Json(text) => {
                let Page { metadata, items } = Page::read(text)?;
                let items = items.into_iter().flatten().map(Object::Json).collect();
                Ok(Self { metadata, items })
            }
            Payload::Protobuf(bytes) => {
                let list = protobuf::unwrap(bytes.clone(), &format!("{kind}List"));
                let list = list.map_err(|error| failed(error.into()))?;
                let list = protobuf::List::decode(list).map_err(|error| failed(error.into()))?;
                let protobuf::ListMeta {
                    resource_version,
                    continue_token,
                } = list.metadata.unwrap_or_default();
                Ok(Self {
                    metadata: PageMeta {
                        resource_version,
                        continue_token,
                    },
                    items: list.items.into_iter().map(Object::Protobuf).collect(),
                })
            }
        }
    }
}

/// The metadata of a page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageMeta {
    /// The resourceVersion of the list.
    #[serde(default)]
    pub resource_version: String,
    /// The continue token; empty on the last page.
    #[serde(rename = "continue", default)]
    pub continue_token: String,
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use nodewise_fake_apiserver::apiserver;

    /// Lists objects of these lengths. Returns the page sizes that were requested and how many objects were received.
    async fn sizes(lengths: Vec<usize>) -> (Vec<usize>, Result<usize, kube::Error>) {
        let asked_for = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked_for);
        let (client, _) = apiserver(move |asked| {
            let (_, query) = asked.line.split_once('?').expect("a query");
            let value = |key: &str| {
                let pair = query.split('&').find_map(|pair| pair.strip_prefix(key));
                pair.map_or(0, |value| value.parse::<usize>().expect("a number"))
            };
            let (limit, from) = (value("limit="), value("continue="));
            noted.lock().expect("no panic").push(limit);
            let to = (from + limit).min(lengths.len());
            let items: Vec<_> = lengths[from..to]
                .iter()
                .map(|length| "x".repeat(*length))
                .collect();
            let next = if to < lengths.len() {
                to.to_string()
            } else {
                String::new()
            };
            let metadata = json!({"resourceVersion": "7", "continue": next});
            Some((200, json!({"metadata": metadata, "items": items})))
        });
        let mut pager = ListPager::new("/api/v1/pods", 16);
        let mut came = 0;
        let result = loop {
            let text = match pager.next(&client).await {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(error) => break Err(error),
            };
            let page = Page::read(&text).expect("a page");
            let items = page.items.expect("a list").len();
            assert!(text.len() <= PAGE_BYTES || items == 1, "{} bytes", text.len());
            came += items;
            if !pager.advance(&page.metadata) {
                break Ok(came);
            }
        };
        let asked_for = asked_for.lock().expect("no panic").clone();
        (asked_for, result)
    }

    // A page that is too long is requested again with a quarter of its objects. After short pages the size grows again.
    #[tokio::test]
    async fn pages_are_bounded_by_bytes() {
        const MIB: usize = 1 << 20;
        let (asked_for, came) = sizes([vec![9 * MIB; 5], vec![10; 40]].concat()).await;
        assert_eq!(asked_for, [16, 4, 1, 1, 1, 1, 1, 1, 2, 4, 8, 16, 16]);
        assert_eq!(came.expect("all"), 45);
        let (asked_for, came) = sizes(vec![40 * MIB]).await;
        assert_eq!(asked_for, [16, 4, 1]);
        assert_eq!(came.expect("one object, whatever its length"), 1);
        let (asked_for, came) = sizes(vec![65 * MIB]).await;
        assert_eq!(asked_for, [16, 4, 1]);
        let error = came.expect_err("no object is as long").to_string();
        assert!(error.contains("longer than 67108864 bytes"), "{error}");
    }
}
