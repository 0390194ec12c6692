//! A disk as the recording left it: what is promised durable, and what is only under way.
//!
//! Files and directories are nodes, apart from their names, so that a rename or a removal that
//! the disk never saw leaves the right bytes behind.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::log::{Change, Entry, Place};

/// Index of a file or directory.
pub(super) type Node = usize;

/// The recorded directory itself.
pub(super) const ROOT: Node = 0;

/// A file's bytes as promised, and the changes since, by their place in the recording.
#[derive(Debug, Clone, Default)]
pub(super) struct File {
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<usize>,
    pending_bytes: u64,
}

/// A change of names.
#[derive(Debug, Clone)]
pub(super) enum Naming {
    Set {
        dir: Node,
        name: String,
        node: Node,
    },
    Remove {
        dir: Node,
        name: String,
    },
    Move {
        node: Node,
        from: (Node, String),
        to: (Node, String),
    },
}

impl Naming {
    /// The directory whose sync makes it durable; a rename belongs to the one that it moves into.
    pub(super) fn home(&self) -> Node {
        match self {
            Self::Set { dir, .. } | Self::Remove { dir, .. } | Self::Move { to: (dir, _), .. } => *dir,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct PendingNaming {
    at: usize,
    pub(super) durable: bool,
    pub(super) naming: Naming,
}

/// The names in each directory.
#[derive(Debug, Clone, Default)]
pub(super) struct NameTable(pub(super) HashMap<Node, BTreeMap<String, Node>>);

impl NameTable {
    pub(super) fn apply(&mut self, naming: &Naming) {
        match naming {
            Naming::Set { dir, name, node } => {
                self.0.entry(*dir).or_default().insert(name.clone(), *node);
            }
            Naming::Remove { dir, name } => {
                self.0.entry(*dir).or_default().remove(name);
            }
            Naming::Move {
                node,
                from: (dir, name),
                to: (to, new),
            } => {
                let old = self.0.entry(*dir).or_default();
                if old.get(name) == Some(node) {
                    old.remove(name);
                }
                self.0.entry(*to).or_default().insert(new.clone(), *node);
            }
        }
    }
}

/// The state of the disk at one point of a recording.
#[derive(Debug, Clone)]
pub struct Disk {
    pub(super) done: usize,
    /// `None` for a directory.
    pub(super) nodes: Vec<Option<File>>,
    inodes: HashMap<u64, Node>,
    pub(super) names: NameTable,
    /// In order; the first is never durable, since durable ones at the front go into `names`.
    pub(super) namings: Vec<PendingNaming>,
    syncs: HashMap<(u32, i64), usize>,
    last_path: HashMap<Node, String>,
    peaks: HashMap<String, u64>,
}

impl Default for Disk {
    fn default() -> Self {
        Self::empty()
    }
}

impl Disk {
    /// A disk on which the recorded directory is durable and empty.
    pub fn empty() -> Self {
        Self {
            done: 0,
            nodes: vec![None],
            inodes: HashMap::new(),
            names: NameTable::default(),
            namings: Vec::new(),
            syncs: HashMap::new(),
            last_path: HashMap::new(),
            peaks: HashMap::new(),
        }
    }

    /// A disk that holds a directory as it is now, all of it durable. To be called before the
    /// recording starts.
    ///
    /// # Errors
    ///
    /// When the directory can't be read, or holds something else than files and directories.
    pub fn capture(dir: &Path) -> io::Result<Self> {
        let mut disk = Self::empty();
        disk.capture_dir(dir, ROOT, "")?;
        Ok(disk)
    }

    fn capture_dir(&mut self, dir: &Path, node: Node, prefix: &str) -> io::Result<()> {
        self.inodes.insert(std::fs::metadata(dir)?.ino(), node);
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let inode = entry.metadata()?.ino();
            let kind = entry.file_type()?;
            let child = match self.inodes.get(&inode) {
                Some(&linked) => linked,
                None if kind.is_dir() => self.add(inode, None),
                None if kind.is_file() => {
                    let durable = std::fs::read(entry.path())?;
                    self.add(
                        inode,
                        Some(File {
                            durable,
                            ..File::default()
                        }),
                    )
                }
                None => {
                    return Err(io::Error::other(format!(
                        "{path} is neither a file nor a directory"
                    )));
                }
            };
            self.names.0.entry(node).or_default().insert(name, child);
            self.last_path.insert(child, path.clone());
            if kind.is_dir() {
                self.capture_dir(&entry.path(), child, &format!("{path}/"))?;
            }
        }
        Ok(())
    }

    /// An inode number that was used before names a new node from here on.
    fn add(&mut self, inode: u64, file: Option<File>) -> Node {
        self.nodes.push(file);
        self.inodes.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    /// The most bytes that were ever written to the file at a path and not yet covered by a
    /// completed sync. The path is one that the file had when it was made, renamed or linked.
    pub fn unsynced_peak(&self, path: &str) -> u64 {
        self.peaks.get(path).copied().unwrap_or(0)
    }

    /// Plays one more change.
    pub(super) fn play(&mut self, entry: &Entry) -> io::Result<()> {
        let at = self.done;
        self.done += 1;
        match &entry.change {
            Change::Start { root } => {
                self.inodes.insert(*root, ROOT);
            }
            Change::Create { inode, at: place } => {
                let node = self.add(*inode, Some(File::default()));
                if let Some(place) = place {
                    self.set(at, place, node)?;
                }
            }
            Change::Mkdir { inode, at: place } => {
                let node = self.add(*inode, None);
                self.set(at, place, node)?;
            }
            Change::Link { inode, to } => {
                let node = self.node(*inode)?;
                self.set(at, to, node)?;
            }
            Change::Unlink { at: place } => {
                let dir = self.node(place.dir)?;
                self.name(
                    at,
                    Naming::Remove {
                        dir,
                        name: place.name().to_owned(),
                    },
                );
            }
            Change::Rename { inode, from, to } => {
                let node = self.node(*inode)?;
                let from = (self.node(from.dir)?, from.name().to_owned());
                let target = (self.node(to.dir)?, to.name().to_owned());
                self.last_path.insert(node, to.path.clone());
                self.name(
                    at,
                    Naming::Move {
                        node,
                        from,
                        to: target,
                    },
                );
            }
            Change::Write { inode, data, .. } => self.pend(at, *inode, data.len() as u64)?,
            Change::Truncate { inode, .. } | Change::Extend { inode, .. } => self.pend(at, *inode, 0)?,
            Change::SyncBegin { number, .. } | Change::AllBegin { number } => {
                self.syncs.insert((entry.pid, *number), at);
            }
            Change::SyncEnd { .. } | Change::AllEnd { .. } | Change::SyncRange | Change::Ack { .. } => {}
            Change::Unknown { what } => {
                return Err(io::Error::other(format!(
                    "there is no model for this change: {what}"
                )));
            }
        }
        Ok(())
    }

    /// The nodes that a completed sync covers, and up to which change.
    pub(super) fn sync_ends(&mut self, entry: &Entry) -> io::Result<Option<(Vec<Node>, usize)>> {
        let (nodes, number) = match entry.change {
            Change::SyncEnd { inode, number } => (vec![self.node(inode)?], number),
            Change::AllEnd { number } => ((0..self.nodes.len()).collect(), number),
            _ => return Ok(None),
        };
        let begun = self
            .syncs
            .remove(&(entry.pid, number))
            .ok_or_else(|| io::Error::other("a sync ends that did not begin"))?;
        Ok(Some((nodes, begun)))
    }

    /// The changes of a file that a sync which began at `begun` makes durable.
    pub(super) fn take_pending(&mut self, node: Node, begun: usize) -> Vec<usize> {
        let Some(Some(file)) = self.nodes.get_mut(node) else {
            return Vec::new();
        };
        let split = file.pending.partition_point(|&at| at < begun);
        let rest = file.pending.split_off(split);
        std::mem::replace(&mut file.pending, rest)
    }

    /// What is left unsynced of a file after [`Disk::take_pending`].
    pub(super) fn set_pending_bytes(&mut self, node: Node, bytes: u64) {
        if let Some(Some(file)) = self.nodes.get_mut(node) {
            file.pending_bytes = bytes;
        }
    }

    /// Makes the names of a directory durable.
    pub(super) fn sync_names(&mut self, dir: Node, begun: usize) {
        for pending in &mut self.namings {
            pending.durable |= pending.naming.home() == dir && pending.at < begun;
        }
        let settled = self.namings.iter().take_while(|p| p.durable).count();
        for pending in self.namings.drain(..settled) {
            self.names.apply(&pending.naming);
        }
    }

    fn node(&self, inode: u64) -> io::Result<Node> {
        self.inodes.get(&inode).copied().ok_or_else(|| {
            io::Error::other(format!(
                "inode {inode} was there before the recording: start from Disk::capture"
            ))
        })
    }

    fn set(&mut self, at: usize, place: &Place, node: Node) -> io::Result<()> {
        let dir = self.node(place.dir)?;
        self.last_path.insert(node, place.path.clone());
        self.name(
            at,
            Naming::Set {
                dir,
                name: place.name().to_owned(),
                node,
            },
        );
        Ok(())
    }

    fn name(&mut self, at: usize, naming: Naming) {
        self.namings.push(PendingNaming {
            at,
            durable: false,
            naming,
        });
    }

    fn pend(&mut self, at: usize, inode: u64, bytes: u64) -> io::Result<()> {
        let node = self.node(inode)?;
        let Some(Some(file)) = self.nodes.get_mut(node) else {
            return Err(io::Error::other("a write to a directory"));
        };
        file.pending.push(at);
        file.pending_bytes += bytes;
        if let Some(path) = self.last_path.get(&node) {
            let peak = self.peaks.entry(path.clone()).or_default();
            *peak = (*peak).max(file.pending_bytes);
        }
        Ok(())
    }
}
