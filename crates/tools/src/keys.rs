//! The account that sends, and its private key.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use alloy_primitives::{Address, B256, Signature};
use anyhow::{Context, anyhow};
use clap::Args;
use k256::ecdsa::SigningKey;

use crate::error::Misuse;
use crate::input;
use crate::keystore;

/// The variable of the environment with a private key.
const KEY_VARIABLE: &str = "DEPONENT_PRIVATE_KEY";

/// Where the key is.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The private key in hex. Other users of the machine can see it in the list of processes;
    /// DEPONENT_PRIVATE_KEY of the environment is safer, and --keystore more so.
    #[arg(long, value_name = "KEY", help_heading = "Sender")]
    private_key: Option<String>,
    /// A keystore of version 3, as geth and Foundry write them, or a folder with one for --from.
    /// The password is asked for, unless --password-file names it.
    #[arg(long, value_name = "FILE", help_heading = "Sender")]
    #[arg(conflicts_with_all = ["private_key", "unlocked"])]
    keystore: Option<PathBuf>,
    /// A file with the password of the keystore, in its first line.
    #[arg(long, value_name = "FILE", requires = "keystore", help_heading = "Sender")]
    password_file: Option<PathBuf>,
    /// Let the endpoint sign, for an account that it holds the key of: one of a dev chain.
    #[arg(long, requires = "from", conflicts_with = "private_key", help_heading = "Sender")]
    unlocked: bool,
    /// The account that sends; of a key that is checked against it.
    #[arg(short, long, value_name = "ADDRESS", value_parser = input::address)]
    #[arg(help_heading = "Sender")]
    from: Option<Address>,
}

/// The account that sends.
pub(crate) enum Sender {
    /// The endpoint signs.
    Unlocked(Address),
    Key(PrivateKey),
}

/// A private key.
pub(crate) struct PrivateKey {
    key: SigningKey,
    pub(crate) address: Address,
}

impl Sender {
    pub(crate) fn address(&self) -> Address {
        match self {
            Self::Unlocked(address) => *address,
            Self::Key(key) => key.address,
        }
    }
}

impl KeyArgs {
    /// The account and its key.
    pub(crate) fn sender(&self) -> anyhow::Result<Sender> {
        if let Some(from) = self.from.filter(|_| self.unlocked) {
            return Ok(Sender::Unlocked(from));
        }
        let key = match (&self.private_key, &self.keystore) {
            (Some(text), _) => PrivateKey::parse("--private-key", text)?,
            (None, Some(path)) => self.of_keystore(path)?,
            (None, None) => {
                let text = std::env::var(KEY_VARIABLE).map_err(|_| {
                    Misuse::error(format_args!(
                        "no account to send from: give --keystore FILE, {KEY_VARIABLE} in the \
                         environment, --private-key KEY, or --unlocked --from ADDRESS"
                    ))
                })?;
                PrivateKey::parse(KEY_VARIABLE, &text)?
            }
        };
        if let Some(from) = self.from.filter(|from| *from != key.address) {
            return Err(Misuse::error(format_args!(
                "the key is that of {}, and --from is {from}",
                key.address
            )));
        }
        Ok(Sender::Key(key))
    }

    fn of_keystore(&self, path: &Path) -> anyhow::Result<PrivateKey> {
        let file = match path.is_dir() {
            true => self.in_folder(path)?,
            false => path.to_owned(),
        };
        let shown = format!("--keystore {}", file.display());
        let text = input::read_file(&file)
            .map_err(|error| Misuse::error(format_args!("{shown}: {}", error.root_cause())))?;
        let password = match &self.password_file {
            Some(path) => first_line(path)?,
            None => ask_password()?,
        };
        let secret = keystore::decrypt(&text, &password);
        let secret = secret.map_err(|error| {
            Misuse::error(format_args!("{shown}: {}", rpc::on_one_line(error.as_ref())))
        })?;
        PrivateKey::new(&shown, secret)
    }

    /// The keystore of `--from` in a folder: its name ends with the address, as geth names them.
    fn in_folder(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let shown = folder.display();
        let from = self.from.ok_or_else(|| {
            Misuse::error(format_args!("--keystore {shown} is a folder: give --from ADDRESS, too"))
        })?;
        let address = format!("{from:x}");
        let entries = std::fs::read_dir(folder).with_context(|| shown.to_string())?;
        let mut paths = entries.flatten().map(|entry| entry.path());
        let is_it = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
            name.is_some_and(|name| name.contains(&address))
        };
        paths.find(is_it).ok_or_else(|| {
            Misuse::error(format_args!("--keystore {shown}: no file in it is named after {from}"))
        })
    }
}

fn first_line(path: &Path) -> anyhow::Result<String> {
    let text = input::read_file(path).map_err(|error| {
        Misuse::error(format_args!("--password-file {}: {}", path.display(), error.root_cause()))
    })?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Asks for the password on the terminal, which does not show it; elsewhere it is a line of the
/// standard input.
fn ask_password() -> anyhow::Result<String> {
    let stdin = std::io::stdin();
    let hidden = stdin.is_terminal().then(HiddenInput::begin).transpose()?;
    if hidden.is_some() {
        eprint!("Password: ");
        std::io::stderr().flush().context("the terminal")?;
    }
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if hidden.is_some() {
        eprintln!();
    }
    drop(hidden);
    if read.context("the password")? == 0 {
        return Err(Misuse::error("no password: --password-file FILE names one"));
    }
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// The terminal while it does not show what is typed.
struct HiddenInput;

impl HiddenInput {
    fn begin() -> anyhow::Result<Self> {
        let set = Command::new("stty").arg("-echo").status().context("stty -echo")?;
        anyhow::ensure!(
            set.success(),
            "stty -echo failed: --password-file FILE names the password"
        );
        Ok(Self)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        // The program ends soon, whether it works or not.
        let _ = Command::new("stty").arg("echo").status();
    }
}

impl PrivateKey {
    /// Reads a key in hex. An error does not repeat it.
    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let secret: B256 = text
            .trim()
            .parse()
            .map_err(|_| Misuse::error(format_args!("{name}: a private key is 64 hex digits")))?;
        Self::new(name, secret)
    }

    fn new(name: &str, secret: B256) -> anyhow::Result<Self> {
        let key = SigningKey::from_slice(secret.as_slice())
            .map_err(|_| Misuse::error(format_args!("{name}: no private key has this number")))?;
        let address = Address::from_public_key(key.verifying_key());
        Ok(Self { key, address })
    }

    /// Signs a hash.
    pub(crate) fn sign(&self, hash: B256) -> anyhow::Result<Signature> {
        let signed = self.key.sign_prehash_recoverable(hash.as_slice());
        Ok(signed.map_err(|error| anyhow!("cannot sign: {error}"))?.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_key_is_not_repeated() {
        let check = |text: &str, expected: &str| {
            let Err(error) = PrivateKey::parse("--private-key", text) else { panic!("{text}") };
            let said = error.to_string();
            assert!(said.contains(expected) && !said.contains("beef"), "{said}");
        };
        check("0xbeef", "64 hex digits");
        check(&"0".repeat(64), "no private key");
        check(&"f".repeat(64), "no private key");
        let key = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
        let key = PrivateKey::parse("--private-key", key).expect("a key");
        let address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
        assert_eq!(key.address.to_string(), address);
    }
}
