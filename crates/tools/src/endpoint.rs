//! The endpoint of a command.

use std::path::PathBuf;
use std::str;
use std::time::Duration;

use alloy_primitives::{Bytes, U256};
use anyhow::Context;
use clap::Args;
use client::{Endpoint, EndpointAddress};
use rpc::{ClientError, JwtSecret, read_json, shown_address};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Misuse;
use crate::input;
use crate::limits::{ANSWER_BYTES, CALL_TIME};

/// The variable of the environment with the URL; cast reads it too.
const URL_VARIABLE: &str = "ETH_RPC_URL";

/// The endpoint where nothing names another: the usual port of a node on this machine.
const DEFAULT_URL: &str = "http://127.0.0.1:8545";

/// Where the endpoint is, and how its answer is printed.
#[derive(Debug, Args)]
pub(crate) struct EndpointArgs {
    /// The endpoint: http://HOST:PORT/PATH, https, ws or wss, or the path of a Unix socket
    /// [default: ETH_RPC_URL of the environment, else http://127.0.0.1:8545].
    #[arg(short, long, visible_alias = "rpc-url", value_name = "URL", help_heading = "Endpoint")]
    rpc: Option<String>,
    /// The secret of an engine port, which makes the token of each request.
    #[arg(long, value_name = "FILE", help_heading = "Endpoint")]
    jwt_secret: Option<PathBuf>,
    /// Certificates in PEM of the authorities that may sign the certificate of an endpoint,
    /// instead of the system's.
    #[arg(long, value_name = "FILE", help_heading = "Endpoint")]
    cacert: Option<PathBuf>,
    /// The longest wait for an answer, in seconds [default: 45].
    #[arg(long, value_name = "SECONDS", help_heading = "Endpoint")]
    #[arg(value_parser = input::seconds)]
    rpc_timeout: Option<Duration>,
    /// Print JSON, for programs: the endpoint's own answer, or an object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl EndpointArgs {
    /// Connects to the endpoint.
    pub(crate) fn connect(&self) -> anyhow::Result<Node> {
        let given = self.rpc.clone().or_else(|| std::env::var(URL_VARIABLE).ok());
        let url = given.filter(|url| !url.is_empty()).unwrap_or_else(|| DEFAULT_URL.into());
        let secret = self.jwt_secret.as_deref().map(JwtSecret::load).transpose();
        let secret =
            secret.map_err(|error| Misuse::error(format_args!("--jwt-secret: {error}")))?;
        let address = EndpointAddress::parse(&url, self.cacert.as_deref(), secret);
        let address = address.map_err(Misuse::error)?;
        let time = self.rpc_timeout.unwrap_or(CALL_TIME);
        let endpoint = address.connect(time, ANSWER_BYTES).with_context(|| {
            let url = shown_address(&url);
            format!("no answer from {url} (--rpc URL or {URL_VARIABLE} names another endpoint)")
        })?;
        Ok(Node { endpoint })
    }
}

/// A connection to the endpoint.
pub(crate) struct Node {
    endpoint: Endpoint,
}

impl Node {
    /// The result of a call as its JSON text, or why there is none.
    pub(crate) fn try_text(&mut self, method: &str, params: &Value) -> Result<Bytes, ClientError> {
        self.endpoint.call(method, params)
    }

    /// The result of a call as its JSON text; an error names the method.
    pub(crate) fn text(&mut self, method: &str, params: &Value) -> anyhow::Result<String> {
        let answer = self.try_text(method, params).with_context(|| method.to_owned())?;
        Ok(str::from_utf8(&answer).with_context(|| method.to_owned())?.to_owned())
    }

    /// The result of a call.
    pub(crate) fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &Value,
    ) -> anyhow::Result<T> {
        let text = self.text(method, params)?;
        read_json(&text).with_context(|| format!("{method}: the answer is not as expected"))
    }

    /// Lets time pass between two calls.
    pub(crate) fn pause(&mut self, time: Duration) {
        self.endpoint.pause(time);
    }

    /// A quantity that a method answers.
    pub(crate) fn quantity(&mut self, method: &str, params: &Value) -> anyhow::Result<U256> {
        self.call(method, params)
    }
}
