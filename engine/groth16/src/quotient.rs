//! The quotient `h = (a·b − c)/(xⁿ − 1)` in the form that a key's H basis takes, with six transforms.
//!
//! `a` and `b` are the values of `A·w` and `B·w` over the domain; `c = a∘b` there, for a witness that satisfies the
//! constraints. On the odd coset `xⁿ = −1`.
//!
//! * snarkjs's basis takes the values of `a·b − c` on the odd coset: three interpolations, three evaluations.
//! * bellperson's basis takes the coefficients of `h`. Let `q` be the upper and `s` the lower half of `a·b`; then
//!   `c = s + q` (where `xⁿ = 1`) and `p = s − q` (where `xⁿ = −1`), and `h = q = (c − p)/2`. So: interpolate `a`, `b`
//!   and `c`, evaluate `a` and `b` on the coset, interpolate `p = a∘b` from there.

use blstrs::Scalar;
use ff::Field;
use rayon::prelude::*;

use crate::backend::Backend;
use crate::control::{Control, Stopped};
use crate::domain::Domain;
use crate::field::{from_montgomery, wipe};

/// What the H bases of a key are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HBasis {
    /// `L_(2i+1)(τ)/δ` over the domain of twice the size: scalars are the values of `a·b − c` on the odd coset.
    OddCoset,
    /// `τ^j·(τⁿ − 1)/δ` for `j < n − 1`: scalars are the coefficients of the quotient.
    Powers,
}

const CHUNK: usize = 2048;

/// The scalars of the H bases, as canonical limbs. Takes the values of `A·w` and `B·w` and uses their memory; what is
/// not returned is wiped. `control` is asked after each of the six transforms.
pub(crate) fn quotient<B: Backend + ?Sized>(
    backend: &B,
    domain: &Domain,
    mut a: Vec<Scalar>,
    mut b: Vec<Scalar>,
    basis: HBasis,
    control: &dyn Control,
) -> Result<Vec<Scalar>, Stopped> {
    let mut c = vec![Scalar::ZERO; a.len()];
    on_threads(backend, || {
        c.par_iter_mut()
            .zip(&a)
            .zip(&b)
            .with_min_len(CHUNK)
            .for_each(|((c, a), b)| *c = *a * b);
    });
    let finished = in_basis(backend, domain, [&mut a, &mut b, &mut c], basis, control);
    wipe(&mut c);
    let (result, mut spent) = match basis {
        HBasis::OddCoset => (a, b),
        HBasis::Powers => (b, a),
    };
    wipe(&mut spent);
    finished.map(|()| result)
}

/// Leaves the result in `a` (odd coset) or in `b` (powers).
fn in_basis<B: Backend + ?Sized>(
    backend: &B,
    domain: &Domain,
    [a, b, c]: [&mut [Scalar]; 3],
    basis: HBasis,
    control: &dyn Control,
) -> Result<(), Stopped> {
    let mut transforms = 0;
    let mut step = || {
        transforms += 1;
        if control.progress(transforms, 6).is_break() {
            Err(Stopped)
        } else {
            Ok(())
        }
    };
    let mut to_coset = |values: &mut [Scalar]| {
        backend.interpolate(domain, values);
        step()?;
        on_threads(backend, || domain.scale_to_coset(values));
        backend.evaluate(domain, values);
        step()
    };
    to_coset(a)?;
    to_coset(b)?;
    match basis {
        HBasis::OddCoset => {
            to_coset(c)?;
            on_threads(backend, || {
                a.par_iter_mut()
                    .zip(b)
                    .zip(c)
                    .with_min_len(CHUNK)
                    .for_each(|((a, b), c)| *a = from_montgomery(&(*a * *b - *c)));
            });
        }
        HBasis::Powers => {
            on_threads(backend, || {
                a.par_iter_mut()
                    .zip(&*b)
                    .with_min_len(CHUNK)
                    .for_each(|(a, b)| *a *= b);
            });
            backend.interpolate(domain, a);
            step()?;
            backend.interpolate(domain, c);
            step()?;
            on_threads(backend, || halves(domain, c, a, b));
        }
    }
    Ok(())
}

/// `h_j = (c_j − p_j·c^−j)/2n` in natural order, from `n·c` and `n·p(c·x)` in bit-reversed order.
fn halves(domain: &Domain, c: &[Scalar], p: &[Scalar], h: &mut [Scalar]) {
    let n = domain.size();
    // Two has an inverse in an odd field.
    let half = Scalar::from(2u64).invert().unwrap_or(Scalar::ONE);
    let inverse_n = domain.coset_factor(0);
    h.par_iter_mut()
        .enumerate()
        .with_min_len(CHUNK)
        .for_each(|(j, h)| {
            let place = domain.place(j);
            // c^n = −1, so −c^−j = c^(n−j).
            let twisted = if j == 0 {
                -(p[place] * inverse_n)
            } else {
                p[place] * domain.coset_factor(n - j)
            };
            *h = from_montgomery(&((c[place] * inverse_n + twisted) * half));
        });
}

/// Runs `work` on the backend's threads.
pub(crate) fn on_threads<B: Backend + ?Sized>(backend: &B, work: impl FnOnce() + Send) {
    let mut work = Some(work);
    backend.on_threads(&mut || {
        if let Some(work) = work.take() {
            work();
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::ops::ControlFlow;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    use super::*;
    use crate::backend::{BlstBackend, CpuBackend};
    use crate::control::Unwatched;
    use crate::field::Root;

    fn values(rng: &mut ChaCha20Rng, count: usize, kind: usize) -> Vec<Scalar> {
        (0..count)
            .map(|_| match kind {
                0 => Scalar::random(&mut *rng),
                1 => -Scalar::ONE,
                2 => Scalar::ZERO,
                _ => match rng.gen_range(0..4) {
                    0 => Scalar::ZERO,
                    1 => Scalar::ONE,
                    2 => -Scalar::ONE,
                    _ => Scalar::random(&mut *rng),
                },
            })
            .collect()
    }

    #[test]
    fn every_backend_finds_the_same_quotient() {
        let seed = std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| time.as_nanos() as u64);
        eprintln!("seed {seed}");
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let slow = BlstBackend::new(2).unwrap();
        for log2 in [0, 3, 4, 7, 8, 9, 10, 11, 12, 14] {
            for root in [Root::Snarkjs, Root::Bellperson] {
                let domain = Domain::new(log2, root).unwrap();
                for kind in 0..4 {
                    let a = values(&mut rng, domain.size(), kind);
                    let b = values(&mut rng, domain.size(), kind % 2 * 3);
                    for basis in [HBasis::OddCoset, HBasis::Powers] {
                        let expected =
                            quotient(&slow, &domain, a.clone(), b.clone(), basis, &Unwatched).unwrap();
                        for name in CpuBackend::possible() {
                            let backend = CpuBackend::named(name, 1 + kind % 3).unwrap();
                            let got = backend
                                .quotient(&domain, a.clone(), b.clone(), basis, &Unwatched)
                                .unwrap();
                            assert!(
                                got == expected,
                                "{name}, 2^{log2}, {root:?}, {basis:?}, kind {kind}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_quotient_stops_after_the_transform_in_work() {
        let domain = Domain::new(9, Root::Snarkjs).unwrap();
        for name in CpuBackend::possible() {
            let backend = CpuBackend::named(name, 2).unwrap();
            for basis in [HBasis::OddCoset, HBasis::Powers] {
                for last in 1..=6 {
                    let asked = AtomicU64::new(0);
                    let control = |done: u64, total: u64| {
                        assert_eq!((done, total), (asked.fetch_add(1, Ordering::SeqCst) + 1, 6));
                        if done == last {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        }
                    };
                    let ones = vec![Scalar::ONE; domain.size()];
                    let stopped = backend.quotient(&domain, ones.clone(), ones, basis, &control);
                    assert_eq!(stopped.err(), Some(Stopped));
                    assert_eq!(
                        asked.load(Ordering::SeqCst),
                        last,
                        "{name}: nothing ran after the stop"
                    );
                }
            }
        }
    }
}
