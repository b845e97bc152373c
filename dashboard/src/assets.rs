//! The files of the page. `npm run build` writes them; `dashboard/fresh.mjs` proves that they are fresh.

use axum::{
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use sha2::{Digest as _, Sha256};

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

/// The page itself. It has the same text for every view; its script reads the path.
pub(crate) const PAGE: Asset = Asset {
    path: "/",
    media_type: "text/html; charset=utf-8",
    bytes: include_bytes!("../assets/index.html"),
};

/// What the page loads.
pub(crate) const FILES: [Asset; 3] = [
    Asset {
        path: "/assets/app.js",
        media_type: "text/javascript; charset=utf-8",
        bytes: include_bytes!("../assets/app.js"),
    },
    Asset {
        path: "/assets/app.css",
        media_type: "text/css; charset=utf-8",
        bytes: include_bytes!("../assets/app.css"),
    },
    Asset {
        path: "/assets/icon.svg",
        media_type: "image/svg+xml",
        bytes: include_bytes!("../assets/icon.svg"),
    },
];

impl Asset {
    /// The file, or 304 if the browser has it.
    pub(crate) fn response(&self, headers: &HeaderMap) -> Response {
        let digest = Sha256::digest(self.bytes);
        let digest = u64::from_be_bytes(*digest.first_chunk().unwrap_or(&[0; 8]));
        let tag = format!("\"{digest:016x}\"");
        let known = headers
            .get(header::IF_NONE_MATCH)
            .and_then(|known| known.to_str().ok());
        let caching = [
            (header::ETAG, tag.clone()),
            (header::CACHE_CONTROL, "no-cache".to_owned()),
        ];
        if known == Some(&tag) {
            return (StatusCode::NOT_MODIFIED, caching).into_response();
        }
        (caching, [(header::CONTENT_TYPE, self.media_type)], self.bytes).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small() {
        let bytes: usize = FILES.iter().chain([&PAGE]).map(|asset| asset.bytes.len()).sum();
        assert!(bytes < 300_000, "{bytes} bytes");
    }

    #[test]
    fn the_page_names_no_other_host() {
        for asset in FILES.iter().chain([&PAGE]) {
            let text = str::from_utf8(asset.bytes).expect("text");
            for found in text
                .match_indices("://")
                .map(|(at, _)| &text[at.saturating_sub(8)..(at + 20).min(text.len())])
            {
                assert!(found.contains("www.w3.org"), "{}: {found}", asset.path);
            }
        }
    }
}
