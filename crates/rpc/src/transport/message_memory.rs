//! The memory of a message over a WebSocket or a bare connection while it is being read.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::limits::BODY_STEP_BYTES;
use crate::transport::budget::{Budget, Busy, QueueFull, Reservation};
use crate::transport::messages::Ending;
use crate::transport::slot::ConnectionSlot;

/// The memory of the message that is being read, without its first 64 KiB, which are a part of the
/// connection's buffers.
pub(crate) struct MessageMemory {
    slot: Arc<ConnectionSlot>,
    budget: Arc<Budget>,
    /// Longest wait for memory.
    most_wait: Duration,
    reservation: Option<Reservation>,
    /// That of the last message, which is complete.
    complete: Option<Reservation>,
    evicted: Arc<Notify>,
}

impl MessageMemory {
    pub(crate) fn new(slot: Arc<ConnectionSlot>, budget: Arc<Budget>, most_wait: Duration) -> Self {
        let (reservation, complete, evicted) = (None, None, Arc::default());
        Self { slot, budget, most_wait, reservation, complete, evicted }
    }

    /// Notified when others need the memory.
    pub(crate) fn evicted(&self) -> Arc<Notify> {
        Arc::clone(&self.evicted)
    }

    /// The memory of the last complete message.
    pub(crate) fn take_complete(&mut self) -> Option<Reservation> {
        self.complete.take()
    }

    /// Reserves memory for a message of which so many bytes have come: its buffer doubles whenever
    /// it is full.
    pub(crate) async fn grow(&mut self, bytes: usize) -> Result<(), Ending> {
        let wanted = bytes.next_power_of_two().saturating_sub(BODY_STEP_BYTES);
        let more = wanted.saturating_sub(self.reservation.as_ref().map_or(0, Reservation::amount));
        if more > 0 {
            let grown = async {
                match &mut self.reservation {
                    Some(reservation) => reservation.grow(more).await?,
                    none => {
                        let reserved = self.budget.reserve(self.slot.peer, more, &self.evicted);
                        *none = Some(reserved.await?);
                    }
                }
                Ok::<_, QueueFull>(())
            };
            let evicted = Arc::clone(&self.evicted);
            let busy = || Ending::fault(CloseCode::Again, Busy(self.most_wait));
            tokio::select! {
                biased;
                () = evicted.notified() => return Err(Self::too_slow()),
                grown = timeout(self.most_wait, grown) => match grown {
                    Ok(Ok(())) => {}
                    Ok(Err(QueueFull)) | Err(_) => return Err(busy()),
                }
            }
        }
        self.slot.note_progress();
        self.reservation.iter().for_each(Reservation::note_progress);
        Ok(())
    }

    pub(crate) fn too_slow() -> Ending {
        let reason = "the message came too slowly while others had no room, try again";
        Ending::fault(CloseCode::Again, reason)
    }

    /// The message is complete. It keeps its memory as long as it wants, unless it was evicted.
    pub(crate) fn finish(&mut self) -> Result<(), Ending> {
        self.complete = self.reservation.take();
        match self.complete.as_ref().is_none_or(Reservation::exempt) {
            true => Ok(()),
            false => Err(Self::too_slow()),
        }
    }
}
