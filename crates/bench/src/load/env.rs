//! A `.env` file: what belongs neither on a command line nor into a report.

use std::path::Path;

use anyhow::Context;

/// What a file may say; everything else in it is somebody else's.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Env {
    /// `DEPONENT_RPC_URL`: endpoints, separated by commas.
    pub(super) urls: Vec<String>,
    /// `DEPONENT_RPC_TOKEN`: a Bearer token.
    pub(super) token: Option<String>,
    /// `DEPONENT_RPC_MAX_RATE`: calls a second.
    pub(super) max_rate: Option<f64>,
}

impl Env {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path);
        Self::parse(&text.with_context(|| format!("no {}", path.display()))?)
    }

    /// Reads lines of `NAME=value`, `export` before them or not, quotes around the value or not.
    /// What begins with `#` is a comment.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut env = Self::default();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let line = line.strip_prefix("export ").unwrap_or(line);
            let parts = line.split_once('=');
            let (name, value) =
                parts.with_context(|| format!("line {number} of the .env file has no ="))?;
            let value = value.trim();
            let quoted = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
            let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
            match name.trim() {
                "DEPONENT_RPC_URL" => {
                    env.urls.extend(value.split(',').map(|url| url.trim().to_owned()));
                }
                "DEPONENT_RPC_TOKEN" => env.token = Some(value.into()),
                "DEPONENT_RPC_MAX_RATE" => {
                    let rate = value.parse();
                    env.max_rate = Some(rate.context("DEPONENT_RPC_MAX_RATE is no number")?);
                }
                _ => {}
            }
        }
        Ok(env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_have_quotes_comments_and_what_is_not_ours() {
        let text = "# a comment\n\nexport DEPONENT_RPC_URL='http://a/k=1, ws://b'\nOTHER=1\n\
                    DEPONENT_RPC_TOKEN = \"t\"\nDEPONENT_RPC_MAX_RATE=2.5\n";
        let urls = vec!["http://a/k=1".to_owned(), "ws://b".to_owned()];
        let expected = Env { urls, token: Some("t".into()), max_rate: Some(2.5) };
        assert_eq!(Env::parse(text).expect("lines"), expected);
        Env::parse("DEPONENT_RPC_MAX_RATE=fast").expect_err("no number");
        Env::parse("DEPONENT_RPC_URL").expect_err("no value");
    }
}
