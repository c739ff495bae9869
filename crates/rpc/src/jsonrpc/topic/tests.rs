//! Which values a receiver reads, and which stay.

use super::*;

fn value(number: u64) -> Json {
    Json::of(&number).expect("JSON")
}

async fn read(receiver: &mut TopicReceiver) -> Result<String, TopicEnd> {
    let (_, published) = receiver.recv().await?;
    Ok(String::from_utf8(published.items[0].to_vec()).expect("JSON is UTF-8"))
}

fn waiting(topic: &Topic) -> (usize, usize) {
    let ring = lock(&topic.0.ring);
    (ring.values.len(), ring.bytes)
}

#[tokio::test]
async fn a_value_stays_until_every_receiver_has_read_it() {
    let topic = Topic::new();
    topic.publish(value(0));
    assert_eq!(waiting(&topic), (0, 0));
    let (mut one, mut other) = (topic.subscribe().values, topic.subscribe().values);
    topic.publish(value(1));
    topic.publish(value(2));
    assert_eq!(read(&mut one).await.unwrap(), "1");
    assert_eq!(read(&mut one).await.unwrap(), "2");
    assert_eq!(waiting(&topic), (2, 2));
    assert_eq!(read(&mut other).await.unwrap(), "1");
    assert_eq!(waiting(&topic), (1, 1));
    drop(other);
    assert_eq!(waiting(&topic), (0, 0));
    topic.publish(value(3));
    drop(topic);
    assert_eq!(read(&mut one).await.unwrap(), "3");
    assert_eq!(read(&mut one).await, Err(TopicEnd::Closed));
}

#[tokio::test]
async fn a_receiver_falls_behind_by_values_and_by_bytes() {
    let topic = Topic::new();
    let (mut slow, mut quick) = (topic.subscribe().values, topic.subscribe().values);
    for number in 0..TOPIC_LEN as u64 + 3 {
        topic.publish(value(number));
        assert_eq!(read(&mut quick).await.unwrap(), number.to_string());
    }
    assert_eq!(read(&mut slow).await, Err(TopicEnd::Lagged(3)));
    drop(slow);
    assert_eq!(waiting(&topic), (0, 0));

    let mut slow = topic.subscribe().values;
    let long = || Json::of(&"x".repeat(TOPIC_BYTES * 2 / 3)).expect("JSON");
    topic.publish(long());
    // One value stays, however long it is.
    topic.publish_all(Published { items: vec![long(), long()], source: Arc::new(()) });
    assert_eq!(waiting(&topic).0, 1);
    assert_eq!(read(&mut slow).await, Err(TopicEnd::Lagged(1)));
    assert!(read(&mut quick).await.is_err());
}
