//! The view of one caller: its feed, and the source that the page asks.

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use nodewise_dashboard::{Board, Change, Comparison, Key, Problem, Reason, Source};
use nodewise_proto::v1;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    args::DashboardArgs,
    feed::{Feed, KINDS, Origin},
    objects::Objects,
    plays::{AllPlays, Plays},
    questions::Question,
};
use crate::{
    engine::Engine,
    gaps,
    input::{Cluster, Follower, connect},
    target::Target,
};

/// The most questions that wait for the feed.
const WAITING: usize = 16;

/// What the page asks.
pub(super) struct LocalSource {
    board: Arc<Board>,
    questions: mpsc::Sender<Question>,
    plays: Arc<Plays>,
}

/// What all views of one command have.
pub(super) struct Settings {
    /// The namespaces that may be shown. Empty: all.
    pub(super) namespaces: Vec<String>,
    trace_url: String,
    now: Option<Timestamp>,
    profile: v1::Profile,
    engine: Arc<Engine>,
    plays: AllPlays,
}

impl Settings {
    pub(super) fn of(args: &DashboardArgs) -> anyhow::Result<Self> {
        Ok(Self {
            namespaces: args.namespaces.clone(),
            trace_url: args.trace_url.clone().unwrap_or_default(),
            now: args.engine.now,
            profile: args.engine.profile.into(),
            engine: Arc::new(Engine::new(&args.engine)?),
            plays: AllPlays::default(),
        })
    }

    fn origin(&self, source: String, namespaces: Vec<String>, client: Option<Client>) -> Origin {
        Origin {
            source,
            namespaces,
            trace_url: self.trace_url.clone(),
            client,
            now: self.now,
            profile: self.profile,
        }
    }

    /// The plays of a new caller.
    pub(super) fn plays(&self) -> Arc<Plays> {
        Arc::new(Plays::new(self.plays.clone()))
    }
}

/// Begins with the cluster or the files that the command line names.
pub(super) async fn start(args: &DashboardArgs) -> anyhow::Result<(Feed, LocalSource)> {
    let settings = Settings::of(args)?;
    let source = &args.source;
    if source.files.is_empty() {
        let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        let namespaces = settings.namespaces.clone();
        return Ok(watch(&settings, client, &url, namespaces, settings.plays()));
    }
    let targets = Target::parse_many(&KINDS.map(|kind| kind.plural().to_owned()))?;
    let cluster = Cluster::read_with_facts(source, &targets, None).await?;
    gaps::hint_without_policies(&cluster, cluster.all_workloads().iter());
    let origin = settings.origin(cluster.source(), settings.namespaces.clone(), None);
    Ok(view(
        &settings,
        Objects::Dump(Box::new(cluster)),
        origin,
        settings.plays(),
    ))
}

/// Begins with watches of this client in these namespaces; if there are none, in all.
pub(super) fn watch(
    settings: &Settings,
    client: Client,
    url: &str,
    namespaces: Vec<String>,
    plays: Arc<Plays>,
) -> (Feed, LocalSource) {
    let follower = Follower::start(&client, url, &KINDS, &namespaces).tolerating_missing_nodes();
    let origin = settings.origin(url.to_owned(), namespaces, Some(client));
    view(settings, Objects::Live(Box::new(follower)), origin, plays)
}

fn view(settings: &Settings, objects: Objects, origin: Origin, plays: Arc<Plays>) -> (Feed, LocalSource) {
    let board = Arc::new(Board::default());
    let (questions, asked) = mpsc::channel(WAITING);
    let feed = Feed::new(
        objects,
        origin,
        Arc::clone(&settings.engine),
        Arc::clone(&board),
        asked,
    );
    let source = LocalSource {
        board,
        questions,
        plays,
    };
    (feed, source)
}

impl LocalSource {
    /// Asks the feed.
    async fn ask<T>(
        &self,
        question: Question,
        answer: oneshot::Receiver<Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let ended = || Problem::new(Reason::Unavailable, "the view of the cluster has ended");
        self.questions.send(question).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }

    async fn play(&self, change: Change, steps: mpsc::Sender<Value>) -> Result<(), Problem> {
        let play = self.plays.begin().await?;
        // If nobody waits for this function any more, the play ends.
        let _end = play.end.clone().drop_guard();
        let (answer, prepared) = oneshot::channel();
        let preview = self.ask(Question::Prepare { change, answer }, prepared).await?;
        let played = tokio::task::spawn_blocking(move || play.run(preview, &steps));
        played
            .await
            .map_err(|_| Problem::new(Reason::Unavailable, "the play has ended with an error"))?
    }
}

impl Source for LocalSource {
    fn board(&self) -> &Board {
        &self.board
    }

    fn compare(
        &self,
        key: Key,
        from: Option<i64>,
        to: Option<i64>,
    ) -> BoxFuture<'_, Result<Comparison, Problem>> {
        let (answer, compared) = oneshot::channel();
        let question = Question::Compare {
            key,
            from,
            to,
            answer,
        };
        Box::pin(self.ask(question, compared))
    }

    fn what_if(&self, change: Change, steps: mpsc::Sender<Value>) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(self.play(change, steps))
    }
}
