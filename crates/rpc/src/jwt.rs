//! The shared secret of the engine port, and the tokens made with it.
//!
//! execution-apis `src/engine/authentication.md`: HS256 over the claim `iat`, which lies within
//! 60 seconds of the server's clock. Other claims are ignored, but an `exp` is respected.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use rand::TryRngCore;
use rustix::fs::OFlags;
use serde::Deserialize;
use serde_json::json;
use sha2::Sha256;

use crate::foreign_json::read_json_bytes;
use crate::limits::{SECRET_FILE_BYTES, TOKEN_AGE};

/// Why a secret or its file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JwtError {
    /// The secret is not 64 hex digits.
    #[error(
        "a JWT secret is 64 hex digits (32 bytes), with or without 0x, alone: got {digits} \
         characters{}",
        if *.digits == 64 { ", not all of them hex digits" } else { "" }
    )]
    NotHex {
        /// Characters found, without prefix and surrounding white space.
        digits: usize,
    },
    /// The file's content is not a secret.
    #[error(
        "the JWT secret file {path} is of no use: {reason}. Correct it, or delete it if a new \
             secret may be made"
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// The fault of its content.
        reason: Box<JwtError>,
    },
    /// The file cannot be read.
    #[error("cannot read the JWT secret file {path}: {reason}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        reason: io::Error,
    },
    /// A new file cannot be written.
    #[error("cannot write a new JWT secret to {path}: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The operating system's reason.
        reason: io::Error,
    },
}

/// The secret of 32 bytes that a server and its clients share.
#[derive(Clone, PartialEq, Eq)]
pub struct JwtSecret([u8; 32]);

/// Does not show the secret.
impl fmt::Debug for JwtSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JwtSecret(..)")
    }
}

impl JwtSecret {
    /// A fresh secret from the operating system's generator.
    ///
    /// # Panics
    /// If the operating system gives no entropy: nothing on the machine can be kept secret then.
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        rand::rngs::OsRng.try_fill_bytes(&mut bytes).expect("the operating system gives entropy");
        Self(bytes)
    }

    /// Reads 64 hex digits, with or without `0x`, white space around them allowed.
    ///
    /// # Errors
    /// [`JwtError::NotHex`] for any other text.
    pub fn from_hex(text: &str) -> Result<Self, JwtError> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").unwrap_or(text);
        // `decode_to_array` would take a second prefix for digits; the length says no to that.
        match const_hex::decode_to_array(digits) {
            Ok(bytes) if digits.len() == 64 => Ok(Self(bytes)),
            _ => Err(JwtError::NotHex { digits: digits.chars().count() }),
        }
    }

    /// Reads the secret from a regular file. The log has a warning if every user of the machine may
    /// read it, and if all of its digits are zeroes: geth takes both.
    ///
    /// # Errors
    /// If the file cannot be read, is a pipe or a device, or its content is not a secret.
    pub fn load(path: &Path) -> Result<Self, JwtError> {
        let (text, mode) =
            read_file(path).map_err(|reason| JwtError::Read { path: path.into(), reason })?;
        let secret = Self::from_hex(&String::from_utf8_lossy(&text))
            .map_err(|reason| JwtError::Content { path: path.into(), reason: reason.into() })?;
        let path = path.display();
        if let Some(warning) = mode_warning(mode) {
            tracing::warn!("the JWT secret file {path} {warning}");
        }
        if secret.0 == [0; 32] {
            tracing::warn!(
                "the JWT secret in {path} is all zeroes, the first that anyone tries: delete the \
                 file, and a secret from the operating system's generator takes its place"
            );
        }
        Ok(secret)
    }

    /// Reads the secret from a file, or creates a file with a fresh one that only its owner may
    /// read (mode 0600).
    ///
    /// # Errors
    /// If the file cannot be read or written, or its content is not a secret.
    pub fn load_or_create(path: &Path) -> Result<Self, JwtError> {
        let secret = Self::random();
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => file
                .write_all(format!("0x{}\n", const_hex::encode(secret.0)).as_bytes())
                .and_then(|()| file.sync_all())
                .map(|()| secret)
                .map_err(|reason| JwtError::Write { path: path.into(), reason }),
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => Self::load(path),
            Err(reason) => Err(JwtError::Write { path: path.into(), reason }),
        }
    }

    /// A token that is issued now, for the header `Authorization: Bearer`.
    pub fn token(&self) -> String {
        self.sign(&json!({"alg": "HS256", "typ": "JWT"}), &json!({ "iat": now_secs() as u64 }))
    }

    fn sign(&self, header: &serde_json::Value, claims: &serde_json::Value) -> String {
        let encode = |text: String| BASE64_URL_SAFE_NO_PAD.encode(text);
        let signed = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.mac(&signed).finalize().into_bytes();
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.chain_update(signed)
    }

    /// Checks a token, in constant time.
    ///
    /// # Errors
    /// One line for the sender of the token.
    pub fn verify(&self, token: &str) -> Result<(), String> {
        let (signed, signature) =
            token.rsplit_once('.').ok_or("malformed token: it has no signature")?;
        let (header, claims) =
            signed.split_once('.').ok_or("malformed token: it has less than three parts")?;
        let TokenHeader { alg } = decode(header, "header")?;
        if alg != "HS256" {
            return Err("wrong algorithm: only HS256 is accepted".into());
        }
        let signature = BASE64_URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| "malformed token: its signature is not base64url")?;
        self.mac(signed)
            .verify_slice(&signature)
            .map_err(|_| "wrong signature: the two sides do not have the same secret")?;
        check_times(&decode(claims, "claims")?, now_secs())
    }
}

/// The start of a regular file, and its permissions. The start of a pipe without a writer would
/// never come.
fn read_file(path: &Path) -> io::Result<(Vec<u8>, u32)> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let data = file.metadata()?;
    if data.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !data.is_file() {
        return Err(io::Error::other("it is a pipe, a socket or a device: name a file"));
    }
    let mut text = Vec::new();
    file.take(SECRET_FILE_BYTES).read_to_end(&mut text)?;
    Ok((text, data.permissions().mode()))
}

/// The fault of a secret's permissions. A group is left to the operator: the consensus client may
/// be another user of it.
fn mode_warning(mode: u32) -> Option<String> {
    let mode = mode & 0o777;
    (mode & 0o007 != 0)
        .then(|| format!("is open to every user of this machine (mode {mode:03o}): chmod 600"))
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
}

/// Seconds since 1970, perhaps with a fraction (RFC 7519 section 2, NumericDate).
#[derive(Deserialize)]
struct TokenClaims {
    iat: f64,
    exp: Option<f64>,
}

fn decode<T: serde::de::DeserializeOwned>(part: &str, name: &str) -> Result<T, String> {
    let text = BASE64_URL_SAFE_NO_PAD
        .decode(part)
        .map_err(|_| format!("malformed token: its {name} is not base64url"))?;
    read_json_bytes(&text)
        .map_err(|fault| format!("malformed token: its {name} cannot be read: {fault}"))
}

fn check_times(claims: &TokenClaims, now: f64) -> Result<(), String> {
    let allowed = TOKEN_AGE.as_secs();
    let TokenClaims { iat, exp } = *claims;
    let age = now - iat;
    if age.abs() > allowed as f64 {
        let kind = if age > 0.0 { "stale" } else { "future" };
        return Err(format!(
            "{kind} token: iat {iat:.0} differs from now by {:.0} s, allowed {allowed}; \
             check both clocks",
            age.abs()
        ));
    }
    match exp {
        Some(exp) if exp + (allowed as f64) < now => {
            Err(format!("expired token: exp {exp:.0} was {:.0} s ago", now - exp))
        }
        _ => Ok(()),
    }
}

/// Whole seconds since 1970.
fn now_secs() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("the clock is past 1970").as_secs() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const DIGITS: &str = "f79ae8046bc11c9927afe911db7143c51a806c4a537cc08e0d37140b0192f430";

    #[track_caller]
    fn check(header: Value, claims: Value, expected: Result<(), &str>) {
        let secret = JwtSecret::random();
        let outcome = secret.verify(&secret.sign(&header, &claims));
        match (&outcome, expected) {
            (Ok(()), Ok(())) => {}
            (Err(reason), Err(part)) if reason.contains(part) => {}
            _ => panic!("{outcome:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_token_is_good_for_a_minute_before_and_after() {
        let hs256 = || json!({"alg": "HS256"});
        let now = now_secs() as i64;
        check(hs256(), json!({ "iat": now }), Ok(()));
        check(hs256(), json!({ "iat": now as f64 + 0.5 }), Ok(()));
        check(hs256(), json!({ "iat": now - 58 }), Ok(()));
        check(hs256(), json!({ "iat": now + 58 }), Ok(()));
        check(hs256(), json!({ "iat": now - 70 }), Err("stale token"));
        check(hs256(), json!({ "iat": now + 70 }), Err("future token"));
        check(hs256(), json!({ "iat": now, "exp": now + 9, "id": "x", "clv": [] }), Ok(()));
        check(hs256(), json!({ "iat": now, "exp": now - 70 }), Err("expired token"));
    }

    #[test]
    fn a_token_says_hs256_and_when_it_was_issued() {
        let now = now_secs();
        for alg in ["none", "None", "HS512", "RS256", "hs256"] {
            check(json!({ "alg": alg }), json!({ "iat": now }), Err("wrong algorithm"));
        }
        check(json!({}), json!({ "iat": now }), Err("its header cannot be read"));
        check(json!({"alg": "HS256"}), json!({}), Err("missing field `iat`"));
        check(json!({"alg": "HS256"}), json!({"iat": "1"}), Err("its claims cannot be read"));
    }

    /// Both are signed with the right secret.
    #[test]
    fn an_array_is_no_header_and_no_claims() {
        let now = now_secs();
        check(json!(["HS256"]), json!({ "iat": now }), Err("its header cannot be read"));
        check(json!({"alg": "HS256"}), json!([now, null]), Err("its claims cannot be read"));
    }

    #[test]
    fn a_refusal_repeats_the_start_of_a_header_alone() {
        let secret = JwtSecret::random();
        let header = BASE64_URL_SAFE_NO_PAD.encode(json!("\u{7f}".repeat(1 << 20)).to_string());
        let reason = secret.verify(&format!("{header}.e30.AA")).expect_err("no header");
        assert!(reason.contains("expected an object") && reason.len() < 2000, "{reason}");
    }

    #[test]
    fn a_token_of_another_secret_or_changed_by_a_bit_is_refused() {
        let secret = JwtSecret::random();
        let token = secret.token();
        assert_eq!(secret.verify(&token), Ok(()));
        let reason = JwtSecret::random().verify(&token).expect_err("another secret");
        assert!(reason.contains("wrong signature"), "{reason}");
        for place in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[place] ^= 1;
            let changed = String::from_utf8_lossy(&changed).into_owned();
            assert!(secret.verify(&changed).is_err(), "{changed}");
        }
        for length in 0..token.len() {
            assert!(secret.verify(&token[..length]).is_err(), "{}", &token[..length]);
        }
        for garbage in ["", ".", "..", "...", "a.b.c", "é.é.é", "e30.e30."] {
            assert!(secret.verify(garbage).is_err(), "{garbage}");
        }
    }

    /// Made with Python's `hmac` and `base64` modules.
    #[test]
    fn a_signature_from_elsewhere_is_ours() {
        let secret = JwtSecret::from_hex(DIGITS).expect("a secret");
        let header = json!({"alg": "HS256", "typ": "JWT"});
        let token = secret.sign(&header, &json!({"iat": 1}));
        assert_eq!(token, VECTOR);
        let reason = secret.verify(VECTOR).expect_err("it is old");
        assert!(reason.starts_with("stale token: iat 1 differs from now by "), "{reason}");
    }

    const VECTOR: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpYXQiOjF9.-LmyjeKOng\
        x3u5T7DDBvuMOFMcQsIS21oVjnjsN-rig";

    #[test]
    fn a_secret_is_64_digits_and_nothing_else() {
        for text in [DIGITS.into(), format!("0x{DIGITS}"), format!("\n 0x{DIGITS} \r\n")] {
            let secret = JwtSecret::from_hex(&text).expect("a secret");
            assert_eq!(const_hex::encode(secret.0), DIGITS);
            assert_eq!(format!("{secret:?}"), "JwtSecret(..)");
        }
        let check = |text: &str, expected: &str| {
            let error = JwtSecret::from_hex(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("", "got 0 characters");
        check(&DIGITS[1..], "got 63 characters");
        check(&format!("0x0x{DIGITS}"), "got 66 characters");
        check(&format!("0x{}", &DIGITS[..62]), "got 62 characters");
        check(&DIGITS.replace('f', "g"), "not all of them hex digits");
        check(&format!("{DIGITS} {DIGITS}"), "got 129 characters");
        check(&"é".repeat(64), "got 64 characters");
    }

    #[test]
    fn a_secret_file_is_made_once_for_its_owner_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("jwt.hex");
        let made = JwtSecret::load_or_create(&path).expect("made");
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(JwtSecret::load_or_create(&path).expect("read"), made);
        assert_eq!(JwtSecret::load(&path).expect("read"), made);
    }

    #[test]
    fn a_secret_that_every_user_may_read_is_warned_about() {
        assert_eq!(mode_warning(0o100_600), None);
        assert_eq!(mode_warning(0o100_640), None);
        let warning = mode_warning(0o100_644).expect("a warning");
        assert!(warning.contains("mode 644") && warning.contains("chmod 600"), "{warning}");
    }

    /// Opening a pipe that has no writer would wait for one.
    #[test]
    fn a_secret_is_not_read_from_a_pipe_or_a_device() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).expect("a pipe");
        for path in [&*pipe, Path::new("/dev/zero")] {
            for outcome in [JwtSecret::load(path), JwtSecret::load_or_create(path)] {
                let error = outcome.expect_err("no file").to_string();
                assert!(error.contains("a pipe, a socket or a device"), "{error}");
            }
        }
    }

    #[test]
    fn an_unusable_secret_file_is_named_with_the_reason() {
        let dir = tempfile::tempdir().expect("a directory");
        let check = |outcome: Result<JwtSecret, JwtError>, expected: &[&str]| {
            let error = outcome.expect_err("unusable").to_string();
            for part in expected {
                assert!(error.contains(part), "{error:?} lacks {part:?}");
            }
        };
        let absent = dir.path().join("absent").join("jwt.hex");
        check(JwtSecret::load(&absent), &["absent/jwt.hex", "No such file"]);
        check(JwtSecret::load_or_create(&absent), &["cannot write", "absent/jwt.hex"]);
        check(JwtSecret::load(dir.path()), &["directory"]);
        let short = dir.path().join("short.hex");
        std::fs::write(&short, "0x1234").expect("written");
        check(JwtSecret::load(&short), &["short.hex", "got 4 characters"]);
        check(JwtSecret::load_or_create(&short), &["short.hex", "delete it"]);
        let long = dir.path().join("long.hex");
        std::fs::write(&long, vec![0xff; 4096]).expect("written");
        check(JwtSecret::load(&long), &["long.hex", "64 hex digits"]);
    }
}
