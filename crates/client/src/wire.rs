//! In what form calls travel.

use engine_api::REST_BASE;
use rpc::Client;
use rpc::rest::{HeaderMap, Method, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Error;
use crate::rest::refused;

/// The form in which calls and answers travel. Answers are the same over each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// JSON-RPC over HTTP: every client of the network, at twice the bytes. There are no public
    /// keys, no timings and no stateless inputs.
    Json,
    /// The REST Engine API: SSZ in the bodies.
    Ssz,
    /// The same on a Unix socket; a large answer is memory of the server's, mapped and not copied.
    /// Where the server cannot do that, or over TCP, answers come as over [`Ssz`](Self::Ssz).
    Descriptor,
}

impl Wire {
    /// The fastest that a server has, as [`EngineClient::connect`](crate::EngineClient::connect)
    /// has it.
    pub(crate) async fn best(client: &mut Client, address: &str) -> Result<Self, Error> {
        /// Some servers answer any `GET` with 200, to say that they are there.
        #[derive(Deserialize)]
        struct Rest {
            #[serde(rename = "supported_forks")]
            _forks: IgnoredAny,
        }
        let path = format!("{REST_BASE}capabilities");
        let reply = client.request(Method::GET, &path, HeaderMap::new(), Vec::new()).await?;
        match reply.status {
            StatusCode::OK if serde_json::from_slice::<Rest>(&reply.body).is_ok() => {
                Ok(if address.starts_with("unix:") { Self::Descriptor } else { Self::Ssz })
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(refused(&reply)),
            _ => Ok(Self::Json),
        }
    }
}
