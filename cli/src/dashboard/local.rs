//! The view of one caller: its feed, and the source that the page asks.

use std::{ops::ControlFlow, sync::Arc};

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
    questions::{Question, invalid},
};
use crate::{
    engine::Engine,
    input::{Cluster, Follower, connect},
    target::Target,
};

/// The most questions that wait for the feed.
const WAITING: usize = 16;

/// What the page asks.
pub(super) struct LocalSource {
    board: Arc<Board>,
    questions: mpsc::Sender<Question>,
}

/// What all views of one command have.
pub(super) struct Settings {
    namespaces: Vec<String>,
    trace_url: String,
    now: Option<Timestamp>,
    profile: v1::Profile,
    engine: Arc<Engine>,
}

impl Settings {
    pub(super) fn of(args: &DashboardArgs) -> anyhow::Result<Self> {
        Ok(Self {
            namespaces: args.namespaces.clone(),
            trace_url: args.trace_url.clone().unwrap_or_default(),
            now: args.engine.now,
            profile: args.engine.profile.into(),
            engine: Arc::new(Engine::new(&args.engine)?),
        })
    }
}

/// Begins with the cluster or the files that the command line names.
pub(super) async fn start(args: &DashboardArgs) -> anyhow::Result<(Feed, LocalSource)> {
    let settings = Settings::of(args)?;
    let source = &args.source;
    if source.files.is_empty() {
        let (client, url) = connect(source.kubeconfig.as_deref(), source.context.as_deref()).await?;
        return Ok(watch(&settings, client, &url));
    }
    let targets = Target::parse_many(&KINDS.map(|kind| kind.plural().to_owned()))?;
    let cluster = Cluster::read_with_facts(source, &targets, None).await?;
    let source = cluster.source();
    Ok(view(&settings, Objects::Dump(Box::new(cluster)), None, source))
}

/// Begins with watches of this client.
pub(super) fn watch(settings: &Settings, client: Client, url: &str) -> (Feed, LocalSource) {
    let follower = Follower::start(&client, url, &KINDS, &settings.namespaces);
    view(
        settings,
        Objects::Live(Box::new(follower)),
        Some(client),
        url.to_owned(),
    )
}

fn view(
    settings: &Settings,
    objects: Objects,
    client: Option<Client>,
    source: String,
) -> (Feed, LocalSource) {
    let board = Arc::new(Board::default());
    let (questions, asked) = mpsc::channel(WAITING);
    let origin = Origin {
        source,
        namespaces: settings.namespaces.clone(),
        trace_url: settings.trace_url.clone(),
        client,
        now: settings.now,
        profile: settings.profile,
    };
    let feed = Feed::new(
        objects,
        origin,
        Arc::clone(&settings.engine),
        Arc::clone(&board),
        asked,
    );
    (feed, LocalSource { board, questions })
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
        let (answer, prepared) = oneshot::channel();
        let preview = self.ask(Question::Prepare { change, answer }, prepared).await?;
        let stop = steps.clone();
        let played = tokio::task::spawn_blocking(move || {
            // Whoever reads the steps may go: then the play ends.
            preview.play(
                &|| stop.is_closed(),
                &mut |step| match steps.blocking_send(step) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                },
            )
        });
        let played = played.await;
        played
            .map_err(|_| Problem::new(Reason::Unavailable, "the play has ended with an error"))?
            .map_err(|error| invalid(&error))
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
