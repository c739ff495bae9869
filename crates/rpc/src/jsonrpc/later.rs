//! Calls whose answers come later: they are waited for without a turn and without a thread.

use std::net::IpAddr;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::task::JoinSet;

use crate::jsonrpc::error::{Code, Error};
use crate::jsonrpc::handler::{Handler, Later};
use crate::jsonrpc::json::{Json, failure, success};
use crate::jsonrpc::message::{CallRequest, answer_single};
use crate::port::{Port, PortAnswer as _, ReservedAnswer, Unanswered};
use crate::transport::slot::ConnectionSlot;

/// A call that was begun.
enum Begun {
    /// It is answered, or needs no answer.
    Answered(Option<Json>),
    Later(Option<Box<RawValue>>, Later),
}

/// Begins the call of a message that has one.
fn begin(handler: &dyn Handler, host: Option<IpAddr>, message: &[u8]) -> Begun {
    let mut begun = None;
    let answered = answer_single(message, &mut |request: &CallRequest<'_>| {
        let later = handler.call_later(host, &request.method, request.params)?;
        begun = Some((request.id.map(RawValue::to_owned), later));
        Err(Error::new(Code::Internal, "its answer comes later"))
    });
    match begun {
        Some((id, later)) => Begun::Later(id, later),
        None => Begun::Answered(answered),
    }
}

impl Port {
    /// Answers a message that is a call by a method that [waits](crate::Method::waits). Dropped, it
    /// ends the waiting.
    pub(crate) async fn answer_later<M>(
        self: &Arc<Self>,
        slot: &ConnectionSlot,
        message: M,
    ) -> Result<Option<ReservedAnswer<Json>>, Unanswered>
    where
        M: AsRef<[u8]> + Send + 'static,
    {
        let _call = slot.call();
        let begun = {
            let turn = self.turn(slot).await?;
            let _running = slot.run();
            let (handler, host) = (Arc::clone(&self.handler), slot.peer.host);
            self.call_in_turn(Some(turn), move || begin(&*handler, host, message.as_ref())).await?
        };
        let answer = match begun {
            Begun::Answered(answer) => answer,
            Begun::Later(id, later) => {
                let answer = self.wait_for(later).await?;
                id.map(|id| match answer {
                    Ok(result) => success(&id, result),
                    Err(error) => failure(Some(&id), &error),
                })
            }
        };
        let Some(answer) = answer else { return Ok(None) };
        let mut memory = self.answer_memory(slot, answer.pieces().held_bytes()).await?;
        memory.keep(answer.pieces().until_sent());
        Ok(Some(ReservedAnswer { answer, memory: slot.unread.add(memory) }))
    }

    /// Waits for an answer, until the server stops.
    async fn wait_for(&self, later: Later) -> Result<Result<Json, Error>, Unanswered> {
        // Dropped with this: a client that hangs up ends the waiting. A panic ends no connection.
        let mut waiting = JoinSet::new();
        waiting.spawn(later);
        let mut stopping = self.stopping();
        tokio::select! {
            answer = waiting.join_next() => match answer {
                Some(Ok(answer)) => Ok(answer),
                _ => Err(self.refused(Unanswered::Lost)),
            },
            _ = stopping.wait_for(|is_stopping| *is_stopping) => {
                Err(self.refused(Unanswered::Stopping))
            }
        }
    }
}
