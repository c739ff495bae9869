use alloy_consensus::SignableTransaction as _;
use alloy_consensus::crypto::secp256k1::sign_message;
use alloy_primitives::{Address, B256, Signature};
use anyhow::Context as _;
use coins_bip39::{English, Mnemonic};
use execution::{Transaction, UnsignedTransaction};

/// Accounts and their secret keys.
#[derive(Debug, Clone, Default)]
pub struct Wallet {
    keys: Vec<(Address, B256)>,
}

/// The phrase of the accounts that anvil and hardhat have.
pub(crate) const MNEMONIC: &str = "test test test test test test test test test test test junk";

/// The path of the accounts, which their number follows (BIP-44).
pub(crate) const DERIVATION_PATH: &str = "m/44'/60'/0'/0/";

impl Wallet {
    /// The first accounts of a phrase (BIP-39, BIP-44).
    ///
    /// # Errors
    /// If the phrase is no mnemonic.
    pub fn from_mnemonic(phrase: &str, accounts: u32) -> anyhow::Result<Self> {
        Self::on_path(phrase, DERIVATION_PATH, accounts)
    }

    /// The accounts of a phrase whose numbers follow this path (BIP-32).
    ///
    /// # Errors
    /// If the phrase is no mnemonic, or the path is none.
    pub(crate) fn on_path(phrase: &str, path: &str, accounts: u32) -> anyhow::Result<Self> {
        let mnemonic = Mnemonic::<English>::new_from_phrase(phrase);
        let mnemonic =
            mnemonic.context("expected a mnemonic phrase of BIP-39, of 12 to 24 words")?;
        let keys = (0..accounts).map(|index| {
            let path = format!("{path}{index}");
            let key = mnemonic.derive_key(path.as_str(), None)?;
            let key: &coins_bip32::ecdsa::SigningKey = key.as_ref();
            let secret = B256::from_slice(&key.to_bytes());
            let public = execution::public_key(&secret).context("a derived key is in range")?;
            Ok((Address::from_raw_public_key(&public[1..]), secret))
        });
        Ok(Self { keys: keys.collect::<anyhow::Result<_>>()? })
    }

    /// The accounts and their secret keys, in order.
    pub fn keys(&self) -> &[(Address, B256)] {
        &self.keys
    }

    /// The accounts, in order.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Address> {
        self.keys.iter().map(|(address, _)| *address)
    }

    /// Whether there is such an account.
    pub(crate) fn has(&self, address: &Address) -> bool {
        self.keys.iter().any(|(known, _)| known == address)
    }

    /// Signs a hash; `None` where there is no such account.
    pub(crate) fn sign(&self, address: &Address, hash: B256) -> Option<Signature> {
        let (_, secret) = self.keys.iter().find(|(known, _)| known == address)?;
        sign_message(*secret, hash).ok()
    }

    /// Signs a transaction; `None` where there is no such account.
    pub fn sign_transaction(
        &self,
        address: &Address,
        transaction: UnsignedTransaction,
    ) -> Option<Transaction> {
        let signature = self.sign(address, transaction.signature_hash())?;
        Some(transaction.into_envelope(signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::{address, b256};

    #[test]
    fn the_accounts_are_those_of_anvil() {
        let wallet = Wallet::from_mnemonic(MNEMONIC, 10).expect("a mnemonic");
        let first = address!("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
        let secret = b256!("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
        let last = address!("0xa0Ee7A142d267C1f36714E4a8F75612F20a79720");
        assert_eq!(wallet.keys()[0], (first, secret));
        assert_eq!(wallet.keys()[9].0, last);
        let refused = Wallet::from_mnemonic("test test", 1).expect_err("two words");
        assert!(refused.to_string().contains("mnemonic"), "{refused}");
    }
}
