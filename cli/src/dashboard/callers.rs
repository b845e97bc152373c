//! Callers with bearer tokens. Each has watches of its own, made with its own token, which end when the caller has been away for a while.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use futures::{StreamExt as _, future::BoxFuture, stream};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, Config, api::PostParams};
use nodewise_dashboard::{Callers, Problem, Reason, Source};
use nodewise_runtime::connect;
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::Semaphore,
    time::{interval, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    args::DashboardArgs,
    local,
    plays::Plays,
    views::{Asked, Digest, View, Views},
};
use crate::input::{cluster_only, one_line};

/// Tokens are checked again this often.
const CHECKED: Duration = Duration::from_mins(1);
/// The most tokens that are checked at a time.
const MAX_CHECKS: usize = 8;
/// The longest time of a check, and the longest time that one waits for others.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The views of all callers.
pub(super) struct TokenCallers {
    settings: local::Settings,
    config: Config,
    views: Arc<Mutex<Views<Caller>>>,
    checks: Semaphore,
    end: CancellationToken,
}

/// What all views of a token share.
#[derive(Clone)]
struct Caller {
    client: Client,
    plays: Arc<Plays>,
}

impl TokenCallers {
    /// Reads which cluster is asked. Its credentials are not used.
    pub(super) async fn start(args: &DashboardArgs, end: CancellationToken) -> anyhow::Result<Self> {
        let config = cluster_only(args.source.kubeconfig.as_deref(), args.source.context.as_deref()).await?;
        Ok(Self::new(local::Settings::of(args)?, config, end))
    }

    fn new(settings: local::Settings, config: Config, end: CancellationToken) -> Self {
        let callers = Self {
            settings,
            config,
            views: Arc::default(),
            checks: Semaphore::new(MAX_CHECKS),
            end,
        };
        tokio::spawn(tidy(Arc::clone(&callers.views), callers.end.clone()));
        callers
    }

    async fn view(&self, token: &str, namespaces: Vec<String>) -> Result<Arc<dyn Source>, Problem> {
        let asked = Asked {
            token: Sha256::digest(token).into(),
            namespaces: shown(&self.settings.namespaces, namespaces)?,
        };
        if let Some(source) = lock(&self.views).find(&asked, Instant::now()) {
            return Ok(source);
        }
        let known = lock(&self.views).caller(&asked.token);
        let caller = match known {
            Some(caller) => caller,
            None => self.checked(asked.token, token).await?,
        };
        self.begin(asked, caller)
    }

    /// The caller with this token, if the cluster accepts it.
    async fn checked(&self, digest: Digest, token: &str) -> Result<Caller, Problem> {
        let is_refused = || lock(&self.views).is_refused(&digest, Instant::now());
        if is_refused() {
            return Err(refused());
        }
        let slot = timeout(CHECK_TIMEOUT, self.checks.acquire()).await;
        let Ok(Ok(_slot)) = slot else {
            return Err(unavailable(
                "many tokens are being checked; try again later".to_owned(),
            ));
        };
        // Another request with the same token may have been faster.
        if is_refused() {
            return Err(refused());
        }
        let client = client(&self.config, token).map_err(|error| unavailable(format!("{error:#}")))?;
        let checked = check(&client).await;
        if is_refusal(&checked) {
            lock(&self.views).refuse(digest, Instant::now());
        }
        checked.map(|()| Caller {
            client,
            plays: self.settings.plays(),
        })
    }

    fn begin(&self, asked: Asked, caller: Caller) -> Result<Arc<dyn Source>, Problem> {
        let mut views = lock(&self.views);
        let now = Instant::now();
        // Another request of the caller may have been faster.
        if let Some(source) = views.find(&asked, now) {
            return Ok(source);
        }
        views.make_room(&asked.token)?;
        let caller = views.caller(&asked.token).unwrap_or(caller);
        let (feed, source) = local::watch(
            &self.settings,
            caller.client.clone(),
            self.config.cluster_url.to_string().trim_end_matches('/'),
            asked.namespaces.clone(),
            Arc::clone(&caller.plays),
        );
        let end = self.end.child_token();
        let ended = Arc::new(OnceLock::new());
        let (closing, ending) = (end.clone(), Arc::clone(&ended));
        tokio::spawn(async move {
            // The board says what the problem is.
            let _ = feed.run(closing).await;
            let _ = ending.set(Instant::now());
        });
        let source: Arc<dyn Source> = Arc::new(source);
        let view = View {
            source: Arc::clone(&source),
            caller,
            end,
            ended,
            used: now,
        };
        views.insert(asked, view);
        Ok(source)
    }
}

impl Callers for TokenCallers {
    fn source(
        &self,
        token: &str,
        namespaces: Vec<String>,
    ) -> BoxFuture<'_, Result<Arc<dyn Source>, Problem>> {
        let token = token.to_owned();
        Box::pin(async move { self.view(&token, namespaces).await })
    }
}

/// The namespaces of a view: those that the caller names, of those that may be shown. An empty list stands for all.
fn shown(allowed: &[String], named: Vec<String>) -> Result<Vec<String>, Problem> {
    if allowed.is_empty() {
        return Ok(named);
    }
    if named.is_empty() {
        return Ok(allowed.to_vec());
    }
    match named.iter().find(|name| !allowed.contains(name)) {
        None => Ok(named),
        Some(other) => Err(Problem::new(
            Reason::Invalid,
            format!(
                "the namespace {other} is not shown here; expected some of {}",
                allowed.join(", ")
            ),
        )),
    }
}

fn lock(views: &Mutex<Views<Caller>>) -> MutexGuard<'_, Views<Caller>> {
    views.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unavailable(message: String) -> Problem {
    Problem::new(Reason::Unavailable, message)
}

fn refused() -> Problem {
    Problem::new(Reason::Unauthorized, "the cluster does not accept this token")
}

/// A client with this token, and with nothing else that identifies it.
fn client(config: &Config, token: &str) -> anyhow::Result<Client> {
    let mut config = config.clone();
    config.auth_info.token = Some(token.to_owned().into());
    Ok(connect::client(config)?)
}

/// Asks the apiserver whether it knows the caller.
async fn check(client: &Client) -> Result<(), Problem> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, review) = (PostParams::default(), SelfSubjectReview::default());
    let Ok(created) = timeout(CHECK_TIMEOUT, reviews.create(&params, &review)).await else {
        return Err(unavailable(format!(
            "the cluster does not answer within {CHECK_TIMEOUT:?}"
        )));
    };
    match created {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 401 => Err(refused()),
        // The cluster knows the caller, and has its reasons.
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(()),
        Err(error) => Err(unavailable(format!(
            "the cluster does not answer: {}",
            one_line(&error)
        ))),
    }
}

fn is_refusal(checked: &Result<(), Problem>) -> bool {
    let problem = checked.as_ref().err();
    problem.is_some_and(|problem| problem.reason == Reason::Unauthorized)
}

/// Ends views that are idle, and those whose token the cluster does not accept any more.
async fn tidy(views: Arc<Mutex<Views<Caller>>>, end: CancellationToken) {
    let mut ticks = interval(CHECKED);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = end.cancelled() => return,
        }
        lock(&views).remove_idle(Instant::now());
        let callers = lock(&views).callers();
        let checks = stream::iter(callers).map(async |(token, caller)| (token, check(&caller.client).await));
        let mut checks = std::pin::pin!(checks.buffer_unordered(MAX_CHECKS));
        while let Some((token, checked)) = checks.next().await {
            if is_refusal(&checked) {
                lock(&views).refuse(token, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::{
        Router,
        http::{HeaderMap, StatusCode},
        routing::post,
    };
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    const REVIEW: &str =
        r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}"#;

    /// Callers of an apiserver that accepts the token `good`, and how often it was asked about tokens.
    async fn callers() -> (TokenCallers, Arc<AtomicUsize>) {
        let reviews = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reviews);
        let review = async move |headers: HeaderMap| {
            count.fetch_add(1, Ordering::Relaxed);
            match headers.get("authorization") {
                Some(given) if given == "Bearer good" => (StatusCode::CREATED, REVIEW),
                _ => (StatusCode::UNAUTHORIZED, ""),
            }
        };
        let router = Router::new()
            .route("/apis/authentication.k8s.io/v1/selfsubjectreviews", post(review))
            .fallback(async || StatusCode::FORBIDDEN);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(axum::serve(listener, router).into_future());
        let line = [
            "nodewise",
            "dashboard",
            "--listen",
            "127.0.0.1:0",
            "--allow-host",
            "page",
        ];
        let Ok(Cli {
            command: Command::Dashboard(args),
        }) = Cli::try_parse_from(line)
        else {
            panic!("the command line is valid");
        };
        let settings = local::Settings::of(&args).expect("the settings are valid");
        let config = Config::new(url.parse().expect("a URL"));
        let callers = TokenCallers::new(settings, config, CancellationToken::new());
        (callers, reviews)
    }

    #[tokio::test]
    async fn the_cluster_is_asked_about_each_token_once() {
        let (callers, reviews) = callers().await;
        for _ in 0..3 {
            let problem = callers.source("wrong", Vec::new()).await.err();
            assert_eq!(problem, Some(refused()));
        }
        assert_eq!(reviews.load(Ordering::Relaxed), 1);
        for namespaces in [vec![], vec![], vec!["shop".to_owned()]] {
            let source = callers.source("good", namespaces).await;
            assert_eq!(source.err(), None);
        }
        assert_eq!(reviews.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_caller_sees_named_namespaces_of_those_that_are_shown() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        for (allowed, named, expected) in [
            (names(&[]), names(&[]), Ok(names(&[]))),
            (names(&[]), names(&["shop"]), Ok(names(&["shop"]))),
            (names(&["shop", "web"]), names(&[]), Ok(names(&["shop", "web"]))),
            (names(&["shop", "web"]), names(&["web"]), Ok(names(&["web"]))),
            (
                names(&["shop", "web"]),
                names(&["kube-system", "web"]),
                Err("the namespace kube-system is not shown here; expected some of shop, web".to_owned()),
            ),
        ] {
            let shown = shown(&allowed, named.clone()).map_err(|problem| problem.message);
            assert_eq!(shown, expected, "{allowed:?} {named:?}");
        }
    }
}
