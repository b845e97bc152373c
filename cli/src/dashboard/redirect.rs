//! A file that leads the browser to the page. The arguments of a program can be read by every user of the machine, and this file by one.

use std::{
    env, fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process,
    time::{SystemTime, UNIX_EPOCH},
};

/// The file, which goes with this value.
#[derive(Debug)]
pub(super) struct Redirect {
    folder: PathBuf,
    file: PathBuf,
}

impl Redirect {
    /// Writes a file that leads to this URL, in a new folder that is the user's alone.
    pub(super) fn to(url: &str) -> io::Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let folder = env::temp_dir().join(format!("nodewise-{}-{}", process::id(), now.as_nanos()));
        // This fails if somebody else has made a folder of this name.
        create_folder(&folder)?;
        let redirect = Self {
            file: folder.join("page.html"),
            folder,
        };
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>Nodewise</title><meta http-equiv=\"refresh\" content=\"0; url={url}\">\n\
             <a href=\"{url}\">Open the page</a>\n"
        );
        create_file(redirect.path())?.write_all(page.as_bytes())?;
        Ok(redirect)
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Redirect {
    fn drop(&mut self) {
        // If it stays, its URL leads nowhere.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn create_file(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_user_can_read_the_file_and_it_goes() {
        let url = "http://127.0.0.1:8090/login?token=secret";
        let redirect = Redirect::to(url).expect("it is written");
        let path = redirect.path().to_owned();
        let page = fs::read_to_string(&path).expect("it is there");
        assert!(page.contains(&format!("content=\"0; url={url}\"")), "{page}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().expect("a folder")), 0o700);
        }
        drop(redirect);
        assert!(!path.exists());
        assert!(!path.parent().expect("a folder").exists());
    }
}
