//! The node's key, its enode URL and its record (EIP-778).
//!
//! The node has no peer-to-peer network. Tools wait for both forms, so they name the key and say
//! that nothing listens: the URL has port 0, the record neither an address nor a port.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_primitives::{B256, hex, keccak256};
use alloy_rlp::Encodable;
use anyhow::Context;

use crate::limits::KEY_FILE_BYTES;

/// The names of a node, from its key.
#[derive(Debug, Clone)]
pub(crate) struct NodeRecord {
    /// keccak-256 of the public key.
    pub(crate) id: B256,
    pub(crate) enode: String,
    pub(crate) enr: String,
}

impl NodeRecord {
    /// The record of the key in `file`, which is made where it is absent: 64 hex digits, as geth's
    /// `nodekey`, for the owner of the process alone.
    ///
    /// # Errors
    /// If the file cannot be read or made, or has no key.
    pub(crate) fn load_or_create(file: &Path) -> anyhow::Result<Self> {
        let key = read_or_create(file)
            .with_context(|| format!("cannot read the node's key in {}", file.display()))?;
        Self::of(&key).with_context(|| {
            let file = file.display();
            format!("{file} has no secp256k1 key in hex: remove it, and a new one is made")
        })
    }

    /// `None` where it is no secp256k1 key.
    fn of(key: &B256) -> Option<Self> {
        let public = execution::public_key(key)?;
        // Without the byte that says that both coordinates follow.
        let point = &public[1..];
        Some(Self {
            id: keccak256(point),
            enode: format!("enode://{}@127.0.0.1:0", hex::encode(point)),
            enr: record(key, &[])?,
        })
    }
}

/// The text of the first record of a key, with these entries beside those of the key. They stand
/// between `id` and `secp256k1` in the alphabet.
fn record(key: &B256, entries: &[(&str, &[u8])]) -> Option<String> {
    let public = execution::public_key(key)?;
    // The parity of Y, and X.
    let mut compressed = vec![2 + (public[64] & 1)];
    compressed.extend_from_slice(&public[1..33]);
    let mut pairs: Vec<(&str, &[u8])> = vec![("id", b"v4")];
    pairs.extend_from_slice(entries);
    pairs.push(("secp256k1", &compressed));
    pairs.sort_unstable();
    let mut content = Vec::new();
    1_u64.encode(&mut content);
    for (name, value) in pairs {
        name.as_bytes().encode(&mut content);
        value.encode(&mut content);
    }
    let signature = sign_message(*key, keccak256(list(&content))).ok()?;
    let mut signed = Vec::new();
    signature.as_bytes()[..64].encode(&mut signed);
    signed.extend(content);
    Some(format!("enr:{}", base64_url(&list(&signed))))
}

/// RLP of a list with this payload.
fn list(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
    out.extend_from_slice(payload);
    out
}

/// Base64 with the alphabet of URLs, without padding (RFC 4648, section 5).
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut bits = [0; 4];
        bits[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(bits);
        for digit in 0..=chunk.len() as u32 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

fn read_or_create(file: &Path) -> anyhow::Result<B256> {
    let made = B256::from(rand::random::<[u8; 32]>());
    match create(file, &made) {
        Ok(()) => return Ok(made),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error.into()),
    }
    let bytes = fs::metadata(file)?.len();
    anyhow::ensure!(bytes <= KEY_FILE_BYTES, "it has {bytes} bytes, which is no key");
    let key = files::unhexed(&fs::read(file)?).context("it is no hex")?;
    anyhow::ensure!(key.len() == 32, "it has {} bytes in hex, not 32", key.len());
    Ok(B256::from_slice(&key))
}

fn create(file: &Path, key: &B256) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    file.write_all(hex::encode(key).as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;

    /// The example of EIP-778.
    #[test]
    fn a_record_is_that_of_the_specification() {
        let key = b256!("0xb71c71a67e1177ad4e901695e1b4b9ee17ae16c6668d313eac2f96dbcda3f291");
        let entries: [(&str, &[u8]); 2] = [("ip", &[127, 0, 0, 1]), ("udp", &[0x76, 0x5f])];
        let expected = "enr:-IS4QHCYrYZbAKWCBRlAy5zzaDZXJBGkcnh4MHcBFZntXNFrdvJjX04jRzjzCBOonrkT\
                        fj499SZuOh8R33Ls8RRcy5wBgmlkgnY0gmlwhH8AAAGJc2VjcDI1NmsxoQPKY0yuDUmstAHY\
                        pMa2_oxVtw0RW_QAdpzBQA8yWM0xOIN1ZHCCdl8";
        assert_eq!(record(&key, &entries).expect("a key"), expected);
        let id = b256!("0xa448f24c6d18e575453db13171562b71999873db5b286df957af199ec94617f7");
        assert_eq!(NodeRecord::of(&key).expect("a key").id, id);
    }

    #[test]
    fn a_key_is_kept_and_a_file_without_one_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("nodekey");
        let first = NodeRecord::load_or_create(&file).expect("made");
        let again = NodeRecord::load_or_create(&file).expect("read");
        assert_eq!((&first.enode, &first.enr), (&again.enode, &again.enr));
        for bad in ["", "xyz", "00", &"00".repeat(32), &"ff".repeat(32), &"0".repeat(5000)] {
            fs::write(&file, bad).expect("written");
            let error = format!("{:#}", NodeRecord::load_or_create(&file).expect_err("refused"));
            assert!(error.contains("nodekey"), "{error}");
        }
    }
}
