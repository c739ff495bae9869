//! Floor 1. The end of a scope.

/// Calls a function when it is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
