//! Where and when the calls of a message are made.

use std::collections::HashMap;

use crate::jsonrpc::handler::Method;
use crate::jsonrpc::message::{CallRequest, is_batch};
use crate::jsonrpc::subscription::SubscriptionMethods;
use crate::limits::{IN_ORDER_BYTES, SHORT_BYTES};

/// How long a call is expected to take, which decides where it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// [Microseconds](Method::quick): on the thread that reads from all clients.
    Quick,
    /// Longer: when it has a turn.
    Slow,
}

/// Which way a message of a session takes to its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// It is answered where it was read.
    Quick,
    /// It waits in the queue of its connection for a turn that all calls there share.
    Short,
    /// Its own: a batch, a long message, a call in order or one that waits, a subscription.
    Own,
}

/// The methods of a port that are quick or in order.
#[derive(Debug)]
pub(crate) struct MethodTable {
    by_name: HashMap<&'static str, Method>,
    /// The longest prefix of the names of all methods in order, if there are any.
    in_order_prefix: Option<&'static str>,
    /// The names of methods that wait.
    waiting: Vec<&'static str>,
    /// The names of methods that begin and end subscriptions.
    subscribing: Vec<&'static str>,
}

impl MethodTable {
    /// Those that begin and end subscriptions are quick.
    pub(crate) fn new(methods: &[Method], subscriptions: &[SubscriptionMethods]) -> Self {
        let in_order = methods.iter().filter(|method| method.is_in_order).map(|method| method.name);
        let subscribing: Vec<_> =
            subscriptions.iter().flat_map(|kind| [kind.subscribe, kind.unsubscribe]).collect();
        let of_subscriptions = subscribing.iter().map(|name| (*name, Method::new(name).quick()));
        let waiting = methods.iter().filter(|method| method.waits).map(|method| method.name);
        let waiting = waiting.collect();
        let methods = methods.iter().map(|method| (method.name, *method));
        Self {
            by_name: methods.chain(of_subscriptions).collect(),
            in_order_prefix: in_order.reduce(common_prefix),
            waiting,
            subscribing,
        }
    }

    /// The way of a message of a session.
    pub(crate) fn lane(&self, message: &str) -> Lane {
        if message.len() > SHORT_BYTES || is_batch(message.as_bytes()) {
            return Lane::Own;
        }
        let Ok(request) = CallRequest::parse(message.trim_matches([' ', '\t', '\r', '\n'])) else {
            return Lane::Short;
        };
        match self.by_name.get(&*request.method) {
            Some(method) if method.is_in_order || method.waits => Lane::Own,
            Some(method) if self.subscribing.contains(&method.name) => Lane::Own,
            Some(method) if (method.is_quick)(request.params) => Lane::Quick,
            _ => Lane::Short,
        }
    }

    /// How long the calls of a message are expected to take.
    pub(crate) fn pace(&self, message: &[u8]) -> Pace {
        // When its client hangs up, no more calls of a batch are made, which is noticed by the
        // thread that reads: the batch runs on another one. A long message takes its time.
        if is_batch(message) || message.len() > SHORT_BYTES {
            return Pace::Slow;
        }
        let text = std::str::from_utf8(message).unwrap_or_default();
        let is_quick = |request: &CallRequest<'_>| {
            let method = self.by_name.get(&*request.method);
            method.is_some_and(|method| (method.is_quick)(request.params))
        };
        match CallRequest::parse(text.trim_matches([' ', '\t', '\r', '\n'])) {
            Ok(request) if is_quick(&request) => Pace::Quick,
            _ => Pace::Slow,
        }
    }

    /// Whether a message is a call by a method that [waits](Method::waits). Of a long one the ends
    /// are looked at, where the method is named.
    pub(crate) fn waits(&self, message: &[u8]) -> bool {
        if self.waiting.is_empty() || is_batch(message) {
            return false;
        }
        let length = message.len();
        let ends =
            [&message[..length.min(SHORT_BYTES)], &message[length.saturating_sub(SHORT_BYTES)..]];
        let is_named = |name: &&str| {
            ends.into_iter().any(|end| memchr::memmem::find(end, name.as_bytes()).is_some())
        };
        if !self.waiting.iter().any(is_named) {
            return false;
        }
        let text = std::str::from_utf8(message).unwrap_or_default();
        CallRequest::parse(text.trim_matches([' ', '\t', '\r', '\n']))
            .is_ok_and(|request| self.waiting.contains(&&*request.method))
    }

    /// Whether a message may have calls [in order](Method::in_order).
    pub(crate) fn may_be_in_order(&self, message: &[u8]) -> bool {
        let Some(prefix) = self.in_order_prefix else { return false };
        let Ok(text) = std::str::from_utf8(message) else { return false };
        if is_batch(message) {
            return text.contains(prefix);
        }
        if message.len() > IN_ORDER_BYTES || !text.contains(prefix) {
            return false;
        }
        // A call that waits holds up no other.
        let is_in_order =
            |method: &str| self.by_name.get(method).is_some_and(|it| it.is_in_order && !it.waits);
        CallRequest::parse(text.trim_matches([' ', '\t', '\r', '\n']))
            .is_ok_and(|request| is_in_order(&request.method))
    }
}

fn common_prefix(one: &'static str, other: &'static str) -> &'static str {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    &one[..one.floor_char_boundary(same)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> MethodTable {
        let methods = [
            // As long as it wants nothing.
            Method::new("quick").quick_if(|params| params.is_none_or(|raw| raw.get() == "[]")),
            Method::new("turnLeft").in_order(),
            Method::new("turnRight").in_order(),
            Method::new("wait").waits(),
        ];
        let kind = SubscriptionMethods {
            subscribe: "subscribe",
            unsubscribe: "unsubscribe",
            notification: "subscription",
        };
        MethodTable::new(&methods, &[kind])
    }

    fn call(method: &str, params: &str) -> String {
        format!(r#" {{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}} "#)
    }

    #[test]
    fn a_short_message_is_quick_if_its_call_is() {
        let pace = |message: &str| table().pace(message.as_bytes());
        assert_eq!(pace(&call("quick", "[]")), Pace::Quick);
        assert_eq!(pace(r#"{"jsonrpc":"2.0","method":"quick"}"#), Pace::Quick);
        assert_eq!(pace(&call("subscribe", "[1]")), Pace::Quick);
        assert_eq!(pace(&call("unsubscribe", "[1]")), Pace::Quick);
        let batch = format!("[{}]", call("quick", "[]"));
        for other in [&call("quick", "[1]"), &call("slow", "[]"), &batch, "", "{"] {
            assert_eq!(pace(other), Pace::Slow, "{other}");
        }
        assert_eq!(table().pace(&[0xff]), Pace::Slow);
        assert_eq!(pace(&(call("quick", "[]") + &" ".repeat(SHORT_BYTES))), Pace::Slow);
    }

    #[test]
    fn messages_of_a_session_have_their_way() {
        let lane = |message: &str| table().lane(message);
        assert_eq!(lane(&call("quick", "[]")), Lane::Quick);
        for short in [&call("quick", "[1]"), &call("unknown", "[]"), "", "{"] {
            assert_eq!(lane(short), Lane::Short, "{short}");
        }
        let long = call("quick", "[]") + &" ".repeat(SHORT_BYTES);
        let batch = format!("[{}]", call("quick", "[]"));
        let own = ["subscribe", "unsubscribe", "turnLeft", "wait"].map(|name| call(name, "[]"));
        for own in own.iter().chain([&long, &batch]) {
            assert_eq!(lane(own), Lane::Own, "{own}");
        }
    }

    #[test]
    fn a_message_waits_if_it_is_such_a_call_alone() {
        let waits = |message: &str| table().waits(message.as_bytes());
        assert!(waits(&call("wait", "[]")));
        assert!(waits(&call("wait", &format!("[\"{}\"]", "x".repeat(1 << 20)))));
        let long = "x".repeat(1 << 20);
        let params_first =
            format!(r#"{{"jsonrpc":"2.0","id":1,"params":["{long}"],"method":"wait"}}"#);
        assert!(waits(&params_first));
        for other in [&call("quick", "[\"wait\"]"), &format!("[{}]", call("wait", "[]")), "wait"] {
            assert!(!waits(other), "{other}");
        }
        assert!(!MethodTable::new(&[], &[]).waits(call("wait", "[]").as_bytes()));
        // A call in order is one by its own name alone.
        let [one, other] = ["a", "b"].map(|name| Method::new(name).in_order());
        let table = MethodTable::new(&[one, other, Method::new("wait").waits()], &[]);
        let is_in_order = |method| table.may_be_in_order(call(method, "[]").as_bytes());
        assert!(is_in_order("a") && !is_in_order("quick") && !is_in_order("wait"));
    }

    #[test]
    fn a_message_is_in_order_if_it_may_have_such_a_call() {
        let is_in_order = |message: &str| table().may_be_in_order(message.as_bytes());
        for method in ["turnLeft", "turnRight"] {
            assert!(is_in_order(&call(method, "[]")));
            assert!(is_in_order(&format!("[{}]", call(method, "[]"))));
        }
        assert!(!is_in_order(&call("quick", "[]")));
        assert!(!is_in_order(&call("turnAround", "[]")));
        // Of names that have nothing in common, too.
        let methods = [Method::new("left").in_order(), Method::new("right").in_order()];
        let is_one = |name: &str| MethodTable::new(&methods, &[]).may_be_in_order(name.as_bytes());
        assert!(is_one(&call("left", "[]")) && !is_one(&call("other", "[\"left\"]")));
        assert!(!is_in_order(&(call("turnLeft", "[]") + &" ".repeat(IN_ORDER_BYTES))));
        assert!(!MethodTable::new(&[], &[]).may_be_in_order(call("turnLeft", "[]").as_bytes()));
    }
}
