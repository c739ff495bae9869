//! The methods that a port offers, as flags name them.

use std::fmt;
use std::str::FromStr;

use rpc::quote;

/// The methods to which a port is restricted, and the flags that say so. The default is all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The namespaces of methods that are offered; `None` is all.
    pub namespaces: Option<Vec<String>>,
    /// Which methods of these are offered. Those that are named and those that are not taken away,
    /// where one is named; all that are not taken away, where none is.
    pub methods: Vec<MethodPattern>,
    /// The flag that names the namespaces.
    pub namespaces_flag: &'static str,
    /// The flag that names the methods.
    pub methods_flag: &'static str,
}

impl Default for Offered {
    fn default() -> Self {
        Self {
            namespaces: None,
            methods: Vec::new(),
            namespaces_flag: "--http.api",
            methods_flag: "--http.methods",
        }
    }
}

impl Offered {
    /// Why a method or subscription of this name is not offered, if it is not. `rpc_modules`, which
    /// says which namespaces there are, belongs to all of them.
    pub(crate) fn refusal(&self, name: &str) -> Option<String> {
        let namespace = name.split('_').next().unwrap_or_default();
        let is_in = |offered: &Vec<String>| offered.iter().any(|offered| offered == namespace);
        if namespace != "rpc" && self.namespaces.as_ref().is_some_and(|all| !is_in(all)) {
            let flag = self.namespaces_flag;
            return Some(format!("\"{name}\" is not offered here: {flag} has no {namespace}"));
        }
        let flag = self.methods_flag;
        let takes = |pattern: &&MethodPattern| pattern.takes_away && pattern.has(name);
        if let Some(pattern) = self.methods.iter().find(takes) {
            return Some(format!("\"{name}\" is not offered here: {flag} has {pattern}"));
        }
        let mut named = self.methods.iter().filter(|pattern| !pattern.takes_away).peekable();
        let is_missing = named.peek().is_some() && !named.any(|pattern| pattern.has(name));
        is_missing.then(|| format!("\"{name}\" is not offered here: it is not in {flag}"))
    }
}

/// One method, or all whose names begin alike, that a port offers or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPattern {
    /// The name, or its beginning.
    name: String,
    /// Whether it stands for all names that begin so.
    is_beginning: bool,
    /// Whether it is taken away from what the others name.
    takes_away: bool,
}

impl MethodPattern {
    /// Whether it is of a method of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self.is_beginning {
            true => name.starts_with(&self.name),
            false => name == self.name,
        }
    }
}

/// As flags have it: `eth_call`, `eth_*`, `!eth_sendRawTransaction`.
impl FromStr for MethodPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (takes_away, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (is_beginning, name) = match rest.strip_suffix('*') {
            Some(name) => (true, name),
            None => (false, rest),
        };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_name = name.bytes().all(is_word) && (is_beginning || !name.is_empty());
        match is_name {
            true => Ok(Self { name: name.to_owned(), is_beginning, takes_away }),
            false => Err("expected a method as eth_call, eth_* for all that begin so, or one of \
                          both behind ! to take it away"
                .into()),
        }
    }
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (away, all) = (if self.takes_away { "!" } else { "" }, ["", "*"]);
        write!(f, "{away}{}{}", quote(&self.name), all[usize::from(self.is_beginning)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(namespaces: Option<&[&str]>, methods: &[&str]) -> Offered {
        let namespaces = namespaces.map(|all| all.iter().map(ToString::to_string).collect());
        let methods = methods.iter().map(|text| text.parse().expect(text)).collect();
        Offered { namespaces, methods, ..Offered::default() }
    }

    #[test]
    fn methods_are_named_taken_away_or_both() {
        let check = |methods: &[&str], name: &str, expected: Option<&str>| {
            let refusal = offered(None, methods).refusal(name);
            match (&refusal, expected) {
                (None, None) => {}
                (Some(reason), Some(words)) => assert!(reason.contains(words), "{reason}"),
                _ => panic!("{methods:?} {name}: {refusal:?}"),
            }
        };
        let missing = Some("it is not in --http.methods");
        check(&[], "eth_call", None);
        check(&["eth_call"], "eth_call", None);
        check(&["eth_call"], "eth_callMany", missing);
        check(&["eth_get*"], "eth_getLogs", None);
        check(&["eth_get*"], "eth_call", missing);
        check(&["*"], "net_version", None);
        check(&["!eth_getLogs"], "eth_call", None);
        check(&["!eth_getLogs"], "eth_getLogs", Some("--http.methods has !eth_getLogs"));
        check(&["eth_*", "!eth_get*"], "eth_getLogs", Some("--http.methods has !eth_get*"));
        check(&["!eth_get*", "eth_*"], "eth_getLogs", Some("--http.methods has !eth_get*"));
        check(&["eth_*", "!eth_get*"], "eth_call", None);
        check(&["eth_*", "!eth_get*"], "net_version", missing);
    }

    #[test]
    fn methods_are_those_of_the_namespaces() {
        let offered = offered(Some(&["eth", "net"]), &["*", "!net_peerCount"]);
        assert_eq!(offered.refusal("eth_call"), None);
        assert_eq!(offered.refusal("rpc_modules"), None);
        let reason = offered.refusal("debug_getRawBlock").expect("refused");
        assert!(reason.contains("--http.api has no debug"), "{reason}");
        let reason = offered.refusal("net_peerCount").expect("refused");
        assert!(reason.contains("--http.methods has !net_peerCount"), "{reason}");
    }

    #[test]
    fn what_is_no_method_is_refused_with_what_is_one() {
        for text in ["eth_call", "eth_*", "!eth_call", "!debug_*", "*", " eth_call "] {
            let pattern: MethodPattern = text.parse().expect(text);
            assert_eq!(pattern.to_string(), text.trim());
        }
        for text in ["", "!", "eth-call", "eth_*_x", "!!eth_call", "eth call", "*eth"] {
            let said = text.parse::<MethodPattern>().expect_err(text);
            assert!(said.contains("expected a method as eth_call"), "{said}");
        }
    }
}
