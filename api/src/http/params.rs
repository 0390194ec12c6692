//! `/v1/params`: the parameter files of the Filecoin kinds.

use proofkeep_engine::problem::Problem;

use super::answer::Outcome;
use super::context::Context;
use super::request::Request;

#[cfg(feature = "filecoin")]
pub(super) use built::{evict, list, pin, preload, show, unpin, verify};

#[cfg(feature = "filecoin")]
mod built {
    use proofkeep_engine::kinds::Desk as _;
    use proofkeep_engine::service::KeyReport;
    use proofkeep_filecoin::directory::Directory;
    use proofkeep_filecoin::params::{self, Entry, Verdict};
    use proofkeep_filecoin::ready;
    use proofkeep_store::ids::Digest;
    use serde_json::{Value, json};
    use warp::http::StatusCode;

    use super::super::answer::{Answer, json};
    use super::super::problem::shown;
    use super::*;

    /// The files that are there or wanted, and what is known of each.
    pub(in super::super) async fn list(context: &Context, request: &mut Request) -> Outcome {
        request.query(&[])?;
        let directory = Directory::of_environment();
        let path = directory.path().display().to_string();
        let found = context.blocking(move || params::list_all(&directory)).await?;
        let found = found.map_err(|error| unreadable(&error))?;
        let keys = context.engine.memory().keys;
        let drawn: Vec<Value> = found.iter().map(|entry| draw(context, entry, &keys)).collect();
        let value = json!({ "directory": path, "params": drawn });
        Ok(json(StatusCode::OK, &value))
    }

    /// What is known of one.
    pub(in super::super) async fn show(context: &Context, request: &mut Request) -> Outcome {
        Ok(shown_entry(context, &of_key(context, request).await?))
    }

    /// Loads a key before anybody needs it. 202; show says when it is there, or why it didn't come.
    pub(in super::super) async fn preload(context: &Context, request: &mut Request) -> Outcome {
        let entry = of_key(context, request).await?;
        let (id, allow) = (entry.id.clone(), context.engine.desk().allow_unofficial_params());
        let ready = move || ready::to_load(&Directory::of_environment(), &id, allow);
        let load = context.blocking(ready).await??;
        context.engine.load_key(&load)?;
        let directory = Directory::of_environment();
        let entry = context
            .blocking(move || params::look(&directory, &entry.id))
            .await?;
        let keys = context.engine.memory().keys;
        Ok(json(StatusCode::ACCEPTED, &draw(context, &entry, &keys)))
    }

    /// Reads a file whole, and answers with what is known of it then.
    pub(in super::super) async fn verify(context: &Context, request: &mut Request) -> Outcome {
        request.query(&[])?;
        let id = request.param(0).to_owned();
        let named = id.clone();
        let found = match params::is_id(&id) {
            true => {
                let verify = move || params::verify(&Directory::of_environment(), &id, &mut |_| Ok(()));
                let found = context.blocking(verify).await?;
                Some(found.map_err(|error| unreadable(&error))?)
            }
            false => None,
        };
        match found.filter(|entry| entry.verdict != Verdict::Missing) {
            Some(entry) => Ok(shown_entry(context, &entry)),
            None => Err(missing(&named)),
        }
    }

    /// Keeps a key in memory, once it is there, whatever else needs room.
    pub(in super::super) async fn pin(context: &Context, request: &mut Request) -> Outcome {
        let entry = of_key(context, request).await?;
        context.engine.keep_key(key_of(&entry)?, true);
        Ok(shown_entry(context, &entry))
    }

    /// Lets it go when something else needs room.
    pub(in super::super) async fn unpin(context: &Context, request: &mut Request) -> Outcome {
        let entry = of_key(context, request).await?;
        context.engine.keep_key(key_of(&entry)?, false);
        Ok(shown_entry(context, &entry))
    }

    /// Lets it go now, or as soon as nobody uses it.
    pub(in super::super) async fn evict(context: &Context, request: &mut Request) -> Outcome {
        let entry = of_key(context, request).await?;
        context.engine.evict_key(key_of(&entry)?)?;
        Ok(shown_entry(context, &entry))
    }

    /// The file that a path names, without reading it whole.
    async fn of_key(context: &Context, request: &Request) -> Result<Entry, Problem> {
        request.query(&[])?;
        let id = request.param(0).to_owned();
        if !params::is_id(&id) {
            return Err(missing(&id));
        }
        let named = id.clone();
        let look = move || params::look(&Directory::of_environment(), &id);
        let entry = context.blocking(look).await?;
        match entry.verdict {
            Verdict::Missing => Err(missing(&named)),
            _ => Ok(entry),
        }
    }

    /// What names the key in memory.
    fn key_of(entry: &Entry) -> Result<Digest, Problem> {
        entry.key.ok_or_else(|| {
            let detail = entry.detail.clone().unwrap_or_default();
            Problem::new(409, "params-damaged", "the file is no proving key", detail)
        })
    }

    fn shown_entry(context: &Context, entry: &Entry) -> Answer {
        json(
            StatusCode::OK,
            &draw(context, entry, &context.engine.memory().keys),
        )
    }

    fn draw(context: &Context, entry: &Entry, keys: &[KeyReport]) -> Value {
        let mut value = json!(entry);
        let resident = keys
            .iter()
            .find(|key| key.resident && Some(key.circuit) == entry.key);
        let load = entry.key.and_then(|key| context.engine.key_load(key));
        value["present"] = (entry.verdict != Verdict::Missing).into();
        value["official"] = match entry.verdict {
            Verdict::Published => true.into(),
            Verdict::Unchecked | Verdict::Missing => Value::Null,
            _ => false.into(),
        };
        value["loaded"] = resident.is_some().into();
        value["loading"] = (load == Some(None)).into();
        value["load_error"] = match load {
            Some(Some(failure)) if resident.is_none() => failure.detail.into(),
            _ => Value::Null,
        };
        value["resident_bytes"] = resident.map_or(0, |key| key.bytes).into();
        value["pinned"] = entry
            .key
            .is_some_and(|key| context.engine.is_key_kept(key))
            .into();
        value
    }

    fn missing(named: &str) -> Problem {
        let detail = format!(
            "there is no parameter file {:?} in {}; GET /v1/params lists those there are",
            shown(named),
            Directory::of_environment().path().display()
        );
        Problem::new(404, "unknown-params", "there is no such file", detail)
    }

    fn unreadable(error: &std::io::Error) -> Problem {
        let detail = format!("the parameter directory can't be used: {error}");
        Problem::new(500, "io", "a file can't be read or written", detail).retryable()
    }
}

/// Nothing in a build without the Filecoin kinds.
#[cfg(not(feature = "filecoin"))]
pub(super) async fn list(_context: &Context, _request: &mut Request) -> Outcome {
    Err(not_built())
}

#[cfg(not(feature = "filecoin"))]
pub(super) use list as evict;
#[cfg(not(feature = "filecoin"))]
pub(super) use list as pin;
#[cfg(not(feature = "filecoin"))]
pub(super) use list as preload;
#[cfg(not(feature = "filecoin"))]
pub(super) use list as show;
#[cfg(not(feature = "filecoin"))]
pub(super) use list as unpin;
#[cfg(not(feature = "filecoin"))]
pub(super) use list as verify;

#[cfg(not(feature = "filecoin"))]
fn not_built() -> Problem {
    let detail = "parameter files belong to the Filecoin kinds, which this build doesn't have; build it with --features \
                  filecoin";
    Problem::new(404, "not-built", "this build has no Filecoin kinds", detail)
}
