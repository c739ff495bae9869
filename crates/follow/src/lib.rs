//! Gaps of a chain, filled from other execution clients.
//!
//! An [`Upstream`] is an execution client that is asked over JSON-RPC. Headers and blocks are asked
//! for by hash and checked against it, so that none is trusted: the worst that one can do is not to
//! answer. After an error or a lie it is left alone for a while. [`Backfill`] finds the gaps of an
//! [`engine::Engine`] and fills them. A [`HeadSource`] takes the place of a consensus client: it
//! has the engine follow the head of an upstream, which is trusted with that.

mod answers;
mod backfill;
mod chain_check;
mod descent;
mod error;
mod exchange;
mod figures;
mod first_headers;
mod forward;
mod head;
mod health;
mod hold;
pub mod limits;
mod progress_log;
mod route;
mod status;
mod turns;
mod upstream;
mod upstream_state;

pub use backfill::Backfill;
pub use error::Error;
pub use figures::UpstreamFigures;
pub use head::{HeadSource, HeadStatus, HeadTag};
pub use hold::BackfillOptions;
pub use status::{Progress, Stage};
pub use upstream::{Upstream, UpstreamOptions};
pub use upstream_state::UpstreamState;
