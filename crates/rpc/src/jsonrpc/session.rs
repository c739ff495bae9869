//! The server's end of a connection that lasts: messages answered as they come, several at a time,
//! and subscriptions.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::spawn_blocking;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::{self, Request, answer_by};
use crate::jsonrpc::params::Params;
use crate::jsonrpc::subscription::{SubscriptionMethods, Subscriptions};
use crate::limits::OUTGOING_LEN;
use crate::port::{Answered, Port, Unanswered};
use crate::transport::room::{Place, Untaken, permits, semaphore, units};
use crate::transport::turns::{Order, Turn};
use crate::transport::websocket::{Ending, Held, Outgoing};

/// What brings messages, whatever carries them.
pub(crate) trait Reader: Send + Sized {
    /// What takes answers on the same connection.
    type Writer: Send;

    /// Whether what came whole is answered before what is wrong behind it ends the connection:
    /// where both come at once, or one soon after the other, the same becomes of it.
    const ANSWERS_BEFORE_FAULTS: bool;

    /// The next text. Where the connection could die unnoticed, it is tried when nothing came for
    /// `silence`, and given up after as long again unless the other side waits for something:
    /// `waited_for`.
    fn next(
        &mut self,
        silence: Duration,
        waited_for: impl Fn() -> bool + Send,
    ) -> impl Future<Output = Result<Utf8Bytes, Ending>> + Send;

    /// What the last text takes of a room that all connections of the port share.
    fn take_room(&mut self) -> Option<Place> {
        None
    }

    /// Waits until the other side, which has [asked](Ending::Asked) all that it will, is gone too.
    fn gone(&mut self) -> impl Future<Output = ()> + Send {
        pending()
    }

    /// Sends until a goodbye, or until nothing can come any more, which is [`CloseCode::Normal`],
    /// or something fails.
    fn send_all(
        writer: &mut Self::Writer,
        outgoing: &mut mpsc::Receiver<Outgoing>,
    ) -> impl Future<Output = Ending> + Send;

    /// Says goodbye as far as the ending leaves anything to say, and closes the connection.
    fn close(self, writer: Self::Writer, ending: &Ending) -> impl Future<Output = ()> + Send;
}

/// Serves one connection until it ends, or until `stopped` closes and its messages are answered.
pub(crate) async fn converse<R: Reader>(
    port: Arc<Port>,
    mut reader: R,
    mut writer: R::Writer,
    untaken: Arc<Untaken>,
    stopped: watch::Receiver<()>,
) {
    let (outgoing, mut queue) = mpsc::channel(OUTGOING_LEN);
    let session = Arc::new(Session::new(port, untaken, outgoing));
    let ending = tokio::select! {
        ending = session.run(&mut reader, stopped) => ending,
        ending = R::send_all(&mut writer, &mut queue) => ending,
        () = session.untaken.over().notified() => Ending::Broken(READ_TOO_SLOWLY.into()),
    };
    // Calls that still run have nobody to tell, and subscriptions end.
    drop(queue);
    tracing::debug!(%ending, "a conversation ends");
    reader.close(writer, &ending).await;
}

/// Why a connection is cut.
pub(crate) const READ_TOO_SLOWLY: &str =
    "a connection was cut: an answer was read too slowly while others had no room";

struct Session {
    port: Arc<Port>,
    untaken: Arc<Untaken>,
    order: Arc<Order>,
    outgoing: mpsc::Sender<Outgoing>,
    subscriptions: Arc<Subscriptions>,
    /// One permit for each message that may be on the way to its answer.
    places: Arc<Semaphore>,
    /// What these messages may hold: their bytes, in the port's units.
    bytes: Arc<Semaphore>,
}

impl Session {
    fn new(port: Arc<Port>, untaken: Arc<Untaken>, outgoing: mpsc::Sender<Outgoing>) -> Self {
        let limits = &port.limits;
        let subscriptions = Subscriptions::new(limits.subscriptions, outgoing.clone());
        Self {
            untaken,
            order: Arc::default(),
            outgoing,
            subscriptions: Arc::new(subscriptions),
            places: Arc::new(Semaphore::new(limits.messages)),
            bytes: semaphore(limits.body_bytes),
            port,
        }
    }

    /// Reads and answers. At a stop, or where the other side has asked everything, no more is read,
    /// but what was is answered.
    async fn run<R: Reader>(
        self: &Arc<Self>,
        reader: &mut R,
        mut stopped: watch::Receiver<()>,
    ) -> Ending {
        let goodbye = tokio::select! {
            ending = self.read(reader) => match ending {
                Ending::Asked => ending,
                Ending::Fault { .. } if R::ANSWERS_BEFORE_FAULTS => ending,
                ending => return ending,
            },
            _ = stopped.changed() => {
                Ending::Fault { code: CloseCode::Away, reason: "the server is stopping".into() }
            }
        };
        let all = u32::try_from(self.port.limits.messages).unwrap_or(u32::MAX);
        tokio::select! {
            places = permits(&self.places, all) => drop(places),
            () = reader.gone(), if matches!(goodbye, Ending::Asked) => return Ending::Left(None),
        }
        self.outgoing.send(Outgoing::Goodbye(goodbye)).await.unwrap_or_default();
        // It comes back from the writer.
        pending().await
    }

    async fn read(self: &Arc<Self>, reader: &mut impl Reader) -> Ending {
        let limits = &self.port.limits;
        // The one that is being read is not waited for.
        let waited_for = || self.places.available_permits() + 1 < limits.messages;
        loop {
            // While there is no place nothing is read, and the client has to wait.
            let place = permits(&self.places, 1).await;
            let message = match reader.next(limits.silence, waited_for).await {
                Ok(message) => message,
                Err(ending) => return ending,
            };
            let room = reader.take_room();
            let units = units(message.len(), limits.body_bytes);
            // It waits for nothing but calls that run.
            let bytes = permits(&self.bytes, units).await;
            let held = Held { _place: place, message: Some((bytes, room)), _answer: None };
            let is_in_order = message::is_in_order(message.as_bytes(), &*self.port.handler);
            let turn = is_in_order.then(|| self.order.line_up());
            tokio::spawn(Arc::clone(self).answer(message, turn, held));
        }
    }

    async fn answer(self: Arc<Self>, message: Utf8Bytes, turn: Option<Turn>, mut held: Held) {
        if let Some(turn) = &turn {
            turn.come().await;
        }
        let (answered, is_answered) = watch::channel(false);
        let pace = message::pace(message.as_bytes(), &*self.port.handler);
        let called = self.port.run(pace, &self.untaken, {
            let (session, message) = (Arc::clone(&self), message.clone());
            move || {
                let mut calls = |request: &Request<'_>| session.call(request, &is_answered);
                answer_by(message.as_bytes(), &session.port.limits, &mut calls)
            }
        });
        let called = called.await;
        drop(turn);
        let (text, is_refused) = match called {
            Ok(answered) => {
                drop(message);
                let answered = answered.map(|Answered { answer, room }| {
                    held._answer = Some(room);
                    answer
                });
                (answered, false)
            }
            Err(unanswered) => (self.refuse(message, unanswered).await, true),
        };
        // Nothing of it is left while its answer waits for others.
        held.message = None;
        let Some(text) = text else { return };
        let is_sent = self.outgoing.send(Outgoing::Text(text, Some(held))).await.is_ok();
        if is_sent && !is_refused {
            // Now the notifications of subscriptions that it began.
            answered.send_replace(true);
        }
    }

    /// Says to each request of a message that it is not answered, and why.
    async fn refuse(&self, message: Utf8Bytes, unanswered: Unanswered) -> Option<Json> {
        let code = match unanswered {
            Unanswered::Busy(_) | Unanswered::Full => Code::Server,
            Unanswered::Lost => Code::Internal,
        };
        let port = Arc::clone(&self.port);
        let refuse = move || {
            let mut calls = |_: &Request<'_>| Err(Error::new(code, unanswered));
            answer_by(message.as_bytes(), &port.limits, &mut calls)
        };
        spawn_blocking(refuse).await.unwrap_or_default()
    }

    fn call(&self, request: &Request<'_>, answered: &watch::Receiver<bool>) -> Result<Json, Error> {
        if self.outgoing.is_closed() {
            return Err(Error::hung_up());
        }
        let handler = &self.port.handler;
        let method = &*request.method;
        match handler.subscriptions().iter().find(|kind| kind.has(method)) {
            None => handler.call(method, request.params),
            Some(kind) if kind.subscribe == method => self.subscribe(*kind, request, answered),
            Some(_) => self.unsubscribe(request),
        }
    }

    fn subscribe(
        &self,
        kind: SubscriptionMethods,
        request: &Request<'_>,
        answered: &watch::Receiver<bool>,
    ) -> Result<Json, Error> {
        if request.id.is_none() {
            let detail = "without an id, nobody learns of the subscription";
            return Err(Error::new(Code::InvalidRequest, detail));
        }
        self.subscriptions.check_room()?;
        let subscription = self.port.handler.subscribe(&request.method, request.params)?;
        let id = self.port.subscription_id();
        self.subscriptions.open(&id, kind, subscription, answered.clone())?;
        Json::of(&id)
    }

    fn unsubscribe(&self, request: &Request<'_>) -> Result<Json, Error> {
        let mut params = Params::of(request.params)?;
        let id: String = params.next("subscription")?;
        params.end()?;
        Json::of(&self.subscriptions.close(&request.method, &id))
    }
}
