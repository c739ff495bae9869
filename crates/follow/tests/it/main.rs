//! Gaps that are filled, from upstreams that are honest, and from such as are not.

mod backfill;
mod lies;
mod support;
mod upstream;
