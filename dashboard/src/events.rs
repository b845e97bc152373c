//! The stream of server-sent events to one browser.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt as _, future::select, stream};
use tokio::{sync::watch, time::sleep};

use crate::{
    changes::{Detail, Message},
    source::Source,
};

/// The shortest time between two groups of messages. A browser cannot show more.
const PAUSE: Duration = Duration::from_millis(100);
/// A comment is sent after this time without a message, so that the browser sees that the connection works.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What one browser knows.
struct Reader {
    source: Arc<dyn Source>,
    detail: Detail,
    changes: watch::Receiver<u64>,
    seen: Option<u64>,
}

impl Reader {
    /// Waits for news, and returns the messages about it. `None` if the board is gone.
    async fn next(&mut self) -> Option<Vec<Message>> {
        if self.seen.is_some() {
            self.changes.changed().await.ok()?;
            sleep(PAUSE).await;
        }
        self.changes.mark_unchanged();
        let state = self.source.board().read();
        let messages = state.since(self.seen.unwrap_or(0), &self.detail);
        self.seen = Some(state.version);
        Some(messages)
    }
}

/// All that there is, and then what changes, until the browser goes or `end` is ready.
pub(crate) fn stream(
    source: Arc<dyn Source>,
    detail: Detail,
    end: impl Future<Output = ()> + Send + 'static,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let end = select(Box::pin(end), Box::pin(source.board().closed()));
    let reader = Reader {
        changes: source.board().changes(),
        source,
        detail,
        seen: None,
    };
    let messages = stream::unfold(reader, async |mut reader| {
        let messages = reader.next().await?;
        Some((stream::iter(messages), reader))
    });
    let events = messages.flatten().map(|message| {
        let event = Event::default().event(message.event());
        // Every message can be written as JSON.
        Ok(event.json_data(&message).unwrap_or_default())
    });
    Sse::new(events.take_until(end)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}
