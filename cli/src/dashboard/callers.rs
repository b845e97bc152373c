//! Callers with bearer tokens. Each has watches of its own, made with its own token, which end when the caller has been away for a while.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, Config, api::PostParams};
use nodewise_dashboard::{Callers, Problem, Reason, Source};
use nodewise_runtime::connect;
use sha2::{Digest as _, Sha256};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::{args::DashboardArgs, local};
use crate::input::{cluster_only, one_line};

/// The watches of a caller end after so long without a stream or a request.
const IDLE: Duration = Duration::from_mins(5);
/// Tokens are checked again this often.
const CHECKED: Duration = Duration::from_mins(1);
/// The most callers at a time. Each has watches on the apiserver, and objects in memory.
const MAX_CALLERS: usize = 64;

/// The digest of a token. The token itself is only in the client.
type Digest = [u8; 32];

/// The views of all callers.
pub(super) struct TokenCallers {
    settings: local::Settings,
    config: Config,
    views: Arc<Mutex<HashMap<Digest, View>>>,
    end: CancellationToken,
}

struct View {
    source: Arc<dyn Source>,
    client: Client,
    used: Instant,
    end: CancellationToken,
}

impl TokenCallers {
    /// Reads which cluster is asked. Its credentials are not used.
    pub(super) async fn start(args: &DashboardArgs, end: CancellationToken) -> anyhow::Result<Self> {
        let config = cluster_only(args.source.kubeconfig.as_deref(), args.source.context.as_deref()).await?;
        let callers = Self {
            settings: local::Settings::of(args)?,
            config,
            views: Arc::default(),
            end,
        };
        tokio::spawn(tidy(Arc::clone(&callers.views), callers.end.clone()));
        Ok(callers)
    }

    /// The view of a token that is known.
    fn known(&self, digest: &Digest) -> Option<Arc<dyn Source>> {
        let mut views = lock(&self.views);
        let view = views.get_mut(digest)?;
        view.used = Instant::now();
        Some(Arc::clone(&view.source))
    }

    async fn view(&self, token: &str) -> Result<Arc<dyn Source>, Problem> {
        let digest: Digest = Sha256::digest(token).into();
        if let Some(source) = self.known(&digest) {
            return Ok(source);
        }
        let unavailable = |error: String| Problem::new(Reason::Unavailable, error);
        let client = client(&self.config, token).map_err(|error| unavailable(format!("{error:#}")))?;
        check(&client).await?;
        let mut views = lock(&self.views);
        // Another request of the caller may have been faster.
        if let Some(view) = views.get(&digest) {
            return Ok(Arc::clone(&view.source));
        }
        if views.len() >= MAX_CALLERS {
            return Err(unavailable(format!(
                "there are {MAX_CALLERS} callers already; try again later"
            )));
        }
        let url = self.config.cluster_url.to_string();
        let view = local::watch(&self.settings, client.clone(), url.trim_end_matches('/'));
        let (feed, source) = view;
        let end = self.end.child_token();
        let closing = end.clone();
        tokio::spawn(async move {
            // The board says what the problem is.
            let _ = feed.run(closing).await;
        });
        let source: Arc<dyn Source> = Arc::new(source);
        views.insert(
            digest,
            View {
                source: Arc::clone(&source),
                client,
                used: Instant::now(),
                end,
            },
        );
        Ok(source)
    }
}

impl Callers for TokenCallers {
    fn source(&self, token: &str) -> BoxFuture<'_, Result<Arc<dyn Source>, Problem>> {
        let token = token.to_owned();
        Box::pin(async move { self.view(&token).await })
    }
}

impl View {
    /// Whether nobody reads a stream, and nobody has asked for a while.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.source) == 1 && self.used.elapsed() >= IDLE
    }

    fn close(self) {
        self.end.cancel();
        self.source.board().close();
    }
}

fn lock(views: &Mutex<HashMap<Digest, View>>) -> MutexGuard<'_, HashMap<Digest, View>> {
    views.lock().unwrap_or_else(PoisonError::into_inner)
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
    match reviews
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await
    {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 401 => Err(Problem::new(
            Reason::Unauthorized,
            "the cluster does not accept this token",
        )),
        // The cluster knows the caller, and has its reasons.
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(()),
        Err(error) => Err(Problem::new(
            Reason::Unavailable,
            format!("the cluster does not answer: {}", one_line(&error)),
        )),
    }
}

/// Ends views that are idle, and those whose token the cluster does not accept any more.
async fn tidy(views: Arc<Mutex<HashMap<Digest, View>>>, end: CancellationToken) {
    let mut ticks = interval(CHECKED);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = end.cancelled() => return,
        }
        let all: Vec<(Digest, Client, bool)> = lock(&views)
            .iter()
            .map(|(digest, view)| (*digest, view.client.clone(), view.is_idle()))
            .collect();
        for (digest, client, is_idle) in all {
            let refused = || async {
                let checked = check(&client).await;
                checked.is_err_and(|problem| problem.reason == Reason::Unauthorized)
            };
            if is_idle || refused().await {
                let view = lock(&views).remove(&digest);
                if let Some(view) = view {
                    view.close();
                }
            }
        }
    }
}
