//! Typed data (EIP-712).

use alloy_dyn_abi::{Eip712Domain, Resolver, TypedData};
use alloy_primitives::B256;
use serde::Deserialize;
use serde_json::Value;

/// The members of typed data.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parts {
    #[serde(default)]
    domain: Eip712Domain,
    types: Resolver,
    primary_type: String,
    #[serde(default)]
    message: Value,
}

/// The hash that is signed of typed data (EIP-712): of an object with `types`, `primaryType`,
/// `domain` and `message`, or of the same as text.
///
/// # Errors
/// If a member is missing or no value of its type, or a type is not declared.
pub fn typed_data_hash(data: &Value) -> Result<B256, String> {
    let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    if !text.trim_start().starts_with('{') {
        return Err("expected an object with types, primaryType, domain and message".into());
    }
    let parts = serde_json::from_str(&text).map_err(|fault| fault.to_string())?;
    let Parts { domain, types, primary_type, message } = parts;
    let data = TypedData { domain, resolver: types, primary_type, message };
    data.eip712_signing_hash().map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::b256;
    use serde_json::json;

    /// The example of EIP-712, with its hash.
    fn mail() -> (Value, B256) {
        let typed = |name: &str, kind: &str| json!({"name": name, "type": kind});
        let person = |name: &str, wallet: &str| json!({"name": name, "wallet": wallet});
        let data = json!({
            "types": {
                "EIP712Domain": [
                    typed("name", "string"),
                    typed("version", "string"),
                    typed("chainId", "uint256"),
                    typed("verifyingContract", "address"),
                ],
                "Person": [typed("name", "string"), typed("wallet", "address")],
                "Mail": [
                    typed("from", "Person"),
                    typed("to", "Person"),
                    typed("contents", "string"),
                ],
            },
            "primaryType": "Mail",
            "domain": {
                "name": "Ether Mail",
                "version": "1",
                "chainId": 1,
                "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
            },
            "message": {
                "from": person("Cow", "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"),
                "to": person("Bob", "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"),
                "contents": "Hello, Bob!",
            },
        });
        (data, b256!("0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"))
    }

    #[test]
    fn the_example_of_the_specification_has_its_hash() {
        let (data, hash) = mail();
        assert_eq!(typed_data_hash(&data), Ok(hash));
        assert_eq!(typed_data_hash(&json!(data.to_string())), Ok(hash));
    }

    #[test]
    fn wrong_data_say_what_is_wrong() {
        let refused = |change: &dyn Fn(&mut Value), words: &str| {
            let (mut data, _) = mail();
            change(&mut data);
            let error = typed_data_hash(&data).expect_err(words);
            assert!(error.contains(words), "{error}, not {words}");
        };
        refused(&|data| *data = json!([]), "expected an object");
        refused(&|data| *data = json!("Mail"), "expected an object");
        refused(&|data| drop(data["types"].take()), "invalid type: null");
        refused(&|data| data["primaryType"] = json!("Letter"), "Letter");
        refused(&|data| data["message"]["to"]["wallet"] = json!("Bob"), "Bob");
        let types = |data: &mut Value| data["types"]["Person"][0]["type"] = json!("Mail");
        refused(&types, "circular");
    }
}
