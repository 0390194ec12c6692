//! A token, without its secret and its hash.

use serde_json::{Value, json};

use super::time;
use crate::tokens::Token;

/// As JSON.
pub(crate) fn draw(token: &Token) -> Value {
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.name()).collect();
    json!({
        "name": token.name, "scopes": scopes, "rate": token.rate, "created_at": time::write(token.created_at),
    })
}
