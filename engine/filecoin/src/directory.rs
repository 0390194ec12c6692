//! The parameter directory: bellperson's parameter files under the names that the published crates give them.
//!
//! | file | holds |
//! | --- | --- |
//! | `v28-….params` | a proving key as bellperson writes it |
//! | `v28-….vk` | its verifying key, for the published verifiers; nothing here reads it |
//! | `v28-….matrices` | the circuit's compiled matrices, with a checksum; made when they are first needed |
//! | `v28-….checked` | digest and origin of the `.params` whose points were checked |

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use storage_proofs_core::parameter_cache::parameter_id;

/// Where the published crates look if nothing is said.
const USUAL: &str = "/var/tmp/filecoin-proof-parameters";
/// What may name the directory, the first that is set.
const VARIABLES: [&str; 2] = ["PROOFKEEP_PARAM_DIR", "FIL_PROOFS_PARAMETER_CACHE"];

/// The one that was said on the command line.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// What a file of the directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The proving key.
    Params,
    /// The verifying key.
    Vk,
    /// Compiled matrices.
    Matrices,
    /// What was checked.
    Checked,
}

/// A parameter directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory(PathBuf);

impl Directory {
    /// This one.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Makes this one the one that [`Self::of_environment`] answers, for all of this process; the first call counts.
    pub fn choose(path: PathBuf) {
        let _ = CHOSEN.set(path);
    }

    /// The one that was chosen, that `PROOFKEEP_PARAM_DIR` or `FIL_PROOFS_PARAMETER_CACHE` names, or else the usual one. A daemon and its
    /// worker processes have the same environment.
    #[must_use]
    pub fn of_environment() -> Self {
        if let Some(chosen) = CHOSEN.get() {
            return Self(chosen.clone());
        }
        let named = VARIABLES.iter().find_map(std::env::var_os);
        Self(named.map_or_else(|| USUAL.into(), PathBuf::from))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The name of a circuit's files, without what says which it is.
    #[must_use]
    pub fn id(identifier: &str) -> String {
        let file = parameter_id(identifier);
        file.strip_suffix(".params").map_or(file.clone(), str::to_owned)
    }

    /// Where a file of a circuit is, there or not.
    #[must_use]
    pub fn file(&self, identifier: &str, content: Content) -> PathBuf {
        self.named(&Self::id(identifier), content)
    }

    /// The same by its name.
    #[must_use]
    pub fn named(&self, id: &str, content: Content) -> PathBuf {
        let end = match content {
            Content::Params => "params",
            Content::Vk => "vk",
            Content::Matrices => "matrices",
            Content::Checked => "checked",
        };
        self.0.join(format!("{id}.{end}"))
    }

    /// Writes a file whole and durably, or not at all.
    ///
    /// # Errors
    /// Those of `write`; nothing is left then.
    pub fn write<E: From<io::Error>>(
        &self,
        target: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
    ) -> Result<(), E> {
        fs::create_dir_all(&self.0)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = Temporary(target.with_file_name(format!(".{name}.{}", std::process::id())));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&temporary.0)?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out)?;
        out.flush()?;
        out.get_ref().sync_all()?;
        fs::rename(&temporary.0, target)?;
        File::open(&self.0)?.sync_all()?;
        Ok(())
    }
}

/// Removed when dropped; once it was renamed there is nothing under this name.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What can't be removed is overwritten by the next try.
        let _ = fs::remove_file(&self.0);
    }
}
