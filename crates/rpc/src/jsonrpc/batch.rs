//! Messages of a port answered on threads for calls: a batch in turns, as its answers have memory.

use std::sync::Arc;
use std::time::Instant;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::json::Json;
use crate::jsonrpc::message::{Batch, CallRequest, answer_single, is_batch};
use crate::limits::{SMALL_ANSWER_BYTES, TURN_TIME};
use crate::port::{Port, ReservedAnswer, Unanswered};
use crate::transport::budget::Reservation;
use crate::transport::slot::ConnectionSlot;

/// A batch that is being answered.
struct BatchRun<M, C> {
    port: Arc<Port>,
    message: M,
    calls: C,
    /// `None` before its requests are found.
    batch: Option<Batch>,
    /// The memory of its answers, once they are more than a small one.
    memory: Option<Reservation>,
    pause: Pause,
}

/// Why a batch does not go on where it is.
enum Pause {
    /// Others have their turn.
    Turn,
    /// The answers need so many bytes of memory.
    Memory(usize),
    /// All calls were made.
    End,
}

impl<M, C> BatchRun<M, C>
where
    M: AsRef<[u8]>,
    C: FnMut(&CallRequest<'_>) -> Result<Json, Error>,
{
    /// Makes calls for a while.
    fn make_calls(mut self) -> Self {
        let (begun, message, limits) = (Instant::now(), self.message.as_ref(), &self.port.limits);
        let batch = self.batch.get_or_insert_with(|| Batch::begin(message, limits));
        self.pause = loop {
            if batch.make_call(message, limits, &mut self.calls).is_break() {
                break Pause::End;
            }
            let bytes = batch.held_bytes();
            let has_memory = match &mut self.memory {
                None if bytes > SMALL_ANSWER_BYTES => break Pause::Memory(bytes),
                None => true,
                Some(memory) => memory.try_grow(bytes.saturating_sub(memory.amount())),
            };
            match has_memory {
                true => batch.keep_answer(),
                false => batch.refuse_answer(message, NO_MEMORY),
            }
            let is_over = begun.elapsed() >= TURN_TIME || self.port.is_stopping();
            if is_over && !batch.is_ended() {
                break Pause::Turn;
            }
        };
        self
    }

    /// Waits for memory for the answers, the last one among them.
    async fn reserve(&mut self, slot: &ConnectionSlot, bytes: usize) {
        let reserved = self.port.answer_memory(slot, bytes).await;
        let batch = self.batch.as_mut().expect("it has answers");
        match reserved {
            Ok(memory) => {
                self.memory = Some(memory);
                batch.keep_answer();
            }
            Err(unanswered) => batch.refuse_answer(self.message.as_ref(), unanswered),
        }
    }
}

const NO_MEMORY: &str = "busy: there is no more memory for the answers of this batch";

impl Port {
    /// Answers a message, at once or [later](Self::answer_later).
    pub(crate) async fn answer_message<M, C>(
        self: &Arc<Self>,
        slot: &ConnectionSlot,
        message: M,
        calls: C,
    ) -> Result<Option<ReservedAnswer<Json>>, Unanswered>
    where
        M: AsRef<[u8]> + Send + 'static,
        C: FnMut(&CallRequest<'_>) -> Result<Json, Error> + Send + 'static,
    {
        match self.methods.waits(message.as_ref()) {
            true => self.answer_later(slot, message).await,
            false => self.answer_now(slot, message, calls).await,
        }
    }

    /// Answers a message that waits for nothing. Each of its calls, if it is a batch, has a turn of
    /// its own, unless they take no longer than [`TURN_TIME`] together; and once there is no more
    /// memory for the answers, no more calls are made.
    pub(crate) async fn answer_now<M, C>(
        self: &Arc<Self>,
        slot: &ConnectionSlot,
        message: M,
        mut calls: C,
    ) -> Result<Option<ReservedAnswer<Json>>, Unanswered>
    where
        M: AsRef<[u8]> + Send + 'static,
        C: FnMut(&CallRequest<'_>) -> Result<Json, Error> + Send + 'static,
    {
        if !is_batch(message.as_ref()) {
            let pace = self.methods.pace(message.as_ref());
            return self.run(pace, slot, move || answer_single(message.as_ref(), &mut calls)).await;
        }
        let _call = slot.call();
        let port = Arc::clone(self);
        let (batch, memory, pause) = (None, None, Pause::Turn);
        let mut run = BatchRun { port, message, calls, batch, memory, pause };
        loop {
            let turn = match (self.turn(slot).await, &mut run.batch) {
                (Ok(turn), _) => Some(turn),
                (Err(unanswered), None) => return Err(unanswered),
                // The rest is refused, for which no turn is needed.
                (Err(unanswered), Some(batch)) => {
                    batch.refuse_rest(Code::Server, unanswered);
                    None
                }
            };
            let running = slot.run();
            run = self.call_in_turn(turn, move || run.make_calls()).await?;
            drop(running);
            match run.pause {
                Pause::Turn => {}
                Pause::Memory(bytes) => run.reserve(slot, bytes).await,
                Pause::End => break,
            }
        }
        let BatchRun { batch, memory, message, calls, .. } = run;
        drop((message, calls));
        let Some(answer) = batch.and_then(Batch::into_answer) else { return Ok(None) };
        let mut memory = match memory {
            Some(memory) => memory,
            None => self.answer_memory(slot, answer.pieces.held_bytes()).await?,
        };
        memory.keep(answer.pieces.until_sent());
        Ok(Some(ReservedAnswer { answer, memory: slot.unread.add(memory) }))
    }
}
