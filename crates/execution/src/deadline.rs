//! The time of calls and traces: the run asks somebody else, since nothing here reads a clock.

use crate::limits::STEPS_BETWEEN_LOOKS;
use std::fmt;
use std::sync::Arc;

/// Tells whether the time of a run is over.
#[derive(Clone, Default)]
pub struct Deadline(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Deadline {
    /// One that is over when `is_over` says so. It is asked every 1,024 instructions and whenever
    /// another contract is called or created.
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_over)))
    }

    /// One that is never over.
    pub const fn never() -> Self {
        Self(None)
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_some_and(|is_over| is_over())
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deadline").finish()
    }
}

/// Counts the instructions of a run, and looks at its deadline now and then.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    deadline: Deadline,
    steps: u64,
    is_over: bool,
}

impl Clock {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Whether the time was over before an instruction that is about to run.
    pub(crate) fn step(&mut self) -> bool {
        if self.steps.is_multiple_of(STEPS_BETWEEN_LOOKS) {
            self.look();
        }
        self.steps += 1;
        self.is_over
    }

    /// Looks at once. What is called may be a precompile, which runs no instruction.
    pub(crate) fn look(&mut self) {
        self.is_over = self.is_over || self.deadline.is_over();
    }

    /// Whether the time was over when it was looked at last.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }
}
