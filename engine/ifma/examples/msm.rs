//! Multi-scalar multiplication against blst's own, on one thread, rounds interleaved, medians of processor time.
//!
//! `cargo run --release -p proofkeep-ifma --example msm -- [least log2, 8] [most log2, 18] [rounds, 5] [g1 or g2, both]`
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

#[cfg(target_arch = "x86_64")]
mod bench {
    use std::ops::ControlFlow;
    use std::time::Duration;

    use blst::*;
    use proofkeep_ifma::{G1, G2, Ifma, msm};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha20Rng;

    /// Processor time of this thread.
    fn now() -> Duration {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a value that lives through the call.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    fn median(mut times: Vec<Duration>) -> f64 {
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64()
    }

    fn scalar(rng: &mut ChaCha20Rng) -> [u8; 32] {
        let mut bytes: [u8; 32] = rng.r#gen();
        bytes[31] &= 0x3f;
        bytes
    }

    macro_rules! compare {
        ($name:ident, $group:ty, $affine:ident, $point:ident, $generator:ident, $mult:ident, $batch:ident,
         $add:ident, $double:ident, $pippenger:ident, $scratch:ident, $to_affine:ident) => {
            pub fn $name(ifma: Ifma, least: u32, most: u32, rounds: usize) {
                let mut rng = ChaCha20Rng::seed_from_u64(1);
                let mut jacobian = vec![$point::default(); 1 << most];
                // SAFETY for every call into blst here: the pointers are to values and slices that live through it.
                unsafe {
                    $mult(
                        &mut jacobian[0],
                        $generator(),
                        scalar(&mut rng).as_ptr(),
                        255,
                    );
                    let step = jacobian[0];
                    for k in 1..jacobian.len() {
                        let mut next = $point::default();
                        $double(&mut next, &jacobian[k - 1]);
                        $add(&mut jacobian[k], &next, &step);
                    }
                }
                let mut points = vec![$affine::default(); 1 << most];
                let list = [jacobian.as_ptr(), std::ptr::null()];
                unsafe { $batch(points.as_mut_ptr(), list.as_ptr(), jacobian.len()) };
                let scalars: Vec<_> = (0..1 << most).map(|_| scalar(&mut rng)).collect();
                for log2 in least..=most {
                    let count = 1 << log2;
                    let (points, scalars) = (&points[..count], &scalars[..count]);
                    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
                    for _ in 0..rounds {
                        let start = now();
                        let mut expected = $point::default();
                        let list = [points.as_ptr(), std::ptr::null()];
                        let numbers = [scalars.as_ptr().cast(), std::ptr::null()];
                        let mut scratch = vec![0u64; unsafe { $scratch(count) } / 8];
                        unsafe {
                            $pippenger(
                                &mut expected,
                                list.as_ptr(),
                                count,
                                numbers.as_ptr(),
                                255,
                                scratch.as_mut_ptr(),
                            );
                        }
                        theirs.push(now() - start);
                        let start = now();
                        let got = msm::<$group>(ifma, None, points, &scalars, &|_, _| {
                            ControlFlow::Continue(())
                        })
                        .unwrap();
                        ours.push(now() - start);
                        let (mut a, mut b) = ($affine::default(), $affine::default());
                        unsafe {
                            $to_affine(&mut a, &expected);
                            $to_affine(&mut b, &got);
                        }
                        assert_eq!(a, b);
                    }
                    let (theirs, ours) = (median(theirs), median(ours));
                    println!(
                        "{} 2^{log2:<2}  blst {:9.3} ms   ifma {:9.3} ms  {:7.1} ns a point   {:.2}x",
                        stringify!($group),
                        1e3 * theirs,
                        1e3 * ours,
                        1e9 * ours / count as f64,
                        theirs / ours
                    );
                }
            }
        };
    }

    compare!(
        first,
        G1,
        blst_p1_affine,
        blst_p1,
        blst_p1_generator,
        blst_p1_mult,
        blst_p1s_to_affine,
        blst_p1_add_or_double,
        blst_p1_double,
        blst_p1s_mult_pippenger,
        blst_p1s_mult_pippenger_scratch_sizeof,
        blst_p1_to_affine
    );
    compare!(
        second,
        G2,
        blst_p2_affine,
        blst_p2,
        blst_p2_generator,
        blst_p2_mult,
        blst_p2s_to_affine,
        blst_p2_add_or_double,
        blst_p2_double,
        blst_p2s_mult_pippenger,
        blst_p2s_mult_pippenger_scratch_sizeof,
        blst_p2_to_affine
    );
}

#[cfg(target_arch = "x86_64")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |index: usize, default: u32| arguments.get(index).map_or(default, |word| word.parse().unwrap());
    let (least, most, rounds) = (number(0, 8), number(1, 18), number(2, 5) as usize);
    let Some(ifma) = proofkeep_ifma::Ifma::detect() else {
        println!("this processor has no AVX-512 IFMA");
        return;
    };
    let group = arguments.get(3).map_or("both", String::as_str);
    if group != "g2" {
        bench::first(ifma, least, most, rounds);
    }
    if group != "g1" {
        bench::second(ifma, least, most, rounds);
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("this processor has no AVX-512 IFMA");
}
