//! Tokens: who may ask a daemon that others can reach, and for what.
//!
//! A token is 32 random bytes, shown once. What is kept is its SHA-256: so much randomness needs no slow hash, since
//! nobody can try enough of it. The list is one file in the data directory, [`file`]; whoever has the directory's lock
//! writes it.

mod file;
mod rate;
mod secret;

use std::path::{Path, PathBuf};

use proofkeep_store::ids::Millis;

pub(crate) use rate::Bucket;
pub(crate) use secret::{Hash, Secret};

/// Requests a second of a token that says nothing else.
pub(crate) const USUAL_RATE: u32 = 100;

/// The highest rate that can be set.
pub(crate) const MOST_RATE: u32 = 1_000_000;

/// So many tokens are looked through in no time; more are a mistake.
const MOST: usize = 1024;

/// The longest name, as for every actor in a record.
const LONGEST: usize = 64;

/// Who asks without a token: somebody on the daemon's own machine.
pub(crate) const LOCAL: &str = "local";

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// To look at everything, and to have proofs verified.
    Read,
    /// To upload, to submit, to cancel and to retry.
    Submit,
    /// Everything: circuits, parameters, backups and tokens too.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Admin];

    /// Its name in requests, answers and the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }

    /// The scope of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// What is kept of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// What the journal calls its holder.
    pub name: String,
    /// Sorted, each once, at least one.
    pub scopes: Vec<Scope>,
    /// Requests a second.
    pub rate: u32,
    /// When it was made.
    pub created_at: Millis,
    /// Of its secret.
    pub hash: Hash,
}

impl Token {
    /// Whether its holder may do what needs `scope`.
    pub fn allows(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }
}

/// Why a token isn't made or removed, or the file isn't read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// Not a name for an actor.
    #[error(
        "a token's name has 1 to {LONGEST} of a-z A-Z 0-9 - _ . and is not {LOCAL:?}, which is whoever asks without one"
    )]
    Name,
    /// No scope, or too high a rate.
    #[error("{0}")]
    Field(String),
    /// There is one of that name.
    #[error("there is a token {0:?} already; remove it first, or choose another name")]
    Taken(String),
    /// There is none of that name.
    #[error("there is no token {0:?}")]
    Unknown(String),
    /// There are too many.
    #[error("there are {MOST} tokens already, which is the limit; remove some that nobody uses")]
    TooMany,
    /// The system gives no randomness.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
    /// The file can't be read or written.
    #[error(
        "{}, which keeps the tokens, can't be read or written: {source}; see that the disk works and has room, and that the \
         file is yours",
        path.display()
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file isn't what was written.
    #[error(
        "{}: {what}; put it back from a copy, or remove it and make new tokens with `proofkeep token add`",
        path.display()
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong, without what is in it.
        what: String,
    },
}

impl TokenError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name | Self::Field(_) => "bad-field",
            Self::Taken(_) => "name-in-use",
            Self::Unknown(_) => "unknown-token",
            Self::TooMany => "too-many-tokens",
            Self::Random(_) | Self::Io { .. } => "unwritable",
            Self::Damaged { .. } => "tokens-damaged",
        }
    }
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Its name.
    pub name: String,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// Requests a second.
    pub rate: u32,
}

/// The tokens of a data directory, by name; whoever has this has the directory's lock.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    list: Vec<Token>,
}

impl Tokens {
    /// Reads them; no file means none.
    pub fn load(data: &Path) -> Result<Self, TokenError> {
        let path = data.join(file::NAME);
        let list = file::read(&path)?;
        Ok(Self { path, list })
    }

    /// Each of them.
    pub fn list(&self) -> &[Token] {
        &self.list
    }

    /// Makes one. When this returns it is on disk, and its secret is nowhere but in the answer.
    pub fn add(&mut self, wanted: Wanted, now: Millis) -> Result<(Token, Secret), TokenError> {
        let Wanted {
            name,
            mut scopes,
            rate,
        } = wanted;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if !(1..=LONGEST).contains(&name.len()) || !name.bytes().all(allowed) || name == LOCAL {
            return Err(TokenError::Name);
        }
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            let text = "scopes: expected at least one of read, submit, admin, found none";
            return Err(TokenError::Field(text.to_owned()));
        }
        if !(1..=MOST_RATE).contains(&rate) {
            let text = format!("rate: expected 1 to {MOST_RATE} requests a second, found {rate}");
            return Err(TokenError::Field(text));
        }
        if self.list.iter().any(|token| token.name == name) {
            return Err(TokenError::Taken(name));
        }
        if self.list.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        let secret = Secret::random()?;
        let token = Token {
            name,
            scopes,
            rate,
            created_at: now,
            hash: secret.hash(),
        };
        let mut list = self.list.clone();
        list.push(token.clone());
        list.sort_by(|one, other| one.name.cmp(&other.name));
        self.replace(list)?;
        Ok((token, secret))
    }

    /// Removes one. When this returns it is gone from the disk.
    pub fn remove(&mut self, name: &str) -> Result<(), TokenError> {
        let mut list = self.list.clone();
        list.retain(|token| token.name != name);
        if list.len() == self.list.len() {
            return Err(TokenError::Unknown(name.chars().take(LONGEST).collect()));
        }
        self.replace(list)
    }

    fn replace(&mut self, list: Vec<Token>) -> Result<(), TokenError> {
        file::write(&self.path, &list)?;
        self.list = list;
        Ok(())
    }
}

/// The token that a secret belongs to. Looks at every one, whichever it is, and at every byte of each.
pub(crate) fn find<'a>(list: &'a [Token], secret: &Secret) -> Option<&'a Token> {
    let hash = secret.hash();
    let mut found = None;
    for token in list {
        if token.hash.same(&hash) {
            found = Some(token);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn wanted(name: &str, scopes: &[Scope]) -> Wanted {
        Wanted {
            name: name.to_owned(),
            scopes: scopes.to_vec(),
            rate: 7,
        }
    }

    #[test]
    fn a_token_is_found_by_its_secret_after_the_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(directory.path()).unwrap();
        let (made, secret) = tokens
            .add(wanted("ci", &[Scope::Submit, Scope::Read]), Millis(5))
            .unwrap();
        let (_, other) = tokens.add(wanted("ops", &[Scope::Admin]), Millis(6)).unwrap();
        let again = Tokens::load(directory.path()).unwrap();
        assert_eq!(again.list(), tokens.list());
        assert_eq!(find(again.list(), &secret), Some(&made));
        assert_eq!(find(again.list(), &other).unwrap().name, "ops");
        assert_eq!(find(again.list(), &Secret::random().unwrap()), None);
        tokens.remove("ci").unwrap();
        assert_eq!(
            find(Tokens::load(directory.path()).unwrap().list(), &secret),
            None
        );
    }

    #[test]
    fn the_file_is_the_owners_and_holds_no_secret() {
        let directory = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(directory.path()).unwrap();
        let (_, secret) = tokens.add(wanted("ci", &[Scope::Read]), Millis(5)).unwrap();
        let path = directory.path().join(file::NAME);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let text = std::fs::read_to_string(&path).unwrap();
        let shown = secret.show();
        assert!(!text.contains(shown.trim_start_matches("pk_")), "{text}");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn names_that_could_be_taken_for_somebody_else_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut tokens = Tokens::load(directory.path()).unwrap();
        for name in ["", "local", "two words", "a/b", "ü", &"x".repeat(65)] {
            let refused = tokens.add(wanted(name, &[Scope::Read]), Millis(1));
            assert!(matches!(refused, Err(TokenError::Name)), "{name}");
        }
        tokens.add(wanted("a", &[Scope::Read]), Millis(1)).unwrap();
        let again = tokens.add(wanted("a", &[Scope::Read]), Millis(1));
        assert!(matches!(again, Err(TokenError::Taken(_))));
        let none = tokens.add(wanted("b", &[]), Millis(1));
        assert!(matches!(none, Err(TokenError::Field(_))));
        assert!(matches!(tokens.remove("b"), Err(TokenError::Unknown(_))));
    }

    #[test]
    fn a_file_that_is_not_what_was_written_is_refused_and_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        for text in [
            "",
            "{\"version\":1,\"tokens\":[{\"name\":\"MARKER\"}]}",
            "{\"version\":2,\"tokens\":[]}",
            "{\"version\":1,\"tokens\":[{\"name\":\"a\",\"scopes\":[\"MARKER\"],\"rate\":1,\"created_at\":1,\"sha256\":\"\"}]}",
        ] {
            std::fs::write(directory.path().join(file::NAME), text).unwrap();
            let error = Tokens::load(directory.path()).unwrap_err();
            assert!(matches!(error, TokenError::Damaged { .. }), "{error}");
            assert!(!error.to_string().contains("MARKER"), "{error}");
        }
    }

    #[test]
    fn admin_allows_everything_and_the_others_only_themselves() {
        let token = |scopes: &[Scope]| Token {
            name: "t".to_owned(),
            scopes: scopes.to_vec(),
            rate: 1,
            created_at: Millis(0),
            hash: Secret::random().unwrap().hash(),
        };
        for scope in Scope::ALL {
            assert!(token(&[Scope::Admin]).allows(scope));
            assert_eq!(Scope::parse(scope.name()), Some(scope));
        }
        assert!(!token(&[Scope::Read]).allows(Scope::Submit));
        assert!(!token(&[Scope::Submit]).allows(Scope::Read));
        assert!(!token(&[Scope::Read, Scope::Submit]).allows(Scope::Admin));
    }
}
