//! Rendered JSON, and hex at SIMD speed.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::jsonrpc::error::{Code, Error};
use crate::pieces::Pieces;

/// A rendered JSON value, as pieces that are sent without being joined.
///
/// The pieces are trusted to be one value when joined: only the server's own code makes them.
#[derive(Clone, Debug)]
pub struct Json {
    pub(crate) pieces: Pieces,
}

impl Json {
    /// Renders a value.
    ///
    /// # Errors
    /// [`Code::Internal`], if the type has no JSON form.
    pub fn of(value: &impl Serialize) -> Result<Self, Error> {
        match serde_json::to_vec(value) {
            Ok(text) => Ok(text.into()),
            Err(fault) => Err(Error::new(
                Code::Internal,
                format_args!("the result has no JSON form: {fault}"),
            )),
        }
    }

    /// Bytes in all.
    pub const fn len_bytes(&self) -> usize {
        self.pieces.len_bytes()
    }

    /// The pieces joined: a copy, for tests and small values.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.to_vec()
    }
}

impl From<Vec<u8>> for Json {
    fn from(text: Vec<u8>) -> Self {
        Pieces::from(text).into()
    }
}

/// # Panics
/// If there are no bytes: nothing is not a JSON value.
impl From<Pieces> for Json {
    fn from(pieces: Pieces) -> Self {
        assert!(!pieces.is_empty(), "nothing is not a JSON value");
        Self { pieces }
    }
}

/// An answer with a result.
pub(crate) fn success(id: &RawValue, result: Json) -> Json {
    let mut answer = Pieces::default();
    answer.push(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":"));
    answer.append(result.pieces);
    answer.push(Bytes::from_static(b"}"));
    answer.into()
}

/// An answer with an error; without an id, to a message that is no request.
pub(crate) fn failure(id: Option<&RawValue>, error: &Error) -> Json {
    let id = id.map_or("null", RawValue::get);
    let error = serde_json::to_string(error).expect("numbers and strings have a JSON form");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_without_json_form_is_an_internal_error() {
        let map = std::collections::BTreeMap::from([((1, 2), 3)]);
        assert!(Json::of(&map).expect_err("keys are not strings").is(Code::Internal));
    }
}
