//! Which deviations from upstream a request enables.

use crate::v1::{self, Deviation, Profile};

impl v1::PlanOptions {
    /// Whether these options enable a deviation. A test of the service compares this with its capabilities
    /// (`DeviationInfo.on_by_default`).
    #[must_use]
    pub fn enables(&self, deviation: Deviation) -> bool {
        let is_in = |list: &[i32]| list.contains(&deviation.into());
        let is_on_by_default = deviation != Deviation::SurgeHonoursBackoff;
        let in_profile = is_on_by_default && self.profile() != Profile::UpstreamStrict;
        is_in(&self.enabled_deviations) || (in_profile && !is_in(&self.disabled_deviations))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_follow_the_profile() {
        let of = |profile: Profile, enabled: &[Deviation], disabled: &[Deviation]| v1::PlanOptions {
            profile: profile.into(),
            enabled_deviations: enabled.iter().map(|deviation| (*deviation).into()).collect(),
            disabled_deviations: disabled.iter().map(|deviation| (*deviation).into()).collect(),
            ..Default::default()
        };
        let by_uid = Deviation::DeletionsByUid;
        let surge = Deviation::SurgeHonoursBackoff;
        for (options, deviation, expected) in [
            (of(Profile::Unspecified, &[], &[]), by_uid, true),
            (of(Profile::Default, &[], &[by_uid]), by_uid, false),
            (of(Profile::UpstreamStrict, &[], &[]), by_uid, false),
            (of(Profile::UpstreamStrict, &[by_uid], &[]), by_uid, true),
            (of(Profile::Default, &[], &[]), surge, false),
            (of(Profile::Default, &[surge], &[]), surge, true),
        ] {
            assert_eq!(options.enables(deviation), expected, "{deviation:?} {options:?}");
        }
    }
}
