//! The check of bellperson's parameters.

use std::ops::ControlFlow;

use proofkeep_formats::params::Params;

use super::CheckError;
use super::points::{Form, Group, Section, check_sections};
use crate::backend::Backend;
use crate::curve::{Curve, G1};
use crate::verify::product_is_one;
use crate::vk::{UnfinishedSetup, VerifyingKey, VkError, check_point};

/// The lists of points, in the order in which they lie in the file.
fn sections<'p>(params: &Params<'p>) -> [Section<'p>; 5] {
    let section = |name, group, bytes| Section {
        name,
        group,
        bytes,
        form: Form::Uncompressed,
    };
    [
        section("list H", Group::G1, params.h),
        section("list L", Group::G1, params.l),
        section("list A", Group::G1, params.a),
        section("list B in G1", Group::G1, params.b1),
        section("list B in G2", Group::G2, params.b2),
    ]
}

/// How many points [`check_params_points`] looks at.
pub fn params_point_count(params: &Params<'_>) -> u64 {
    sections(params).iter().map(Section::len).sum()
}

/// Checks the points of the verifying key, as [`super::check_vk`] does for a `.zkey`. The generators that parameters were
/// made with aren't known (bellperson draws them), so β and δ can't each be held against the other group, only the ratio
/// of the two: e(β₁, δ₂) = e(δ₁, β₂).
///
/// # Errors
/// [`CheckError::VerifyingKey`] or [`CheckError::Unequal`].
pub fn check_params_vk(params: &Params<'_>, unfinished: UnfinishedSetup) -> Result<VerifyingKey, CheckError> {
    let vk = VerifyingKey::from_bellperson_bytes_with(params.vk, unfinished)?;
    let in_g1 = |bytes: &[u8], name: &str| {
        G1::decode(bytes).ok_or_else(|| VkError::NotOnCurve {
            point: name.to_owned(),
        })
    };
    let (beta1, delta1) = (in_g1(params.beta1, "β₁")?, in_g1(params.delta1, "δ₁")?);
    check_point::<G1>(&beta1, || "β₁".to_owned())?;
    check_point::<G1>(&delta1, || "δ₁".to_owned())?;
    if product_is_one(&[(&beta1, &vk.delta2), (&G1::neg_affine(&delta1), &vk.beta2)]) {
        Ok(vk)
    } else {
        Err(CheckError::Unequal {
            name: "the ratio of β to δ",
        })
    }
}

/// Checks every point of the five lists from number `from` on: uncompressed, canonical, on the curve, in the subgroup,
/// not the identity. As [`super::check_points`] in everything else.
///
/// # Errors
/// [`CheckError::Point`] or [`CheckError::Stopped`].
pub fn check_params_points(
    params: &Params<'_>,
    from: u64,
    backend: &dyn Backend,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(), CheckError> {
    check_sections(&sections(params), from, backend, progress)
}
