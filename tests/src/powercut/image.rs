//! What a cut can leave of a [`Disk`]: contents of files and names, chosen by a model.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::disk::{Disk, File, NameTable, Node, ROOT};
use super::log::Change;
use super::{Bytes, Model, Names, Recording};

/// The unit that a disk writes whole.
const SECTOR: usize = 512;

/// Applies one change to a file's bytes; `keep` says for a sector of a write whether it arrives.
pub(super) fn apply(recording: &Recording, at: usize, bytes: &mut Vec<u8>, keep: &mut dyn FnMut() -> bool) {
    match &recording.entries[at].change {
        Change::Write { offset, data, .. } => {
            let offset = *offset as usize;
            let data = &recording.log[data.clone()];
            let mut from = 0;
            while from < data.len() {
                let length = (SECTOR - (offset + from) % SECTOR).min(data.len() - from);
                if keep() {
                    let start = offset + from;
                    if bytes.len() < start + length {
                        bytes.resize(start + length, 0);
                    }
                    bytes[start..start + length].copy_from_slice(&data[from..from + length]);
                }
                from += length;
            }
        }
        Change::Truncate { size, .. } if keep() => bytes.resize(*size as usize, 0),
        Change::Extend { size, .. } if bytes.len() < *size as usize && keep() => {
            bytes.resize(*size as usize, 0);
        }
        _ => {}
    }
}

/// Writes the image of a cut into a directory, which must not be there yet.
pub(super) fn write(disk: &Disk, recording: &Recording, model: Model, out: &Path) -> io::Result<()> {
    let mut rng = ChaCha8Rng::seed_from_u64(model.seed ^ (disk.done as u64).rotate_left(32));
    let names = names(disk, model.names, &mut rng);
    let mut contents = HashMap::new();
    // In the order of the nodes, so that a seed gives the same image each time.
    for (node, file) in disk.nodes.iter().enumerate() {
        if let Some(file) = file {
            contents.insert(node, content(file, recording, model.bytes, &mut rng));
        }
    }
    let mut image = Image {
        names,
        contents,
        written: HashMap::new(),
    };
    image.directory(ROOT, out)
}

fn names(disk: &Disk, model: Names, rng: &mut ChaCha8Rng) -> NameTable {
    let mut names = disk.names.clone();
    let count = disk.namings.len();
    let reach = rng.gen_range(0..=count);
    // How many of its pending changes a directory still takes.
    let mut left = HashMap::new();
    if model == Names::InOrderOfEach {
        let mut pending: BTreeMap<Node, usize> = BTreeMap::new();
        for change in &disk.namings {
            *pending.entry(change.naming.home()).or_default() += 1;
        }
        left.extend(
            pending
                .into_iter()
                .map(|(node, count)| (node, rng.gen_range(0..=count))),
        );
    }
    for (i, pending) in disk.namings.iter().enumerate() {
        let arrives = match model {
            Names::Synced => false,
            Names::All => true,
            Names::InOrder => i < reach,
            Names::InOrderOfEach => left
                .get_mut(&pending.naming.home())
                .is_some_and(|left| std::mem::replace(left, left.saturating_sub(1)) > 0),
            Names::Any => rng.gen_bool(0.5),
        };
        if pending.durable || arrives {
            names.apply(&pending.naming);
        }
    }
    names
}

fn content(file: &File, recording: &Recording, model: Bytes, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = file.durable.clone();
    match model {
        Bytes::Synced => {}
        Bytes::All => {
            for &at in &file.pending {
                apply(recording, at, &mut bytes, &mut || true);
            }
        }
        Bytes::Sectors => reordered(file, recording, &mut bytes, rng),
    }
    bytes
}

/// Any sectors of the pending writes, and a size that the file had on the way.
fn reordered(file: &File, recording: &Recording, bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    if file.pending.is_empty() {
        return;
    }
    let mut sizes = vec![bytes.len()];
    let mut live = bytes.len();
    for &at in &file.pending {
        live = match &recording.entries[at].change {
            Change::Write { offset, data, .. } => live.max(*offset as usize + data.len()),
            Change::Truncate { size, .. } => *size as usize,
            Change::Extend { size, .. } => live.max(*size as usize),
            _ => live,
        };
        sizes.push(live);
    }
    // Few, half, most or all of the sectors: each kind of loss finds other faults.
    let share = [0.05, 0.5, 0.95, 1.0][rng.gen_range(0..4)];
    for &at in &file.pending {
        apply(recording, at, bytes, &mut || rng.gen_bool(share));
    }
    if rng.gen_bool(0.5) {
        bytes.resize(sizes[rng.gen_range(0..sizes.len())], 0);
    }
}

struct Image {
    names: NameTable,
    contents: HashMap<Node, Vec<u8>>,
    written: HashMap<Node, PathBuf>,
}

impl Image {
    fn directory(&mut self, node: Node, out: &Path) -> io::Result<()> {
        fs::create_dir(out)?;
        self.written.insert(node, out.to_owned());
        for (name, child) in self.names.0.get(&node).cloned().unwrap_or_default() {
            let path = out.join(name);
            match (self.contents.get(&child), self.written.get(&child)) {
                (Some(bytes), None) => {
                    fs::write(&path, bytes)?;
                    self.written.insert(child, path);
                }
                (Some(_), Some(first)) => fs::hard_link(first, &path)?,
                (None, None) => self.directory(child, &path)?,
                // A directory has one name; where a lost rename leaves two, the first stays.
                (None, Some(_)) => {}
            }
        }
        Ok(())
    }
}
