//! Numbers on the command line.

use std::fmt::Display;
use std::str::FromStr;

/// Reads how many of something there are to be: one at least.
pub(crate) fn count<T: FromStr<Err: Display> + PartialOrd + From<u8>>(
    text: &str,
) -> Result<T, String> {
    match text.parse() {
        Ok(count) if count >= T::from(1) => Ok(count),
        Ok(_) => Err("it has to be 1 at least".into()),
        Err(error) => Err(error.to_string()),
    }
}
