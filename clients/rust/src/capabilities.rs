//! What a replica has said that it knows.

use nodewise_proto::v1;

/// What a replica knows, as it said in the response of GetCapabilities.
#[derive(Debug, Default)]
pub(super) struct Capabilities {
    /// The kinds of workload that it plans for.
    pub(super) kinds: Vec<String>,
    /// What it knows besides.
    pub(super) features: Vec<String>,
}

impl Capabilities {
    /// Whether it has this feature.
    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }
}

impl From<v1::GetCapabilitiesResponse> for Capabilities {
    fn from(response: v1::GetCapabilitiesResponse) -> Self {
        Self {
            kinds: response.workload_kinds,
            features: response.features,
        }
    }
}
