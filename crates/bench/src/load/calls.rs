//! The calls of one connection that wait for their answers, and what becomes of them.

use std::collections::VecDeque;

use super::answer::{self, Answer};
use super::message::Message;
use super::tally::{Failure, Tally};
use super::target::FIRST_ID;

/// Codes by which servers ask for patience: EIP-1474's, and those of hosted nodes.
pub(super) const LIMIT_CODES: [i64; 3] = [-32005, -32007, 429];

/// What answers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The next answer is to the oldest call: HTTP.
    Same,
    /// Answers come in any order.
    Any,
    /// The next answer is a list of those to all calls that wait, in any order.
    Batch,
}

/// A call that waits. Times are nanoseconds from the start of the turn.
#[derive(Clone, Copy, Debug)]
struct Call {
    kind: u16,
    /// It has an answer; those before it have none yet.
    is_done: bool,
    /// From when on its latency counts.
    from: u64,
    sent: u64,
}

/// A server asked for patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// For so many seconds, if it said so.
    pub(super) retry_after: Option<u64>,
}

/// Calls that wait.
#[derive(Debug)]
pub(super) struct Calls {
    order: Order,
    waiting: VecDeque<Call>,
    /// The id of the oldest that waits.
    first: u64,
    /// When the turn ends.
    end: u64,
    /// When the last result came.
    pub(super) last_result: u64,
    pub(super) refused: Option<Refused>,
    pub(super) tally: Tally,
}

impl Calls {
    pub(super) fn new(order: Order, kinds: usize, end: u64) -> Self {
        let (waiting, tally) = (VecDeque::new(), Tally::new(kinds));
        Self { order, waiting, first: FIRST_ID, end, last_result: 0, refused: None, tally }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A call is sent; its id.
    pub(super) fn push(&mut self, kind: u16, from: u64, sent: u64) -> u64 {
        let id = self.first + self.waiting.len() as u64;
        self.waiting.push_back(Call { kind, is_done: false, from, sent });
        self.tally.sent += 1;
        id
    }

    /// When the oldest call was sent.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.waiting.front().map(|call| call.sent)
    }

    /// A message came, which holds `text`.
    pub(super) fn answered(&mut self, message: &Message, text: &[u8], now: u64) {
        if !matches!(message.status, 0 | 200) {
            let mut failure = Failure::Status(message.status);
            if message.status == 429 {
                failure = Failure::Limited;
                self.refused = Some(Refused { retry_after: message.retry_after });
            }
            return self.fail(failure);
        }
        let (mut count, mut extra) = (0, 0);
        let mut whole = None;
        let read = answer::read(text, |answer| {
            count += 1;
            if self.order == Order::Batch && !text.trim_ascii_start().starts_with(b"[") {
                whole = Some(self.outcome(&answer).err().unwrap_or(Failure::Malformed));
            } else {
                extra += usize::from(!self.take(&answer, now));
            }
        });
        if read.is_err() {
            self.fail(Failure::Malformed);
        } else if let Some(failure) = whole {
            self.fail(failure);
        } else if self.order == Order::Batch && (extra < count || count == 0) {
            self.fail(Failure::Missing);
        }
    }

    /// Gives the answer to its call, or to the oldest one where nobody waits for its id: that one
    /// would wait in vain. `false` where the call was done.
    fn take(&mut self, answer: &Answer<'_>, now: u64) -> bool {
        let number = answer.number();
        let place = number.and_then(|number| number.checked_sub(self.first)).map(|at| at as usize);
        let waits = |at: &usize| self.waiting.get(*at).is_some_and(|call| !call.is_done);
        let place = place.filter(waits).filter(|at| self.order != Order::Same || *at == 0);
        let outcome = match place {
            Some(_) => self.outcome(answer),
            // Who cannot read a request does not know its id.
            None if answer.id.is_none_or(|id| id == b"null") => {
                self.outcome(answer).and(Err(Failure::WrongId))
            }
            None => Err(Failure::WrongId),
        };
        let was_sent = number.is_some_and(|number| {
            (FIRST_ID..self.first + self.waiting.len() as u64).contains(&number)
        });
        let is_extra = place.is_none() && (was_sent && self.order != Order::Same);
        if is_extra || self.waiting.is_empty() {
            self.tally.fail(Failure::Extra, 1);
            return false;
        }
        let call = &mut self.waiting[place.unwrap_or(0)];
        call.is_done = true;
        match outcome {
            Ok(()) => {
                let kind = usize::from(call.kind);
                self.tally.latencies[kind].push(now.saturating_sub(call.from));
                self.tally.results[kind] += 1;
                self.tally.nulls[kind] += u64::from(answer.is_null);
                self.tally.in_time += u64::from(now <= self.end);
                self.last_result = now;
            }
            Err(failure) => self.tally.fail(failure, 1),
        }
        self.forget_done();
        true
    }

    /// What an answer says about its call.
    fn outcome(&mut self, answer: &Answer<'_>) -> Result<(), Failure> {
        match answer.code() {
            Some(code) if LIMIT_CODES.contains(&code) => {
                self.refused.get_or_insert(Refused { retry_after: None });
                Err(Failure::Limited)
            }
            Some(code) => Err(Failure::Code(code)),
            None if answer.has_result => Ok(()),
            None => Err(Failure::Malformed),
        }
    }

    fn forget_done(&mut self) {
        while self.waiting.front().is_some_and(|call| call.is_done) {
            self.waiting.pop_front();
            self.first += 1;
        }
    }

    /// The oldest call, or the whole batch, has failed.
    fn fail(&mut self, failure: Failure) {
        let count = if self.order == Order::Batch { self.waiting.len() } else { 1 };
        let failed = self.waiting.iter_mut().take(count).filter(|call| !call.is_done);
        let count = failed.map(|call| call.is_done = true).count();
        self.tally.fail(failure, count as u64);
        self.forget_done();
    }

    /// The connection has ended: the oldest call, or the whole batch, for this reason.
    pub(super) fn lost(&mut self, failure: Failure) {
        self.fail(failure);
        let left = self.waiting.iter().filter(|call| !call.is_done).count();
        self.tally.fail(Failure::Closed, left as u64);
        self.first += self.waiting.len() as u64;
        self.waiting.clear();
    }

    /// Gives up calls that were sent before `limit`. `false` where the connection cannot go on,
    /// because the answers to all others would come behind.
    pub(super) fn expire(&mut self, limit: u64) -> bool {
        while self.oldest().is_some_and(|sent| sent < limit) {
            if self.order == Order::Same {
                self.lost(Failure::Timeout);
                return false;
            }
            self.fail(Failure::Timeout);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `count` calls, gives them `texts`, and compares the results and failures.
    fn check(order: Order, count: u64, texts: &[&str], results: u64, failures: &[(Failure, u64)]) {
        let mut calls = Calls::new(order, 1, 1_000);
        for place in 0..count {
            assert_eq!(calls.push(0, 10, 10), FIRST_ID + place);
        }
        for text in texts {
            calls.answered(&Message::default(), text.as_bytes(), 60);
        }
        calls.lost(Failure::Closed);
        assert_eq!(calls.tally.in_time, results, "{order:?} {texts:?} {:?}", calls.tally.failures);
        let expected = failures.iter().copied().collect();
        assert_eq!(calls.tally.failures, expected, "{order:?} {texts:?}");
        let (closed, extra) = (Failure::Closed, Failure::Extra);
        let failed: u64 = failures.iter().filter(|(one, _)| *one != extra).map(|(_, n)| n).sum();
        assert_eq!(results + failed, count, "each call has one outcome; {closed} is one");
    }

    const ZERO: &str = r#"{"id":1000000000,"result":null}"#;
    const ONE: &str = r#"{"result":{"id":5,"error":1},"error":null,"id":1000000001}"#;
    const TWO: &str = r#"{"id":1000000002,"error":{"code":-32601,"message":""}}"#;
    const LIMITED: &str = r#"{"id":1000000000,"error":{"code":-32005,"message":""}}"#;
    const NONE: &str = r#"{"id":null,"error":{"code":-32700,"message":""}}"#;
    const OTHER: &str = r#"{"id":7,"result":1}"#;

    #[test]
    fn each_answer_counts_for_what_it_is() {
        use Failure::{Closed, Code, Extra, Limited, Malformed, WrongId};
        for order in [Order::Same, Order::Any] {
            check(order, 3, &[ZERO, ONE, TWO], 2, &[(Code(-32601), 1)]);
            check(order, 3, &[ZERO], 1, &[(Closed, 2)]);
            check(order, 1, &[LIMITED], 0, &[(Limited, 1)]);
            check(order, 1, &[NONE], 0, &[(Code(-32700), 1)]);
            check(order, 2, &[OTHER, ONE], 1, &[(WrongId, 1)]);
            check(order, 1, &[r#"{"id":1000000000}"#], 0, &[(Malformed, 1)]);
            check(order, 1, &[r#"{"id":"1000000000","result":1}"#], 0, &[(WrongId, 1)]);
            check(order, 2, &["{", ONE], 1, &[(Malformed, 1)]);
            check(order, 1, &[ZERO, ZERO], 1, &[(Extra, 1)]);
        }
        check(Order::Any, 3, &[TWO, ONE, ZERO], 2, &[(Code(-32601), 1)]);
        check(Order::Any, 2, &[ONE, ONE], 1, &[(Extra, 1), (Closed, 1)]);
        check(Order::Same, 2, &[ONE, ZERO], 0, &[(WrongId, 2)]);
    }

    #[test]
    fn a_batch_is_answered_in_any_order_or_as_a_whole() {
        use Failure::{Code, Extra, Limited, Malformed, Missing};
        let list = |answers: &[&str]| format!("\n [{}] ", answers.join(" , "));
        let check = |count, text: &str, results, failures: &[(Failure, u64)]| {
            check(Order::Batch, count, &[text], results, failures);
        };
        check(3, &list(&[ONE, TWO, ZERO]), 2, &[(Code(-32601), 1)]);
        check(3, &list(&[ONE]), 1, &[(Missing, 2)]);
        check(2, "[]", 0, &[(Missing, 2)]);
        check(2, NONE, 0, &[(Code(-32700), 2)]);
        check(2, LIMITED, 0, &[(Limited, 2)]);
        check(2, ZERO, 0, &[(Malformed, 2)]);
        check(2, "[", 0, &[(Malformed, 2)]);
        check(2, &list(&[ONE, ONE, ZERO]), 2, &[(Extra, 1)]);
    }

    #[test]
    fn a_call_that_waits_too_long_is_given_up_and_its_answer_is_extra() {
        let mut calls = Calls::new(Order::Any, 1, 1_000);
        for sent in 0..3 {
            calls.push(0, sent, sent);
        }
        assert!(calls.expire(2) && calls.len() == 1);
        calls.answered(&Message::default(), ONE.as_bytes(), 60);
        let expected = [(Failure::Timeout, 2), (Failure::Extra, 1)];
        assert_eq!(calls.tally.failures, expected.into_iter().collect());
        let mut calls = Calls::new(Order::Same, 1, 1_000);
        for sent in 0..3 {
            calls.push(0, sent, sent);
        }
        assert!(calls.expire(0) && !calls.expire(1) && calls.len() == 0);
        let expected = [(Failure::Timeout, 1), (Failure::Closed, 2)];
        assert_eq!(calls.tally.failures, expected.into_iter().collect());
    }

    #[test]
    fn latency_counts_from_when_a_call_was_to_be_sent() {
        let mut calls = Calls::new(Order::Any, 1, 50);
        calls.push(0, 10, 30);
        calls.push(0, 20, 30);
        calls.answered(&Message::default(), ONE.as_bytes(), 45);
        calls.answered(&Message::default(), ZERO.as_bytes(), 60);
        let Tally { latencies, in_time, .. } = &calls.tally;
        // The second came after the end.
        assert_eq!((latencies[0].percentile(0.0), latencies[0].max(), *in_time), (25.0, 50.0, 1));
    }
}
