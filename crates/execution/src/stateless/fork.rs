//! The forks whose blocks have a stateless input, and the ids of its schemas.

use super::SszProblem;
use alloy_hardforks::EthereumHardfork;

/// Revision of the input without public keys: of tests-zkevm v21.0.1 on.
pub const REVISION: u8 = 1;

/// Revision of the older input with public keys, of tests-zkevm v0.8. It is the same number; the
/// first offset tells the two apart.
pub const REVISION_WITH_KEYS: u8 = 1;

/// A fork whose blocks have a stateless input, by its number in `ProtocolFork` of execution-specs
/// (`forks/amsterdam/stateless.py` at c1200883).
///
/// That specification defines Amsterdam's schema alone. The others are those of provers of
/// mainnet: the same containers with the fields that the fork's blocks have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub enum ProtocolFork {
    Paris = 0x0e,
    Shanghai = 0x0f,
    Cancun = 0x10,
    Prague = 0x11,
    Osaka = 0x12,
    Bpo1 = 0x13,
    Bpo2 = 0x14,
    #[default]
    Amsterdam = 0x15,
}

impl ProtocolFork {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::Paris,
        Self::Shanghai,
        Self::Cancun,
        Self::Prague,
        Self::Osaka,
        Self::Bpo1,
        Self::Bpo2,
        Self::Amsterdam,
    ];

    /// The fork of these rules; `None` before Paris, and where the specification has no number yet.
    pub const fn of(rules: EthereumHardfork) -> Option<Self> {
        Some(match rules {
            EthereumHardfork::Paris => Self::Paris,
            EthereumHardfork::Shanghai => Self::Shanghai,
            EthereumHardfork::Cancun => Self::Cancun,
            EthereumHardfork::Prague => Self::Prague,
            EthereumHardfork::Osaka => Self::Osaka,
            EthereumHardfork::Bpo1 => Self::Bpo1,
            EthereumHardfork::Bpo2 => Self::Bpo2,
            EthereumHardfork::Amsterdam => Self::Amsterdam,
            _ => return None,
        })
    }

    /// The id of the schema of an input of this fork: the fork's number, and the revision.
    pub const fn schema_id(self, revision: u8) -> u16 {
        u16::from_be_bytes([self as u8, revision])
    }

    /// The fork and the revision of a schema id.
    ///
    /// # Errors
    /// When the fork has no schema.
    pub(super) fn of_schema(id: u16) -> Result<(Self, u8), SszProblem> {
        let [number, revision] = id.to_be_bytes();
        let fork = Self::ALL.into_iter().find(|fork| *fork as u8 == number);
        Ok((fork.ok_or(SszProblem::Schema(id))?, revision))
    }
}
