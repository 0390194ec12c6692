//! The tree shapes of the sectors: each one is a type of its own to the published crates, and a copy of their circuits in
//! this build.

/// Evaluates an expression in which `$tree` is the tree shape of sectors of `$size` bytes. All sizes that
/// [`crate::sector::chosen`] lets through have one.
macro_rules! with_tree {
    ($size:expr, $tree:ident => $body:expr) => {{
        let size: u64 = $size;
        if filecoin_proofs::constants::is_sector_shape_base(size) {
            type $tree = filecoin_proofs::constants::SectorShapeBase;
            $body
        } else if filecoin_proofs::constants::is_sector_shape_sub2(size) {
            type $tree = filecoin_proofs::constants::SectorShapeSub2;
            $body
        } else if filecoin_proofs::constants::is_sector_shape_sub8(size) {
            type $tree = filecoin_proofs::constants::SectorShapeSub8;
            $body
        } else {
            type $tree = filecoin_proofs::constants::SectorShapeTop2;
            $body
        }
    }};
}

pub(crate) use with_tree;
