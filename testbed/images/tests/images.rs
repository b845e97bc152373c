//! Each image has the right labels and exactly one file, which runs without anything else.

use std::{fs, net::SocketAddr, path::Path, sync::LazyLock, time::Duration};

use anyhow::{Context as _, Result, ensure};
use nodewise_images::{Image, bill_of_materials};
use nodewise_testbed::{ControlPlane, Process, eventually};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What the images are for: `ARCHITECTURES`, or else amd64 and arm64.
static ARCHITECTURES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let named = std::env::var("ARCHITECTURES").unwrap_or_else(|_| "amd64 arm64".to_owned());
    named.split_whitespace().map(str::to_owned).collect()
});
const IMAGES: [&str; 3] = ["nodewise-server", "nodewise-executor", "nodewise"];

/// Generous: programs may be emulated, from a debug build, on a busy machine.
const DEADLINE: Duration = Duration::from_mins(2);

/// Runs `check` for each architecture.
async fn on_each(name: &str, check: impl AsyncFn(Image) -> Result<()>) -> Result<()> {
    for architecture in &*ARCHITECTURES {
        check(Image::open(name, architecture)?)
            .await
            .with_context(|| format!("{name} for {architecture}"))?;
    }
    Ok(())
}

/// Runs the program until it ends. Returns its exit status and output.
async fn run(image: &Image, arguments: &[&str]) -> Result<(Option<i32>, String)> {
    let program = Process::spawn("program", image.command(arguments)?)?;
    let status = program.wait_for_exit(DEADLINE).await?;
    Ok((status.code(), program.log()))
}

#[tokio::test]
async fn labels_and_configuration_are_right() -> Result<()> {
    for name in IMAGES {
        on_each(name, async |image| {
            let config = image.config();
            let settings = &config.config;
            assert!(ARCHITECTURES.contains(&config.architecture), "{config:?}");
            assert_eq!(config.os, "linux");
            assert_eq!(settings.user, "65532:65532");
            assert_eq!(settings.entrypoint, [format!("/{name}")]);
            assert!(settings.cmd.is_empty(), "{config:?}");
            let label = |key: &str| {
                let label = settings.labels.get(&format!("org.opencontainers.image.{key}"));
                label.map(String::as_str).unwrap_or_default()
            };
            assert_eq!(label("title"), name);
            assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
            assert_eq!(label("version"), image.tag());
            assert_eq!(label("licenses"), env!("CARGO_PKG_LICENSE"));
            assert_eq!(label("source"), env!("CARGO_PKG_REPOSITORY"));
            assert!(label("revision").len() >= 7, "{config:?}");
            assert!(label("description").len() > 20, "{config:?}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn image_has_one_executable_read_only_file() -> Result<()> {
    for name in IMAGES {
        on_each(name, async |image| {
            assert_eq!(image.files(), [format!("-rwxr-xr-x 0/0 {name}")]);
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// The programs do not contain the path of the build folder. It is private, and images of equal sources would differ.
#[tokio::test]
async fn programs_do_not_contain_the_build_path() -> Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()?;
    let mut places = vec![repository.into_os_string()];
    places.extend(["HOME", "CARGO_HOME"].into_iter().filter_map(std::env::var_os));
    for name in IMAGES {
        on_each(name, async |image| {
            let program = fs::read(image.root().join(name))?;
            for place in &places {
                // A path such as `/` would always be found.
                let place = [place.as_encoded_bytes(), b"/"].concat();
                let found = place.len() > 4 && program.windows(place.len()).any(|window| window == place);
                ensure!(!found, "{} is in it", String::from_utf8_lossy(&place));
            }
            Ok(())
        })
        .await?;
    }
    Ok(())
}

#[test]
fn bill_of_materials_is_complete() -> Result<()> {
    for name in IMAGES {
        let bill = bill_of_materials(name)?;
        assert_eq!(bill["bomFormat"], "CycloneDX");
        assert_eq!(bill["metadata"]["component"]["name"], name);
        assert_eq!(
            bill["metadata"]["component"]["version"],
            env!("CARGO_PKG_VERSION")
        );
        for (part, license) in [
            ("ring", "Apache-2.0 AND ISC"),
            ("mimalloc", "MIT"),
            ("tonic", "MIT"),
        ] {
            let components = bill["components"].as_array().context("components")?;
            let found = components.iter().find(|it| it["name"] == part);
            let found = found.with_context(|| format!("{name} lists no {part}"))?;
            assert_eq!(found["licenses"][0]["expression"], license);
            assert_eq!(found["hashes"][0]["alg"], "SHA-256", "{found}");
        }
        assert!(
            !bill.to_string().contains("file:///"),
            "{name} tells where it was built"
        );
    }
    Ok(())
}

#[tokio::test]
async fn programs_print_their_version() -> Result<()> {
    for name in IMAGES {
        on_each(name, async |image| {
            let version = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
            assert_eq!(run(&image, &["--version"]).await?, (Some(0), version));
            Ok(())
        })
        .await?;
    }
    Ok(())
}

/// Starts the server of an image and waits until it is ready.
async fn serve(image: &Image) -> Result<(Process, String)> {
    let flags = ["--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0"];
    let server = Process::spawn("nodewise-server", image.command(&flags)?)?;
    ready(&server).await?;
    let url = format!("http://{}", said_address(&server, "serve: listening on ").await?);
    Ok((server, url))
}

#[tokio::test]
async fn the_server_is_ready_and_plans_for_the_command_line() -> Result<()> {
    on_each("nodewise-server", async |image| {
        let (_server, url) = serve(&image).await?;
        let cli = Image::open("nodewise", &image.config().architecture)?;
        let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cli/tests/data/mixed.json");
        cli.add(&cluster, Path::new("mixed.json"))?;
        let plan = [
            "plan",
            "-f=/mixed.json",
            "--now=2026-01-01T02:00:00Z",
            "--server",
            &url,
        ];
        let (status, printed) = run(&cli, &plan).await?;
        assert_eq!(status, Some(0), "{printed}");
        assert!(
            printed.contains("create pod agent-r9pzsdgzqf on node-5"),
            "{printed}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_executor_is_ready_in_a_cluster() -> Result<()> {
    let cluster = ControlPlane::builder().start().await?;
    on_each("nodewise-executor", async |image| {
        let (_server, url) = serve(&Image::open("nodewise-server", &image.config().architecture)?).await?;
        let mut command =
            image.command(&["--http-listen=127.0.0.1:0", "--mode=observe", "--server", &url])?;
        let (host, port) = give_service_account(&cluster, &image)?;
        command
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port);
        ready(&Process::spawn("nodewise-executor", command)?).await
    })
    .await
}

#[tokio::test]
async fn executor_fails_without_a_cluster() -> Result<()> {
    on_each("nodewise-executor", async |image| {
        let (status, printed) = run(&image, &["--server=http://127.0.0.1:1", "--mode=observe"]).await?;
        assert_eq!(status, Some(1), "{printed}");
        assert!(
            printed.contains("not in a cluster: name one with --kubeconfig"),
            "{printed}"
        );
        Ok(())
    })
    .await
}

/// Copies a service account's files to where a pod has them. Returns the apiserver's host and port.
fn give_service_account(cluster: &ControlPlane, image: &Image) -> Result<(String, String)> {
    let folder = Path::new("var/run/secrets/kubernetes.io/serviceaccount");
    let kubeconfig: Value = serde_json::from_slice(&fs::read(cluster.kubeconfig())?)?;
    let text = |pointer: &str| {
        kubeconfig
            .pointer(pointer)
            .and_then(Value::as_str)
            .context("a kubeconfig")
    };
    let authority = Path::new(text("/clusters/0/cluster/certificate-authority")?);
    image.add(authority, &folder.join("ca.crt"))?;
    fs::write(
        image.root().join(folder).join("token"),
        text("/users/0/user/token")?,
    )?;
    fs::write(image.root().join(folder).join("namespace"), "default")?;
    let (_, address) = text("/clusters/0/cluster/server")?
        .split_once("://")
        .context("a URL")?;
    let (host, port) = address.split_once(':').context("a port")?;
    Ok((host.to_owned(), port.to_owned()))
}

/// Waits until the process is ready, as a kubelet would.
async fn ready(process: &Process) -> Result<()> {
    let http = said_address(process, "health and metrics: listening on ").await?;
    eventually(DEADLINE, "readiness", async || {
        let answer = get(http, "/readyz").await?;
        ensure!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        Ok(())
    })
    .await
}

/// The address after these words in the log.
async fn said_address(process: &Process, words: &str) -> Result<SocketAddr> {
    let line = process.wait_for_log_line(words, DEADLINE).await?;
    let (_, address) = line.split_once(words).context("the line has the words")?;
    let address = address.split_whitespace().next().unwrap_or_default();
    address
        .parse()
        .with_context(|| format!("the address in {line:?}"))
}

async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
        .await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
