//! The tasks that a value wakes.

use super::*;
use crate::jsonrpc::topic::Topic;
use crate::transport::budget::Shares;
use std::time::Duration;
use tokio::runtime::Handle;

const METHODS: SubscriptionMethods =
    SubscriptionMethods { subscribe: "begin", unsubscribe: "end", notification: "news" };

/// A connection with so many subscriptions of each topic.
fn connection(
    topics: &[&Topic],
    count: usize,
) -> (Arc<Subscriptions>, mpsc::Receiver<OutgoingMessage>) {
    let all = Budget::new("subscriptions", Shares::whole(1000, 0), Duration::ZERO);
    let (outgoing, sent) = mpsc::channel(1000);
    let subscriptions = Arc::new(Subscriptions::new(1000, all, Peer::new(None), outgoing));
    for (topic, at) in topics.iter().flat_map(|topic| (0..count).map(move |at| (topic, at))) {
        let (_, answered) = watch::channel(true);
        let id = format!("{}-{at}", topic.id());
        let opened = subscriptions.open(&id, METHODS, topic.subscribe(), answered);
        opened.expect("there is room");
    }
    (subscriptions, sent)
}

/// Publishing wakes each receiver of the topic: one for each connection, not for each subscription.
#[tokio::test]
async fn a_connection_has_one_forwarder_of_a_topic_however_many_subscriptions_it_has() {
    let (blocks, heads) = (Topic::new(), Topic::new());
    let (_first, mut sent) = connection(&[&blocks, &heads], 64);
    let (second, _sent) = connection(&[&blocks], 64);
    let receivers = || [&blocks, &heads].map(|topic| topic.receiver_count());
    let tasks = || Handle::current().metrics().num_alive_tasks();
    assert_eq!((receivers(), tasks()), ([2, 1], 3));
    // The value itself comes to each subscription.
    blocks.publish(Json::of(&7).expect("JSON"));
    for _ in 0..64 {
        assert!(matches!(sent.recv().await, Some(OutgoingMessage::Text(..))));
    }
    // The last one takes the forwarder with it.
    for at in 0..64 {
        assert_eq!(receivers(), [2, 1]);
        assert!(second.close("end", &format!("{}-{at}", blocks.id())));
    }
    while receivers() != [1, 1] {
        tokio::task::yield_now().await;
    }
}
