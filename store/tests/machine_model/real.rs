//! The same commands through the commit thread of a real store, opened again at random.

use proofkeep_store::clock::Clock;
use proofkeep_store::event::Event;
use proofkeep_store::ids::Millis;
use proofkeep_store::machine::{Command, Machine};
use proofkeep_store::view::{MemoryView, record};
use proofkeep_store::{CommitError, Handle, Limits, Options, Store, keys};

use super::commands::{boot_open, command};
use super::{Twin, cases, random, seed};

/// Real runs made at least; each commit is a real sync.
const FLOOR: u32 = 3;

struct Real {
    data: tempfile::TempDir,
    store: Option<(Store, Handle)>,
}

impl Real {
    fn open(&mut self) {
        self.store = None;
        let options = Options {
            create: true,
            cache_bytes: 16 << 20,
            ..Options::default()
        };
        let store = Store::open(self.data.path(), &options).unwrap();
        for object in ["public", "vk", "matrices", "zkey", "r1cs", "a key that was made"] {
            store.objects().put(object.as_bytes()).unwrap();
        }
        let handle = store
            .start(Machine::default(), Clock::start(), Limits::default())
            .unwrap();
        self.store = Some((store, handle));
    }

    fn handle(&self) -> &Handle {
        &self.store.as_ref().unwrap().1
    }

    /// Everything that is in it.
    fn dump(&self) -> MemoryView {
        self.handle()
            .read(|view| MemoryView(view.scan(&[], None, usize::MAX).unwrap().into_iter().collect()))
    }
}

#[test]
fn the_real_store_holds_the_same_bytes_as_the_model() {
    random(
        "real store",
        seed(),
        cases(0).div_ceil(32).max(FLOOR),
        160,
        |ops| {
            let mut real = Real {
                data: tempfile::tempdir().unwrap(),
                store: None,
            };
            let mut twin = Twin::default();
            let mut ids = 0;
            real.open();
            both(&real, &mut twin, &boot_open(0))?;
            for op in ops {
                let now = Clock::start().now();
                match command(op, &twin.model, now, &mut ids) {
                    Some(next) => both(&real, &mut twin, &next)?,
                    None => {
                        if let Some((_, handle)) = &real.store {
                            handle.stop();
                        }
                        real.open();
                        same(&real, &twin)?;
                        both(&real, &mut twin, &boot_open(op.1))?;
                    }
                }
            }
            same(&real, &twin)?;
            real.open();
            same(&real, &twin)
        },
    );
}

/// Carries out one command in the store, then in the twin at the moment that the store wrote down.
fn both(real: &Real, twin: &mut Twin, command: &Command) -> Result<(), String> {
    let before = *real.handle().durable().borrow();
    match real.handle().commit_blocking(command.clone()) {
        Ok(committed) if committed.journal > before => {
            let event: Option<Event> = real
                .handle()
                .read(|view| record(view, &keys::event(committed.journal)))
                .unwrap();
            twin.step(event.ok_or("the last event is missing")?.at, command)
        }
        Ok(_) => twin.step(Clock::start().now(), command),
        // These two depend on the moment, which only the store knows.
        Err(CommitError::Refused(_)) if matches!(command, Command::Expire { .. } | Command::Wake { .. }) => {
            Ok(())
        }
        Err(CommitError::Refused(_)) => twin.step(Millis(0), command),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

fn same(real: &Real, twin: &Twin) -> Result<(), String> {
    let dump = real.dump();
    if dump == twin.view {
        return Ok(());
    }
    let differs = dump
        .0
        .iter()
        .find(|(key, value)| twin.view.0.get(*key) != Some(*value))
        .map(|(key, _)| key)
        .or_else(|| twin.view.0.keys().find(|key| !dump.0.contains_key(*key)));
    Err(format!("the store and the model differ at {differs:?}"))
}
