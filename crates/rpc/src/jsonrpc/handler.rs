//! The handler of a port, and its methods.

use std::net::IpAddr;
use std::pin::Pin;

use serde_json::value::RawValue;

use crate::http::resource::{Resources, Response};
use crate::jsonrpc::error::Error;
use crate::jsonrpc::json::Json;
use crate::jsonrpc::subscription::SubscriptionMethods;
use crate::jsonrpc::topic::Subscription;

/// The answer to a call, when there is one.
pub type Later = Pin<Box<dyn Future<Output = Result<Json, Error>> + Send>>;

/// Answers the calls of a port.
///
/// [`call`](Self::call) is enough for a server of methods; the others add what the server has to
/// know of methods before it calls them, subscriptions, and resources.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call. `params`, when present, are an array or an object: see
    /// [`Params`](crate::Params).
    ///
    /// It may take its time: it has a thread to itself, unless it [is quick](Method::quick). A
    /// panic becomes [`Code::Internal`](crate::Code::Internal) for the client.
    ///
    /// # Errors
    /// The error that the client is sent; [`Code::MethodNotFound`](crate::Code::MethodNotFound) for
    /// a method that is not offered.
    fn call(&self, method: &str, params: Option<&RawValue>) -> Result<Json, Error>;

    /// As [`call`](Self::call), for a handler that bounds what each address may have: `host` is the
    /// address that it comes from, of IPv6 the network, and `None` for programs of this host.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn call_from(
        &self,
        host: Option<IpAddr>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Json, Error> {
        _ = host;
        self.call(method, params)
    }

    /// Begins a call by a method that [waits](Method::waits), on a thread as in
    /// [`call`](Self::call). Its answer is then waited for without a thread and without a turn;
    /// over HTTP it is dropped when the client hangs up. In a batch, where calls are answered one
    /// after the other, [`call_from`](Self::call_from) is called for such a method, too.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    fn call_later(
        &self,
        host: Option<IpAddr>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Later, Error> {
        _ = (host, params);
        Err(Error::method_not_found(method))
    }

    /// The methods that are [quick](Method::quick) or [in order](Method::in_order), or that
    /// [wait](Method::waits). Others need not
    /// be listed. The server asks once, when it starts.
    fn methods(&self) -> &[Method] {
        &[]
    }

    /// The subscriptions that are offered over WebSockets and bare connections.
    fn subscriptions(&self) -> &[SubscriptionMethods] {
        &[]
    }

    /// Begins a subscription by one of the methods in [`subscriptions`](Self::subscriptions). It
    /// must be quick; everything else is as in [`call`](Self::call).
    ///
    /// # Errors
    /// The error that the client is sent.
    fn subscribe(&self, method: &str, params: Option<&RawValue>) -> Result<Subscription, Error> {
        _ = params;
        Err(Error::method_not_found(method))
    }

    /// Answers `GET path`, by which a monitor asks how the server is: `None` where nothing is
    /// there; a body, which is JSON or empty, for status 200, and as an error for status 503. The
    /// server answers `/`. It must be quick.
    fn probe(&self, path: &str) -> Option<Result<String, String>> {
        _ = path;
        None
    }

    /// Answers `GET /` for a browser, which accepts `text/html`: `None` where there is no page. It
    /// must be quick.
    fn page(&self) -> Option<Response> {
        None
    }

    /// Is told the User-Agent of a request with a valid token, before each call in it. It must be
    /// quick.
    fn user_agent(&self, method: &str, user_agent: &str) {
        _ = (method, user_agent);
    }

    /// The resources that are offered over HTTP beside JSON-RPC.
    fn resources(&self) -> Option<&dyn Resources> {
        None
    }
}

/// A method, with the properties that a server has to know before it calls it.
///
/// ```
/// use deponent_rpc::Method;
///
/// const METHODS: &[Method] = &[
///     Method::new("eth_chainId").quick(),
///     Method::new("engine_forkchoiceUpdatedV3").in_order(),
/// ];
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The name.
    pub name: &'static str,
    /// Whether a call with these parameters is quick.
    pub is_quick: fn(Option<&RawValue>) -> bool,
    /// Whether calls of one connection are made in the order in which they come.
    pub is_in_order: bool,
    /// Whether its answer comes later.
    pub waits: bool,
}

impl Method {
    /// A method that takes its time, and whose calls may overtake each other.
    pub const fn new(name: &'static str) -> Self {
        Self { name, is_quick: |_| false, is_in_order: false, waits: false }
    }

    /// The same, answered out of memory in microseconds: it is called on the thread that reads from
    /// all clients, since waking another thread would take longer.
    #[must_use]
    pub const fn quick(self) -> Self {
        self.quick_if(|_| true)
    }

    /// The same, [quick](Self::quick) where the parameters fulfil a condition.
    #[must_use]
    pub const fn quick_if(self, is_quick: fn(Option<&RawValue>) -> bool) -> Self {
        Self { is_quick, ..self }
    }

    /// The same, whose answers [come later](Handler::call_later): they wait for something that may
    /// take seconds.
    #[must_use]
    pub const fn waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The same, whose calls on one connection are made in the order in which they come, one after
    /// the other, together with those of all other methods in order.
    #[must_use]
    pub const fn in_order(self) -> Self {
        Self { is_in_order: true, ..self }
    }
}
