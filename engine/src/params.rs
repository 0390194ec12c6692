//! Proving keys that are resident in this worker process.
//!
//! A key is loaded once while all others who need it wait (two loads would hold its memory twice), is pinned while a
//! proof uses it, and is dropped when the daemon asks, at once or as soon as nobody uses it.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proofkeep_store::ids::Digest;
use proofkeep_store::records::{Failure, FailureClass};

use crate::kinds::Watch;

/// How long a wait for somebody else's load goes on between two signs of life.
const BEAT: Duration = Duration::from_secs(1);

type Report = Box<dyn Fn(Digest, u64) + Send + Sync>;

/// The resident keys, by circuit. Clones share them.
#[derive(Clone)]
pub struct Keys {
    inner: Arc<Inner>,
}

struct Inner {
    slots: Mutex<HashMap<Digest, Slot>>,
    changed: Condvar,
    report: Report,
}

struct Slot {
    /// `None` while somebody loads it.
    key: Option<(Arc<dyn Any + Send + Sync>, u64)>,
    /// Who uses it or is about to.
    pins: usize,
    /// Drop it as soon as nobody uses it.
    evict: bool,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.resident()).finish()
    }
}

impl Keys {
    /// No keys yet. `report` hears of each key that was loaded, with its bytes, and dropped, with 0.
    #[must_use]
    pub fn new(report: impl Fn(Digest, u64) + Send + Sync + 'static) -> Self {
        let inner = Inner {
            slots: Mutex::default(),
            changed: Condvar::new(),
            report: Box::new(report),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// The key of a circuit, loaded by `load` (which returns it with its resident bytes) if it isn't there. It stays
    /// until the result is dropped.
    ///
    /// # Errors
    /// What `load` says; or the watch's reason when it stopped the wait for another's load.
    pub fn pin<T: Send + Sync + 'static>(
        &self,
        circuit: Digest,
        watch: &dyn Watch,
        load: impl FnOnce() -> Result<(T, u64), Failure>,
    ) -> Result<Pinned<T>, Failure> {
        if let Some(key) = self.find(circuit, watch)? {
            return self.pinned(circuit, key);
        }
        // From here on the empty slot is ours; the guard takes it back on every way out but the good one.
        let loading = Loading { keys: self, circuit };
        let (key, bytes) = load()?;
        let key = Arc::new(key);
        let mut slots = self.inner.slots.lock();
        if let Some(slot) = slots.get_mut(&circuit) {
            slot.key = Some((key.clone(), bytes));
        }
        (self.inner.report)(circuit, bytes);
        drop(slots);
        self.inner.changed.notify_all();
        std::mem::forget(loading);
        Ok(Pinned {
            key,
            pin: Pin {
                circuit,
                keys: self.clone(),
            },
        })
    }

    /// A key that is there, pinned; or `None`, and the caller has to load it.
    fn find(
        &self,
        circuit: Digest,
        watch: &dyn Watch,
    ) -> Result<Option<Arc<dyn Any + Send + Sync>>, Failure> {
        let mut slots = self.inner.slots.lock();
        loop {
            match slots.get_mut(&circuit) {
                None => {
                    slots.insert(
                        circuit,
                        Slot {
                            key: None,
                            pins: 1,
                            evict: false,
                        },
                    );
                    return Ok(None);
                }
                Some(Slot {
                    key: Some((key, _)),
                    pins,
                    ..
                }) => {
                    *pins += 1;
                    return Ok(Some(Arc::clone(key)));
                }
                Some(Slot { key: None, .. }) => {}
            }
            self.inner.changed.wait_for(&mut slots, BEAT);
            if let Some(failure) = watch.stopped() {
                return Err(failure);
            }
            watch.progress(0);
        }
    }

    fn pinned<T: Send + Sync + 'static>(
        &self,
        circuit: Digest,
        key: Arc<dyn Any + Send + Sync>,
    ) -> Result<Pinned<T>, Failure> {
        match key.downcast() {
            Ok(key) => Ok(Pinned {
                key,
                pin: Pin {
                    circuit,
                    keys: self.clone(),
                },
            }),
            Err(key) => {
                drop(key);
                self.unpin(circuit);
                Err(Failure::coded(
                    FailureClass::ParamsMismatch,
                    "key-kind",
                    format!("the resident key of circuit {circuit} belongs to another proof kind"),
                ))
            }
        }
    }

    /// Drops a key, now or as soon as nobody uses it; reported either way, also when it wasn't there.
    pub fn evict(&self, circuit: Digest) {
        let mut slots = self.inner.slots.lock();
        match slots.get_mut(&circuit) {
            Some(slot) if slot.pins > 0 => slot.evict = true,
            _ => {
                slots.remove(&circuit);
                (self.inner.report)(circuit, 0);
            }
        }
    }

    /// Circuits whose keys are resident, with their bytes.
    #[must_use]
    pub fn resident(&self) -> Vec<(Digest, u64)> {
        let slots = self.inner.slots.lock();
        slots
            .iter()
            .filter_map(|(circuit, slot)| slot.key.as_ref().map(|(_, bytes)| (*circuit, *bytes)))
            .collect()
    }

    fn unpin(&self, circuit: Digest) {
        let mut slots = self.inner.slots.lock();
        let Some(slot) = slots.get_mut(&circuit) else {
            return;
        };
        slot.pins -= 1;
        if slot.pins == 0 && slot.evict {
            slots.remove(&circuit);
            (self.inner.report)(circuit, 0);
        }
    }
}

/// A load that has not ended well.
struct Loading<'k> {
    keys: &'k Keys,
    circuit: Digest,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let evicted = self
            .keys
            .inner
            .slots
            .lock()
            .remove(&self.circuit)
            .is_some_and(|slot| slot.evict);
        if evicted {
            (self.keys.inner.report)(self.circuit, 0);
        }
        // One of those who wait loads it now.
        self.keys.inner.changed.notify_all();
    }
}

/// A resident key in use.
pub struct Pinned<T> {
    // Dropped before the pin, so that the memory is free when the slot goes and that is reported.
    key: Arc<T>,
    pin: Pin,
}

struct Pin {
    circuit: Digest,
    keys: Keys,
}

impl<T> fmt::Debug for Pinned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned")
            .field("circuit", &self.pin.circuit)
            .finish_non_exhaustive()
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.key
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.keys.unpin(self.circuit);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Free;

    impl Watch for Free {
        fn progress(&self, _permille: u16) {}
        fn stopped(&self) -> Option<Failure> {
            None
        }
    }

    fn keys() -> (Keys, Arc<Mutex<Vec<u64>>>) {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&reports);
        (Keys::new(move |_, bytes| heard.lock().push(bytes)), reports)
    }

    const CIRCUIT: Digest = Digest([7; 32]);

    #[test]
    fn r15_one_load_while_others_wait() {
        let (keys, reports) = keys();
        let (loads, start) = (AtomicU32::new(0), Barrier::new(8));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let key = keys
                        .pin(CIRCUIT, &Free, || {
                            loads.fetch_add(1, Ordering::SeqCst);
                            Ok((42u32, 1000))
                        })
                        .unwrap();
                    assert_eq!(*key, 42);
                });
            }
        });
        assert_eq!(loads.load(Ordering::SeqCst), 1);
        assert_eq!(*reports.lock(), [1000]);
        assert_eq!(keys.resident(), [(CIRCUIT, 1000)]);
    }

    #[test]
    fn a_failed_load_lets_the_next_one_try() {
        let (keys, reports) = keys();
        let failure = Failure::new(FailureClass::DeviceError, "no");
        assert_eq!(
            keys.pin::<u32>(CIRCUIT, &Free, || Err(failure.clone()))
                .unwrap_err(),
            failure
        );
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            keys.pin::<u32>(CIRCUIT, &Free, || panic!("at the disco"))
        }));
        assert!(panicked.is_err());
        assert_eq!(*keys.pin(CIRCUIT, &Free, || Ok((1u32, 5))).unwrap(), 1);
        assert_eq!(*reports.lock(), [5]);
    }

    #[test]
    fn a_key_in_use_goes_when_its_last_user_goes() {
        let (keys, reports) = keys();
        let first = keys.pin(CIRCUIT, &Free, || Ok((1u32, 5))).unwrap();
        let second = keys.pin::<u32>(CIRCUIT, &Free, || panic!("it is there")).unwrap();
        keys.evict(CIRCUIT);
        drop(first);
        assert_eq!(*reports.lock(), [5], "still in use");
        drop(second);
        assert_eq!(*reports.lock(), [5, 0]);
        keys.evict(CIRCUIT);
        assert_eq!(*reports.lock(), [5, 0, 0], "an eviction is always answered");
        assert!(
            keys.pin::<String>(CIRCUIT, &Free, || Ok((String::new(), 9)))
                .is_ok()
        );
        keys.evict(CIRCUIT);
        assert!(keys.resident().is_empty());
    }

    #[test]
    fn a_key_of_another_kind_is_refused_and_not_kept_pinned() {
        let (keys, reports) = keys();
        drop(keys.pin(CIRCUIT, &Free, || Ok((1u32, 5))).unwrap());
        assert!(keys.pin(CIRCUIT, &Free, || Ok((String::new(), 9))).is_err());
        keys.evict(CIRCUIT);
        assert_eq!(*reports.lock(), [5, 0]);
    }
}
