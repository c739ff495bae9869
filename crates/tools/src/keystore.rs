//! Keystores of version 3, as geth, Foundry and wallets write them: a private key, encrypted with a
//! password (the Web3 Secret Storage Definition, on ethereum.org).

use aes::Aes128;
use alloy_primitives::{B256, Bytes, keccak256};
use anyhow::{Context, anyhow, bail, ensure};
use ctr::Ctr64BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use hmac::Hmac;
use scrypt::Params;
use serde::Deserialize;
use sha2::Sha256;

use crate::limits::{KEYSTORE_ROUNDS, SCRYPT_BYTES};

/// Bytes of the derived key: the first half decrypts, the second authenticates.
const DERIVED_BYTES: usize = 32;

#[derive(Deserialize)]
struct Keystore {
    #[serde(alias = "Crypto")]
    crypto: Crypto,
    version: u64,
}

#[derive(Deserialize)]
struct Crypto {
    cipher: String,
    ciphertext: Bytes,
    cipherparams: CipherParams,
    #[serde(flatten)]
    kdf: Kdf,
    mac: Bytes,
}

#[derive(Deserialize)]
struct CipherParams {
    iv: Bytes,
}

/// How the password becomes a key.
#[derive(Deserialize)]
#[serde(tag = "kdf", content = "kdfparams", rename_all = "lowercase")]
enum Kdf {
    Scrypt { dklen: usize, n: u64, r: u32, p: u32, salt: Bytes },
    Pbkdf2 { dklen: usize, c: u32, prf: String, salt: Bytes },
}

/// Decrypts the private key in a keystore.
///
/// # Errors
/// If the text is no keystore of version 3, its parameters are beyond the bounds, or the password
/// is another.
pub(crate) fn decrypt(text: &str, password: &str) -> anyhow::Result<B256> {
    // Old files write hex without a prefix, which `Bytes` reads, too.
    let keystore: Keystore = serde_json::from_str(text).context("it is no keystore")?;
    ensure!(keystore.version == 3, "its version is {}, and 3 is known", keystore.version);
    let crypto = keystore.crypto;
    ensure!(crypto.cipher == "aes-128-ctr", "its cipher is no aes-128-ctr");
    let derived = derive(&crypto.kdf, password)?;
    let (key, authenticator) = derived.split_at(DERIVED_BYTES / 2);
    let mac = keccak256([authenticator, &crypto.ciphertext].concat());
    ensure!(mac[..] == crypto.mac[..], "the password is wrong");
    let iv = &crypto.cipherparams.iv[..];
    let cipher = Ctr64BE::<Aes128>::new_from_slices(key, iv);
    let mut cipher = cipher.map_err(|_| anyhow!("its iv is not 16 bytes long"))?;
    let mut secret = crypto.ciphertext.to_vec();
    cipher.apply_keystream(&mut secret);
    B256::try_from(&secret[..]).map_err(|_| anyhow!("it has no key of 32 bytes"))
}

fn derive(kdf: &Kdf, password: &str) -> anyhow::Result<[u8; DERIVED_BYTES]> {
    let mut derived = [0; DERIVED_BYTES];
    let dklen = match kdf {
        Kdf::Scrypt { dklen, .. } | Kdf::Pbkdf2 { dklen, .. } => *dklen,
    };
    ensure!(dklen == DERIVED_BYTES, "its dklen is {dklen}, and {DERIVED_BYTES} is known");
    match kdf {
        Kdf::Scrypt { n, r, p, salt, .. } => {
            let bytes = u128::from(*n) * u128::from(*r) * 128;
            let rounds = u128::from(*n) * u128::from(*r) * u128::from(*p);
            ensure!(
                n.is_power_of_two() && bytes <= SCRYPT_BYTES && rounds <= SCRYPT_BYTES,
                "its scrypt has n {n}, r {r} and p {p}: more than is taken here"
            );
            let log = u8::try_from(n.ilog2()).unwrap_or(u8::MAX);
            let params = Params::new(log, *r, *p, DERIVED_BYTES);
            let params = params.map_err(|error| anyhow!("its scrypt cannot be: {error}"))?;
            scrypt::scrypt(password.as_bytes(), salt, &params, &mut derived)
                .map_err(|error| anyhow!("its scrypt cannot be: {error}"))?;
        }
        Kdf::Pbkdf2 { c, prf, salt, .. } => {
            ensure!(prf == "hmac-sha256", "its prf is no hmac-sha256");
            if *c == 0 || *c > KEYSTORE_ROUNDS {
                bail!("its pbkdf2 has {c} rounds, and 1 to {KEYSTORE_ROUNDS} are taken here");
            }
            pbkdf2::pbkdf2::<Hmac<Sha256>>(password.as_bytes(), salt, *c, &mut derived)
                .map_err(|error| anyhow!("{error}"))?;
        }
    }
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KEY: &str = "0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

    /// A test vector of the Web3 Secret Storage Definition, and a keystore that cast 1.7.1 wrote.
    /// The definition's own with scrypt has parameters that RFC 7914 forbids.
    fn vectors() -> [String; 2] {
        let pbkdf2 = json!({
            "crypto": {
                "cipher": "aes-128-ctr",
                "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
                "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
                "kdf": "pbkdf2",
                "kdfparams": {
                    "c": 262144, "dklen": 32, "prf": "hmac-sha256",
                    "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
                },
                "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
            },
            "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
            "version": 3,
        });
        let scrypt = json!({
            "crypto": {
                "cipher": "aes-128-ctr",
                "cipherparams": {"iv": "0391b4b2edf599a86960fec9f1215ddd"},
                "ciphertext": "49c02d84afe844179647b94aff073f90fda3857551e7d979332170a19a35a69b",
                "kdf": "scrypt",
                "kdfparams": {
                    "dklen": 32, "n": 8192, "p": 1, "r": 8,
                    "salt": "3a1dfe93803f58a73b7aa4350653048c707919383b8ee914f92e12e5abb69d65",
                },
                "mac": "83cfb8f4b34a088b540d313fd7f5d4d7530ac49a57a912580958b2c0e086c295",
            },
            "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
            "version": 3,
        });
        [pbkdf2.to_string(), scrypt.to_string()]
    }

    #[test]
    fn keystores_of_both_kinds_are_decrypted() {
        for text in vectors() {
            let key = decrypt(&text, "testpassword").expect("the password");
            assert_eq!(key.to_string(), KEY);
        }
    }

    #[test]
    fn another_password_and_huge_parameters_are_refused() {
        let [pbkdf2, scrypt] = vectors();
        let check = |text: &str, password: &str, expected: &str| {
            let error = decrypt(text, password).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&pbkdf2, "testpassword2", "the password is wrong");
        check(&scrypt.replace("8192", "1073741824"), "testpassword", "more than is taken here");
        check(&scrypt.replace("\"p\":1", "\"p\":4000000000"), "x", "more than is taken here");
        check(&scrypt.replace("8192", "8191"), "x", "more than is taken here");
        check(&pbkdf2.replace("262144", "4000000000"), "x", "rounds");
        check(&pbkdf2.replace("\"version\":3", "\"version\":1"), "x", "its version is 1");
        check("{}", "x", "it is no keystore");
    }
}
