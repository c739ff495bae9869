//! The forms in which calls travel.

use engine_api::REST_BASE;
use rpc::Client;
use rpc::rest::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Error;
use crate::limits::SHORT_ANSWER_BYTES;

/// The form in which calls and answers travel. Answers are the same over each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// JSON-RPC over HTTP, which every client of the network speaks, at twice the bytes. It has no
    /// public keys, no timings and no stateless inputs.
    Json,
    /// The REST Engine API: SSZ in the bodies.
    Ssz,
    /// The REST Engine API on a Unix socket, with large answers as memory of the server, mapped and
    /// not copied. Over TCP, or from a server that lends no memory, answers come as over
    /// [`Ssz`](Self::Ssz).
    Descriptor,
}

impl Wire {
    /// The fastest wire of a server, by the rule of
    /// [`EngineClient::connect`](crate::EngineClient::connect).
    pub(crate) async fn best(client: &mut Client, address: &str) -> Result<Self, Error> {
        /// Distinguishes REST from a server that answers any `GET` with 200.
        #[derive(Deserialize)]
        struct Rest {
            #[serde(rename = "supported_forks")]
            _forks: IgnoredAny,
        }
        client.set_answer_bytes(SHORT_ANSWER_BYTES);
        let path = format!("{REST_BASE}capabilities");
        let reply = client.request(Method::GET, &path, HeaderMap::new(), Vec::new()).await?;
        match reply.status {
            StatusCode::OK if rpc::read_json_bytes::<Rest>(&reply.body).is_ok() => {
                Ok(if address.starts_with("unix:") { Self::Descriptor } else { Self::Ssz })
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::of(&reply)),
            _ => Ok(Self::Json),
        }
    }
}
