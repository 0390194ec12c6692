//! `token`: who may ask a daemon that others can reach. On the data directory when no daemon has it, else by that daemon.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use proofkeep_store::clock::Clock;
use proofkeep_store::format::DataDir as Data;
use proofkeep_store::{OpenError, Store};
use serde_json::{Value, json};

use super::backup::daemon_of;
use super::data::{DataDir, options, refused};
use super::exit::{CliError, Exit};
use super::out::Out;
use super::server::{Credentials, text};
use crate::client::{Client, escape};
use crate::render::token::draw;
use crate::tokens::{Scope, TokenError, Tokens, USUAL_RATE, Wanted};

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token; it is shown once
    #[command(
        after_help = "Example: proofkeep token add ci --scope read,submit --out ci.token\n\n\
                      Clients read it with --token-file ci.token or PROOFKEEP_TOKEN_FILE, or send the header\n\
                      Authorization: Bearer pk_…. read: look at everything, verify proofs. submit: upload, submit, cancel,\n\
                      retry. admin: everything, circuits, backups and tokens too."
    )]
    Add {
        /// Its name, which the journal gives to what its holder does
        name: String,
        /// What it allows
        #[arg(long = "scope", value_delimiter = ',', default_values = ["read", "submit"])]
        scopes: Vec<ScopeName>,
        /// Requests a second
        #[arg(long, value_name = "N", default_value_t = USUAL_RATE)]
        rate: u32,
        /// Write it into this new file, which only its owner can read, instead of stdout
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
    /// List tokens, without what would let anybody in
    #[command(after_help = "Example: proofkeep token ls --data-dir ./data")]
    Ls {
        #[command(flatten)]
        place: Place,
    },
    /// Remove a token: from now on it opens nothing
    #[command(after_help = "Example: proofkeep token rm ci --data-dir ./data")]
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        place: Place,
    },
}

/// A scope on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScopeName {
    Read,
    Submit,
    Admin,
}

/// Where the tokens are.
#[derive(Debug, Args)]
pub struct Place {
    #[command(flatten)]
    data: DataDir,
    /// The daemon to ask [default: the one that has the data directory, if there is one]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
}

/// Where they turned out to be.
enum Found {
    Here(Data),
    Daemon(Client),
}

pub fn run(command: &Token, out: &Out) -> Result<Exit, CliError> {
    match command {
        Token::Add {
            name,
            scopes,
            rate,
            out: file,
            place,
        } => {
            let scopes = scopes.iter().map(|scope| match scope {
                ScopeName::Read => Scope::Read,
                ScopeName::Submit => Scope::Submit,
                ScopeName::Admin => Scope::Admin,
            });
            let wanted = Wanted {
                name: name.clone(),
                scopes: scopes.collect(),
                rate: *rate,
            };
            add(wanted, file.as_deref(), place, out)?;
        }
        Token::Ls { place } => ls(place, out)?,
        Token::Rm { name, place } => {
            match find(place, false, out)? {
                Found::Here(data) => tokens(&data)?.remove(name)?,
                Found::Daemon(client) => {
                    client.delete(&format!("/v1/tokens/{}", escape(name)))?;
                }
            }
            out.data(&json!({ "removed": name }), || format!("removed {name}"));
        }
    }
    Ok(Exit::Done)
}

fn add(wanted: Wanted, file: Option<&Path>, place: &Place, out: &Out) -> Result<(), CliError> {
    // Before there is a token that nobody would ever see.
    let mut file = file
        .map(|path| Ok::<_, CliError>((path, new_file(path)?)))
        .transpose()?;
    let made = make(wanted, place, out).and_then(|mut made| {
        let Some((path, file)) = &mut file else {
            return Ok(made);
        };
        let written = writeln!(file, "{}", text(&made["token"])).and_then(|()| file.sync_all());
        written.map_err(|error| CliError::failed("unwritable", format!("{}: {error}", path.display())))?;
        if let Some(members) = made.as_object_mut() {
            members.remove("token");
        }
        made["file"] = path.display().to_string().into();
        Ok(made)
    });
    let made = match (made, file) {
        (Ok(made), _) => made,
        (Err(error), Some((path, _))) => {
            // It was made a moment ago and is empty; what went wrong before is what there is to say.
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        (Err(error), None) => return Err(error),
    };
    out.note(&format!(
        "token {} for {}, {} requests a second; keep it, it can't be shown again",
        text(&made["name"]),
        scopes_of(&made),
        made["rate"]
    ));
    out.data(&made, || match made["file"].as_str() {
        Some(file) => file.to_owned(),
        None => text(&made["token"]),
    });
    Ok(())
}

fn make(wanted: Wanted, place: &Place, out: &Out) -> Result<Value, CliError> {
    match find(place, true, out)? {
        Found::Here(data) => {
            let (token, secret) = tokens(&data)?.add(wanted, Clock::start().now())?;
            let mut made = draw(&token);
            made["token"] = secret.show().into();
            Ok(made)
        }
        Found::Daemon(client) => {
            let scopes: Vec<_> = wanted.scopes.iter().map(|scope| scope.name()).collect();
            let body = json!({ "name": wanted.name, "scopes": scopes, "rate": wanted.rate });
            Ok(client.post("/v1/tokens", &[], &body)?.body)
        }
    }
}

fn ls(place: &Place, out: &Out) -> Result<(), CliError> {
    let list: Vec<Value> = match find(place, false, out)? {
        Found::Here(data) => tokens(&data)?.list().iter().map(draw).collect(),
        Found::Daemon(client) => {
            let body = client.get("/v1/tokens", &[])?.body;
            body["tokens"].as_array().cloned().unwrap_or_default()
        }
    };
    for token in list {
        out.data(&token, || {
            format!(
                "{}  {}  {} requests a second  since {}",
                text(&token["name"]),
                scopes_of(&token),
                token["rate"],
                text(&token["created_at"])
            )
        });
    }
    Ok(())
}

fn find(place: &Place, create: bool, out: &Out) -> Result<Found, CliError> {
    if let Some(server) = &place.server {
        return Ok(Found::Daemon(place.credentials.client(server)?));
    }
    let path = place.data.path();
    let locked = match Store::lock(&path, false) {
        // A daemon that others can reach doesn't start without a token, so the first one may come before it.
        Err(OpenError::NotThere { .. }) if create => {
            let options = proofkeep_store::Options {
                create: true,
                ..options()
            };
            let made = Store::open(&path, &options).map(drop);
            made.and_then(|()| Store::lock(&path, false))
        }
        locked => locked,
    };
    match locked {
        Ok(data) => Ok(Found::Here(data)),
        Err(OpenError::Locked { pid, .. }) => {
            let server = daemon_of(&path);
            out.note(&format!(
                "pid {pid} has {}; asking it, at {server}",
                path.display()
            ));
            Ok(Found::Daemon(place.credentials.client(&server)?))
        }
        Err(error) => Err(refused(error, &path, "use proofkeep token --server")),
    }
}

fn tokens(data: &Data) -> Result<Tokens, CliError> {
    Ok(Tokens::load(data.path())?)
}

fn new_file(path: &Path) -> Result<std::fs::File, CliError> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| CliError::failed("unwritable", format!("{}: {error}", path.display())))
}

fn scopes_of(token: &Value) -> String {
    let scopes = token["scopes"].as_array().into_iter().flatten().map(text);
    scopes.collect::<Vec<_>>().join(",")
}

impl From<TokenError> for CliError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Name | TokenError::Field(_) => Self::usage(error.to_string()),
            _ => Self::failed(error.code(), error.to_string()),
        }
    }
}
