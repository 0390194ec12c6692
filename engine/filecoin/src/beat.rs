//! Published code works for long without a word, and hears none: somebody has to say that it goes on, and to stop it.

use std::sync::mpsc;
use std::time::Duration;

use proofkeep_engine::kinds::Watch;
use proofkeep_groth16::control::Halt;
use proofkeep_store::records::{Failure, FailureClass};

/// How often.
const BEAT: Duration = Duration::from_secs(1);
/// After this many beats nothing more is said: work that takes so long hangs.
const MOST: u32 = 3600;

/// Runs `work` on threads of its own, shows progress from another one meanwhile, and sets the halt of those threads when the
/// watch says so: the threads are its own so that no other synthesis is halted.
///
/// # Errors
/// The watch's reason, whatever the work came to; or the system gave no threads.
pub fn watched<T: Send>(
    watch: &dyn Watch,
    threads: usize,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let halt = Halt::default();
    let of_threads = halt.clone();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("synthesis-{index}"))
        .start_handler(move |_| of_threads.enter_thread())
        .build()
        .map_err(|error| Failure::coded(FailureClass::DeviceError, "no-thread", error.to_string()))?;
    let (done, wait) = mpsc::channel::<()>();
    let made = std::thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..MOST {
                if watch.stopped().is_some() {
                    halt.set();
                }
                if wait.recv_timeout(BEAT) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                watch.progress(100);
            }
        });
        let made = pool.install(work);
        drop(done);
        made
    });
    watch.stopped().map_or(Ok(made), Err)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicBool, Ordering};

    use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
    use blstrs::Scalar;
    use ff::Field;
    use proofkeep_groth16::matrices::Matrices;
    use rayon::prelude::*;

    use super::*;
    use crate::witness::witness_of;

    /// Stopped once somebody said so.
    #[derive(Default)]
    struct Stoppable(AtomicBool);

    impl Watch for Stoppable {
        fn progress(&self, _permille: u16) {}

        fn stopped(&self) -> Option<Failure> {
            let failure = || Failure::new(FailureClass::Cancelled, "no more");
            self.0.load(Ordering::Relaxed).then(failure)
        }
    }

    /// A circuit that would never end, synthesized in parts as that of a WindowPoSt; it asks for its own end.
    struct Endless<'w>(&'w Stoppable);

    impl Circuit<Scalar> for Endless<'_> {
        fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
            let forever = |cs: &mut CS| {
                for wire in 0u64.. {
                    cs.alloc(|| wire.to_string(), || Ok(Scalar::ONE))?;
                    self.0.0.store(true, Ordering::Relaxed);
                }
                Ok(())
            };
            if !CS::is_extensible() {
                return forever(cs);
            }
            (0..3).into_par_iter().try_for_each(|_| forever(&mut CS::new()))
        }
    }

    #[test]
    fn a_synthesis_is_stopped_inside_the_circuit_in_each_of_its_parts() {
        let watch = Stoppable::default();
        let stopped = watched(&watch, 2, || witness_of(Endless(&watch)).map(drop));
        assert_eq!(stopped.unwrap_err(), watch.stopped().unwrap());
        let watch = Stoppable::default();
        let stopped = watched(&watch, 2, || Matrices::of_circuit(Endless(&watch)).map(drop));
        assert_eq!(stopped.unwrap_err(), watch.stopped().unwrap());
        // Nobody else is halted.
        let free = Stoppable::default();
        let one = |cs: &mut dyn FnMut() -> Result<(), SynthesisError>| cs();
        assert!(
            watched(&free, 1, || one(&mut || Halt::of_this_thread().check()))
                .unwrap()
                .is_ok()
        );
    }
}
