//! The tokens that the operator mounts as files (L-32).

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use http::HeaderValue;

/// The most bytes of a token. Servers take headers of this size.
const MOST_BYTES: u64 = 16 << 10;

/// The value of the header `Authorization`. It is never printed.
pub(super) type Token = HeaderValue;

/// The folder with the files. A name is that of a file in it.
#[derive(Debug)]
pub(super) struct Credentials(Option<PathBuf>);

impl Credentials {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// The token in the file of this name, as it is now: the kubelet replaces the files when a Secret changes. The name must be one
    /// that the operator allowed.
    pub(super) async fn token(&self, name: &str) -> Result<Token, String> {
        let folder = self
            .0
            .as_ref()
            .ok_or("this executor has no --analysis-credentials")?;
        let path = folder.join(name);
        let token = tokio::task::spawn_blocking(move || read(&path)).await;
        let token = token.map_err(|_| "reading it was ended".to_owned());
        token
            .flatten()
            .map_err(|why| format!("credential {name:?} cannot be used: {why}"))
    }
}

/// Reads a token. An error tells nothing of the content.
fn read(path: &Path) -> Result<Token, String> {
    // Opening a pipe would wait for a writer.
    let found = fs::metadata(path).map_err(|error| error.kind().to_string())?;
    if !found.is_file() {
        return Err("it is no file".to_owned());
    }
    let file = File::open(path).map_err(|error| error.kind().to_string())?;
    let mut content = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut content);
    read.map_err(|error| error.kind().to_string())?;
    if content.len() as u64 > MOST_BYTES {
        return Err(format!("it has more than {MOST_BYTES} bytes"));
    }
    let token = content.trim();
    if token.is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| "it has characters that no token has".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_is_read_anew_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = Credentials::new(Some(folder.path().to_owned()));
        let error = credentials.token("prom").await.expect_err("there is no file");
        assert!(
            error.contains("\"prom\"") && error.contains("not found"),
            "{error}"
        );
        for token in ["first", "second"] {
            fs::write(folder.path().join("prom"), format!("{token}\n")).expect("a file");
            let found = credentials.token("prom").await.expect("a token");
            assert_eq!(found, format!("Bearer {token}"));
            assert!(!format!("{found:?}").contains(token), "it is printed");
        }
    }

    #[tokio::test]
    async fn odd_files_are_refused_and_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = Credentials::new(Some(folder.path().to_owned()));
        let long = "secret".repeat(4_000);
        for content in ["", "\n", "secret\nsecret", "secret\u{7f}", &long] {
            fs::write(folder.path().join("prom"), content).expect("a file");
            let error = credentials.token("prom").await.expect_err(content);
            assert!(!error.contains("secret"), "{error}");
        }
        fs::create_dir(folder.path().join("folder")).expect("a folder");
        credentials.token("folder").await.expect_err("no file");
        let error = Credentials::new(None).token("prom").await.expect_err("no folder");
        assert!(error.contains("--analysis-credentials"), "{error}");
    }
}
