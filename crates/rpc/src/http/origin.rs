//! The names under which a port may be called, and the web pages that may call it.
//!
//! A web page can let its own name lead to 127.0.0.1 (DNS rebinding) and then reads a port as if it
//! were its own server, unless the port looks at the name. Pages from elsewhere need answers with
//! headers of CORS (Fetch standard, section 3.2), and WebSockets have an origin (RFC 6455 section
//! 10.2).

use std::net::IpAddr;

use hyper::Method;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use crate::quote::quote;

/// Seconds for which a browser may remember the answer to a preflight request.
const MAX_AGE: &str = "600";

/// The names and the web pages that a port serves. In each list `*` stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigins {
    /// Host names under which the port may be called, besides all IP addresses: those of the `Host`
    /// header and of `:authority`.
    pub hosts: Vec<String>,
    /// Web pages that may call over HTTP: `https://name`, `name:port` or `name`.
    pub http: Vec<String>,
    /// Web pages that may open a WebSocket, in the same forms.
    pub websocket: Vec<String>,
}

/// `localhost` alone, and no web page.
impl Default for AllowedOrigins {
    fn default() -> Self {
        Self { hosts: vec!["localhost".into()], http: Vec::new(), websocket: Vec::new() }
    }
}

impl AllowedOrigins {
    /// Checks the names that a request calls the port by. The error is in words for the client.
    pub(super) fn check_host(&self, head: &Parts) -> Result<(), String> {
        let header = head.headers.get(header::HOST).map(|host| host.to_str().unwrap_or("\u{fffd}"));
        let target = head.uri.authority().map(Authority::as_str);
        for authority in header.into_iter().chain(target) {
            if !authority.is_empty() && !self.serves(authority) {
                let (name, names) = (quote(authority), self.hosts.join(", "));
                return Err(format!(
                    "this port is not served as {name}: call it by an IP address or as {names}, or \
                     let the operator allow the name (--http.vhosts; of metrics \
                     --metrics.vhosts; of the Engine API --authrpc.vhosts)"
                ));
            }
        }
        Ok(())
    }

    fn serves(&self, authority: &str) -> bool {
        let Ok(parsed) = authority.parse::<Authority>() else { return false };
        let name = parsed.host();
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        // A name may end in a dot, and is the same name then.
        let name = name.strip_suffix('.').unwrap_or(name);
        address.unwrap_or(name).parse::<IpAddr>().is_ok() || lists(&self.hosts, &[name])
    }

    /// Whether a request's web page, if it comes from one, may open a WebSocket.
    pub(super) fn may_open_websocket(&self, headers: &HeaderMap) -> bool {
        headers.get_all(header::ORIGIN).iter().all(|origin| allows(&self.websocket, origin))
    }

    /// Whether a request is a browser's question if it may call (Fetch standard, section 4.8).
    pub(super) fn is_preflight(&self, head: &Parts) -> bool {
        head.method == Method::OPTIONS
            && head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
            && self.allowed(&head.headers).is_some()
    }

    /// The origin of the web page that makes a request, if it may call over HTTP.
    pub(super) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        allows(&self.http, origin).then(|| origin.clone())
    }
}

/// Lets the web page of `origin` read an answer, and make a call where it asks for it.
pub(super) fn share(headers: &mut HeaderMap, origin: HeaderValue, is_preflight: bool) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if is_preflight {
        let asked = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, "POST, GET"),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type"),
            (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE),
        ];
        headers.extend(asked.map(|(name, value)| (name, HeaderValue::from_static(value))));
    }
}

fn allows(list: &[String], origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    let name = authority.parse::<Authority>().map(|authority| authority.host().to_owned());
    lists(list, &[origin, authority, &name.unwrap_or_default()])
}

/// Whether a list has one of the names, in upper or lower case.
fn lists(list: &[String], names: &[&str]) -> bool {
    let has = |entry: &String| names.iter().any(|name| entry.eq_ignore_ascii_case(name));
    list.iter().any(|entry| entry == "*" || has(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(Method::OPTIONS).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_port_is_called_by_addresses_and_by_the_names_that_are_allowed() {
        let check = |hosts: &[&str], uri: &str, host: &str, expected: bool| {
            let allowed = AllowedOrigins { hosts: list(hosts), ..AllowedOrigins::default() };
            let headers: &[_] = if host == "-" { &[] } else { &[("host", host)] };
            let answer = allowed.check_host(&head(uri, headers));
            assert_eq!(answer.is_ok(), expected, "{hosts:?} {uri} {host}");
        };
        let usual = &["localhost"][..];
        for host in ["127.0.0.1", "127.0.0.1:8545", "[::1]:8545", "localhost", "LOCALHOST:1", ""] {
            check(usual, "/", host, true);
        }
        for host in ["evil.example", "evil.example:8545", "localhost.evil", "a b", "127.0.0.1.x"] {
            check(usual, "/", host, false);
            check(&["*"], "/", host, host != "a b");
        }
        check(usual, "/", "localhost.:8545", true);
        check(usual, "/", "-", true);
        check(&["node.example"], "/", "NODE.example:8545", true);
        check(&["node.example"], "/", "localhost", false);
        // HTTP/2, and the absolute form of HTTP/1.1.
        check(usual, "http://evil.example/", "-", false);
        check(usual, "http://evil.example/", "localhost", false);
        check(usual, "http://127.0.0.1:8545/", "-", true);
    }

    #[test]
    fn web_pages_call_where_they_are_allowed() {
        let asked = ("access-control-request-method", "POST");
        let check = |pages: &[&str], origin: &str, expected: bool| {
            let pages = list(pages);
            let allowed = AllowedOrigins { http: pages.clone(), ..AllowedOrigins::default() };
            let head = head("/", &[("origin", origin), asked]);
            assert_eq!(allowed.is_preflight(&head), expected, "{pages:?} {origin}");
            let allowed = AllowedOrigins { websocket: pages, ..AllowedOrigins::default() };
            assert_eq!(allowed.may_open_websocket(&head.headers), expected, "{origin}");
            assert!(allowed.allowed(&head.headers).is_none(), "{origin}");
        };
        check(&[], "http://a.example", false);
        check(&["*"], "null", true);
        check(&["https://a.example"], "https://A.example", true);
        check(&["https://a.example"], "http://a.example", false);
        check(&["https://a.example"], "https://a.example:8443", false);
        check(&["a.example:8443"], "https://a.example:8443", true);
        check(&["a.example"], "https://a.example:8443", true);
        check(&["a.example"], "https://a.example.evil", false);
        check(&["a.example"], "null", false);
        // A program that is no browser.
        assert!(AllowedOrigins::default().may_open_websocket(&HeaderMap::new()));
    }
}
