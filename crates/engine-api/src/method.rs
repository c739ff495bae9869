//! The methods of JSON-RPC whose versions follow the forks, and the paths of REST.

use crate::Fork;
use Fork::{Amsterdam, Cancun, Osaka, Paris, Prague, Shanghai};

/// The beginning of all paths of the REST API.
pub const REST_BASE: &str = "/engine/v1/";

/// The only method that its own answer does not name.
pub const EXCHANGE_CAPABILITIES: &str = "engine_exchangeCapabilities";

/// Exchanges the names and versions of client and server.
pub const GET_CLIENT_VERSION: &str = "engine_getClientVersionV1";

/// A method of the Engine API that has a version for each change of its payloads or attributes.
///
/// ```
/// use deponent_engine_api::{EngineMethod, Fork};
///
/// let method = EngineMethod::NewPayloadWithWitness;
/// assert_eq!(method.name(method.version(Fork::Osaka)), "engine_newPayloadWithWitnessV4");
/// assert_eq!(method.forks(4), [Fork::Prague, Fork::Osaka]);
/// let (method, version) = EngineMethod::named("engine_newPayloadV5").expect("there is one");
/// assert_eq!(method.forks(version), [Fork::Amsterdam]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineMethod {
    /// Validates a payload.
    NewPayload,
    /// Validates a payload and answers with the witness of a VALID one. Not in the specification:
    /// geth's and ours.
    NewPayloadWithWitness,
    /// Runs a payload on a witness that is sent with it. Not in the specification: geth's and ours.
    ExecuteStatelessPayload,
    /// Makes a block the head, and may begin to build on it.
    ForkchoiceUpdated,
    /// Has the payload that is built answered with its witness. Not in the specification: geth's
    /// and ours.
    ForkchoiceUpdatedWithWitness,
    /// Fetches the payload that was built.
    GetPayload,
}

impl EngineMethod {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NewPayload,
        Self::NewPayloadWithWitness,
        Self::ExecuteStatelessPayload,
        Self::ForkchoiceUpdated,
        Self::ForkchoiceUpdatedWithWitness,
        Self::GetPayload,
    ];

    /// The names of all versions, from the first on.
    pub const fn names(self) -> &'static [&'static str] {
        macro_rules! names {
            ($name:literal: $($version:literal)*) => { &[$(concat!($name, "V", $version)),*] };
        }
        match self {
            Self::NewPayload => names!("engine_newPayload": 1 2 3 4 5),
            Self::NewPayloadWithWitness => names!("engine_newPayloadWithWitness": 1 2 3 4 5),
            Self::ExecuteStatelessPayload => names!("engine_executeStatelessPayload": 1 2 3 4 5),
            Self::ForkchoiceUpdated => names!("engine_forkchoiceUpdated": 1 2 3 4),
            Self::ForkchoiceUpdatedWithWitness => {
                names!("engine_forkchoiceUpdatedWithWitness": 1 2 3 4)
            }
            Self::GetPayload => names!("engine_getPayload": 1 2 3 4 5 6),
        }
    }

    /// The name of one version, from 1 on.
    ///
    /// # Panics
    /// When there is no such version.
    pub const fn name(self, version: u8) -> &'static str {
        self.names()[version as usize - 1]
    }

    /// The method and the version of this name.
    pub fn named(name: &str) -> Option<(Self, u8)> {
        Self::ALL.into_iter().find_map(|method| {
            let index = method.names().iter().position(|known| *known == name)?;
            Some((method, index as u8 + 1))
        })
    }

    /// The version that takes, or gives, what a block of `fork` has. Of `engine_getPayload` that is
    /// one which also gives the block's value.
    pub const fn version(self, fork: Fork) -> u8 {
        match self {
            Self::NewPayload | Self::NewPayloadWithWitness | Self::ExecuteStatelessPayload => {
                match fork {
                    Paris => 1,
                    Shanghai => 2,
                    Cancun => 3,
                    Prague | Osaka => 4,
                    Amsterdam => 5,
                }
            }
            Self::ForkchoiceUpdated | Self::ForkchoiceUpdatedWithWitness => match fork {
                Paris => 1,
                Shanghai => 2,
                Cancun | Prague | Osaka => 3,
                Amsterdam => 4,
            },
            Self::GetPayload => match fork {
                Paris | Shanghai => 2,
                Cancun => 3,
                Prague => 4,
                Osaka => 5,
                Amsterdam => 6,
            },
        }
    }

    /// The forks whose payloads, or attributes, a version takes or gives, in order. The first
    /// version of `engine_newPayload` is not refused for a fork: a later payload lacks fields
    /// there, and is invalid. The specification does not bound the first version of
    /// `engine_getPayload`, but its payload has no withdrawals.
    pub const fn forks(self, version: u8) -> &'static [Fork] {
        match (self, version) {
            (Self::NewPayload | Self::NewPayloadWithWitness | Self::ExecuteStatelessPayload, 1) => {
                &Fork::ALL
            }
            (_, 1) => &[Paris],
            (_, 2) => &[Paris, Shanghai],
            (Self::ForkchoiceUpdated | Self::ForkchoiceUpdatedWithWitness, 3) => {
                &[Cancun, Prague, Osaka]
            }
            (_, 3) => &[Cancun],
            (Self::GetPayload, 4) => &[Prague],
            (Self::GetPayload, 5) => &[Osaka],
            (Self::NewPayload | Self::NewPayloadWithWitness | Self::ExecuteStatelessPayload, 4) => {
                &[Prague, Osaka]
            }
            _ => &[Amsterdam],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_back_to_its_method() {
        for method in EngineMethod::ALL {
            for version in 1..=method.names().len() as u8 {
                assert_eq!(EngineMethod::named(method.name(version)), Some((method, version)));
                assert!(method.name(version).ends_with(&format!("V{version}")));
            }
        }
        assert_eq!(EngineMethod::named("engine_newPayloadV6"), None);
        assert_eq!(EngineMethod::named("engine_newPayload"), None);
    }

    #[test]
    fn the_version_for_a_fork_takes_that_fork() {
        for method in EngineMethod::ALL {
            for fork in Fork::ALL {
                let version = method.version(fork);
                assert!(method.forks(version).contains(&fork), "{method:?} V{version} {fork}");
            }
            for version in 1..=method.names().len() as u8 {
                let forks = method.forks(version);
                let start = Fork::ALL.iter().position(|fork| *fork == forks[0]).unwrap();
                assert_eq!(forks, &Fork::ALL[start..start + forks.len()], "in order, no gaps");
            }
        }
    }
}
