//! Gaps that are filled, from upstreams that are honest, and from such as are not.

mod access_lists;
mod backfill;
mod heads;
mod lies;
mod moves;
mod support;
mod upstream;
