//! The sum of all bounds of a port, by what is bounded.

use crate::limits::{
    CONNECTION_BYTES, ENCODER_BYTES, FRAME_BYTES, HEADER_BYTES, HTTP2_HEADER_BYTES,
    LONGEST_ANSWER_BYTES, Limits, OUTGOING_BYTES, READ_BYTES, SHORT_BYTES, SMALL_ANSWER_BYTES,
    SMALL_ANSWERS_WAITING, SUBSCRIPTION_BYTES, UNSENT_BYTES, WAITING_ANSWER_BYTES,
};

/// A bound on memory: so many things of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The name of what is bounded.
    pub what: &'static str,
    /// How many there may be at a time.
    pub count: usize,
    /// Bytes of memory of each at most.
    pub bytes_each: usize,
}

impl Bound {
    /// Bytes of all.
    pub const fn bytes(&self) -> usize {
        self.count.saturating_mul(self.bytes_each)
    }
}

impl Limits {
    /// Everything that clients can make the port hold. Ports that share their
    /// [`PortMemory`](crate::PortMemory) hold it together.
    ///
    /// ```
    /// let bounds = deponent_rpc::Limits::public().bounds();
    /// let bytes: usize = bounds.iter().map(|bound| bound.bytes()).sum();
    /// assert!(bytes < 2 << 30);
    /// ```
    pub fn bounds(&self) -> Vec<Bound> {
        let bound = |what, count, bytes_each| Bound { what, count, bytes_each };
        let all = |what, bytes| bound(what, 1, bytes);
        vec![
            bound(CONNECTIONS, self.connections, CONNECTION_BYTES),
            all(PROTOCOLS, self.protocols_bytes),
            all(SMALL_BODIES, self.small_bodies_bytes),
            all(BODIES, self.bodies_bytes),
            all(SMALL_ANSWERS, self.small_answers_bytes),
            bound("small answers that wait for memory", SMALL_ANSWERS_WAITING, SMALL_ANSWER_BYTES),
            all(ANSWERS, self.answers_bytes),
            all(WAITING_ANSWERS, self.waiting_answers_bytes()),
            all(
                "a witness longer than the share of answers",
                LONGEST_ANSWER_BYTES.saturating_sub(self.answers_bytes),
            ),
            bound("answers that are compressed", self.encoders, ENCODER_BYTES),
            bound(SUBSCRIPTIONS, self.all_subscriptions, SUBSCRIPTION_BYTES),
            bound(CALLS, self.running_calls, self.call_bytes),
            // Their memory is a part of the protocols'.
            bound(SESSIONS, self.sessions, 0),
        ]
    }

    /// Memory of the answers that wait for memory. A single one may be longer: a witness, most of
    /// whose nodes are shared.
    pub(crate) const fn waiting_answers_bytes(&self) -> usize {
        self.running_calls.saturating_mul(WAITING_ANSWER_BYTES)
    }

    /// Memory of the buffers of a connection of HTTP/1.1.
    pub(crate) const fn http1_bytes(&self) -> usize {
        self.http1_buffer_bytes + HEADER_BYTES
    }

    /// Memory of what a connection of HTTP/2 may send without being asked: its window, and on each
    /// stream a head and a short body.
    pub(crate) const fn http2_bytes(&self) -> usize {
        self.http2_window_bytes + self.messages * (HTTP2_HEADER_BYTES + SHORT_BYTES)
    }

    /// Memory of a WebSocket or a bare connection: what is read and is no message yet, what waits
    /// to be sent, and its short messages.
    pub(crate) const fn session_bytes(&self) -> usize {
        2 * READ_BYTES + FRAME_BYTES + UNSENT_BYTES + OUTGOING_BYTES + self.messages * SHORT_BYTES
    }
}

pub(crate) const CONNECTIONS: &str = "connections";
pub(crate) const PROTOCOLS: &str = "buffers and windows of connections";
pub(crate) const SMALL_BODIES: &str = "requests of at most 64 KiB";
pub(crate) const BODIES: &str = "longer requests";
pub(crate) const SMALL_ANSWERS: &str = "answers of at most 64 KiB";
pub(crate) const ANSWERS: &str = "longer answers, and memory files";
pub(crate) const WAITING_ANSWERS: &str = "answers that wait for memory";
pub(crate) const SUBSCRIPTIONS: &str = "subscriptions";
pub(crate) const CALLS: &str = "calls that run";
pub(crate) const SESSIONS: &str = "WebSockets and bare connections";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::PortBudgets;

    fn sum(limits: &Limits) -> usize {
        limits.bounds().iter().map(Bound::bytes).sum()
    }

    #[test]
    fn every_budget_of_a_port_is_in_the_table() {
        for limits in [Limits::public(), Limits::engine(), Limits::public().with_memory(1 << 26)] {
            let bounds = limits.bounds();
            for budget in PortBudgets::new(&limits).all() {
                let bound = bounds.iter().find(|bound| bound.what == budget.name);
                let bound = bound.unwrap_or_else(|| panic!("{} is not there", budget.name));
                let is_count = bound.count > 1;
                let most = if is_count { bound.count } else { bound.bytes_each };
                assert_eq!(budget.shares.most, most, "{}", budget.name);
            }
        }
    }

    #[test]
    fn memory_files_leave_room_for_the_longest_answer() {
        let Limits { answers_bytes, descriptor_bytes, .. } = Limits::engine();
        assert!(answers_bytes - descriptor_bytes >= LONGEST_ANSWER_BYTES);
    }

    #[test]
    fn the_shares_are_no_more_than_the_memory_that_is_divided() {
        for limits in [Limits::public(), Limits::engine()] {
            for bytes in [1 << 26, 1 << 29, 3 << 30] {
                let limits = limits.clone().with_memory(bytes);
                let aside = ["wait", "witness", CALLS];
                let is_aside = |bound: &Bound| aside.iter().any(|part| bound.what.contains(part));
                let bounds = limits.bounds().into_iter().filter(|bound| !is_aside(bound));
                let shares: usize = bounds.map(|bound| bound.bytes()).sum();
                assert!(shares <= bytes && shares > bytes / 10 * 9, "{shares} of {bytes}");
            }
        }
        // The rest of a machine of 8 GiB is for caches and blocks, which have 2.5.
        assert!(sum(&Limits::public()) + sum(&Limits::engine()) < 11 << 29);
    }

    /// The table at the head of limits.rs, as it is to be.
    fn documented() -> String {
        const MIB: usize = 1 << 20;
        let [public, engine] = [Limits::public(), Limits::engine()].map(|limits| limits.bounds());
        let sums = [&public, &engine].map(|bounds| bounds.iter().map(Bound::bytes).sum::<usize>());
        let mut table = String::from("//! | MiB at most | public | engine |\n//! |---|--:|--:|\n");
        for (public, engine) in public.iter().zip(&engine) {
            assert_eq!(public.what, engine.what);
            let [one, other] = [public, engine].map(|bound| bound.bytes().div_ceil(MIB));
            if (one, other) == (0, 0) {
                // Counted with the others.
                continue;
            }
            table += &format!("//! | {} | {one} | {other} |\n", public.what);
        }
        let [one, other] = sums.map(|bytes| bytes.div_ceil(MIB));
        table + &format!("//! | all | {one} | {other} |\n")
    }

    #[test]
    fn limits_begin_with_the_table_of_their_sum() {
        let (source, table) = (include_str!("limits.rs"), documented());
        assert!(source.contains(&table), "limits.rs has to have:\n{table}");
    }

    #[test]
    fn each_protocol_has_room_for_a_crowd() {
        let public = Limits::public();
        assert!(public.protocols_bytes / public.http1_bytes() > 1000);
        assert!(public.protocols_bytes / public.http2_bytes() > 100);
        assert!(public.protocols_bytes / public.session_bytes() > 300);
        let engine = Limits::engine();
        assert!(engine.protocols_bytes / engine.http1_bytes() > 1000);
        assert!(engine.protocols_bytes / engine.http2_bytes() > 25);
        // A witness of 500 MB comes as hex, and goes as a memory file beside another answer.
        assert!(engine.body_bytes > 1_001_000_000);
        assert!(engine.descriptor_bytes > 501_000_000);
    }
}
