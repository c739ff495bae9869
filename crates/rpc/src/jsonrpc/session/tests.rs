//! Answers that find no memory.

use std::time::Duration;

use super::*;
use crate::bounds::{CALLS, CONNECTIONS, SMALL_ANSWERS, SUBSCRIPTIONS};
use crate::jsonrpc::handler::Handler;
use crate::jsonrpc::topic::{Subscription, Topic};
use crate::limits::Limits;
use crate::port::ServerOptions;
use crate::transport::budget::Budget;
use crate::transport::peer::Peer;
use crate::transport::slot::UnreadAnswers;
use serde_json::value::RawValue;

struct News(Topic);

impl Handler for News {
    fn call(&self, method: &str, _: Option<&RawValue>) -> Result<Json, Error> {
        Err(Error::method_not_found(method))
    }

    fn subscriptions(&self) -> &[SubscriptionMethods] {
        &[SubscriptionMethods { subscribe: "begin", unsubscribe: "end", notification: "news" }]
    }

    fn subscribe(&self, _: &str, _: Option<&RawValue>) -> Result<Subscription, Error> {
        Ok(self.0.subscribe())
    }
}

fn budget(port: &Port, name: &str) -> Arc<Budget> {
    port.budgets.all().into_iter().find(|budget| budget.name == name).expect("there is one")
}

/// A session of a port with these limits, and what it sends.
fn session(limits: Limits) -> (Arc<Port>, Arc<Session>, mpsc::Receiver<OutgoingMessage>) {
    let options = ServerOptions::new(None, limits);
    let port = Arc::new(Port::new(options, Arc::new(News(Topic::new()))));
    let (peer, unread) = (Peer::new(None), Arc::<UnreadAnswers>::default());
    let place = budget(&port, CONNECTIONS).try_reserve(peer, 1, unread.evicted());
    let slot = ConnectionSlot::new(peer, unread, place.expect("free"), false);
    let (outgoing, sent) = mpsc::channel(OUTGOING_LEN);
    let session = Arc::new(Session::new(Arc::clone(&port), slot, outgoing));
    (port, session, sent)
}

#[tokio::test]
async fn a_subscription_whose_answer_is_refused_is_not_left_behind() {
    let limits = Limits { turn_wait: Duration::from_millis(20), ..Limits::public() };
    let (port, session, mut sent) = session(limits);
    let mut subscribe = async || {
        let _slot = permits(&session.slots, 1).await;
        let permits = MessagePermits { _slot, message: None, _answer: None };
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"begin"}"#.into();
        Arc::clone(&session).answer(message, None, permits).await;
        let Some(OutgoingMessage::Text(answer, _)) = sent.recv().await else {
            panic!("an answer is expected")
        };
        String::from_utf8(answer.to_vec()).expect("JSON")
    };
    let (answers, all) = (budget(&port, SMALL_ANSWERS), budget(&port, SUBSCRIPTIONS));
    let memory = answers.try_reserve(Peer::PORT, answers.shares.most, &Arc::default());
    let memory = memory.expect("free");
    let refused = subscribe().await;
    assert!(refused.contains("busy"), "{refused}");
    assert_eq!(all.held(), 0);
    drop(memory);
    let answer = subscribe().await;
    assert!(answer.contains("\"result\":\"0x"), "{answer}");
    assert_eq!(all.held(), 1);
}

/// Refusals are counted too: one that finds no memory ends the connection.
#[tokio::test]
async fn the_refusal_of_a_batch_has_memory_or_is_a_goodbye() {
    let limits =
        Limits { turn_wait: Duration::from_millis(20), running_calls: 1, ..Limits::public() };
    let (port, session, mut sent) = session(limits);
    let mut send = async || {
        let _slot = permits(&session.slots, 1).await;
        let permits = MessagePermits { _slot, message: None, _answer: None };
        let message = format!("[{}]", ["1"; 50].join(","));
        Arc::clone(&session).answer(message.into(), None, permits).await;
        sent.recv().await.expect("something")
    };
    let turn = budget(&port, CALLS).try_reserve(Peer::PORT, 1, &Arc::default());
    let _turn = turn.expect("it is free");
    let answers = budget(&port, SMALL_ANSWERS);
    let OutgoingMessage::Text(text, kept) = send().await else { panic!("an answer is expected") };
    assert!(answers.held() >= text.len_bytes() && text.len_bytes() > 50 * 50);
    drop(kept);
    assert_eq!(answers.held(), 0);
    let _memory = answers.try_reserve(Peer::PORT, answers.shares.most, &Arc::default());
    let last = send().await;
    assert!(matches!(last, OutgoingMessage::Goodbye(Ending::Fault { .. })), "{last:?}");
}
