//! Names of methods that a caller may have meant.

/// Letters that may be wrong.
const WRONG_LETTERS: usize = 2;

/// The longest name that is compared with others.
const LONGEST_NAME: usize = 64;

/// The method that a caller may have meant by a name that none has: the same one of another
/// namespace, or the most similar one.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let behind = |name: &str| name.split_once('_').map(|(_, rest)| rest.to_owned());
    let rest = behind(name);
    let distance = |known: &str| {
        if rest.is_some() && behind(known) == rest {
            return Some(0);
        }
        if known.len().abs_diff(name.len()) > WRONG_LETTERS {
            return None;
        }
        Some(strsim::osa_distance(name, known)).filter(|wrong| *wrong <= WRONG_LETTERS)
    };
    let near = known.filter_map(|known| Some((distance(known)?, known)));
    near.min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_mistyped_name_leads_to_the_right_one() {
        let known = ["eth_call", "eth_getBlockByNumber", "anvil_setNonce", "evm_mine"];
        let check = |name: &str, expected| {
            assert_eq!(nearest(name, known.into_iter()), expected, "{name}");
        };
        check("eth_getBlockByNumbr", Some("eth_getBlockByNumber"));
        check("eth_getblockByNumber", Some("eth_getBlockByNumber"));
        check("tenderly_setNonce", Some("anvil_setNonce"));
        check("eth_blockNumber", None);
        check("call", None);
        check("", None);
        check(&"e".repeat(1 << 20), None);
    }
}
