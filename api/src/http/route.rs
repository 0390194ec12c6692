//! Which path and method leads where.

use futures_util::future::BoxFuture;
use warp::http::Method;

use super::answer::Outcome;
use super::context::Context;
use super::request::Request;
use super::{
    backup, blobs, circuits, events, jobs, params, partitions, percent, proofs, prove, status, verify,
};

/// Answers one request.
pub(super) type Handler = for<'a> fn(&'a Context, &'a mut Request) -> BoxFuture<'a, Outcome>;

/// Where a path leads.
pub(super) enum Target {
    /// To a resource with this method.
    Found(Handler, Vec<String>),
    /// To a resource without it; these are there.
    OtherMethods(Vec<Method>),
    /// Nowhere.
    Nothing,
}

macro_rules! routes {
    ($($pattern:literal { $($method:ident $handler:path),+ $(,)? })*) => {
        &[$(($pattern, &[$((stringify!($method), {
            let handler: Handler = |context, request| Box::pin($handler(context, request));
            handler
        })),+])),*]
    };
}

/// Every resource but those that answer while the daemon starts (`health`).
#[rustfmt::skip]
const ROUTES: &[(&str, &[(&str, Handler)])] = routes! {
    "/status"                              { GET status::cuzk }
    "/v1/status"                           { GET status::status }
    "/v1/blobs"                            { POST blobs::post }
    "/v1/blobs/{}"                         { HEAD blobs::head, PUT blobs::put }
    "/v1/circuits"                         { GET circuits::list }
    "/v1/circuits/{}"                      { GET circuits::show, PUT circuits::put, DELETE circuits::delete }
    "/v1/circuits/{}/vk"                   { GET circuits::vk }
    "/v1/circuits/{}/prove"                { POST prove::prove }
    "/v1/admin/backup"                     { POST backup::backup }
    "/v1/params"                           { GET params::list }
    "/v1/params/{}"                        { GET params::show }
    "/v1/params/{}/evict"                  { POST params::evict }
    "/v1/params/{}/pin"                    { POST params::pin }
    "/v1/params/{}/preload"                { POST params::preload }
    "/v1/params/{}/unpin"                  { POST params::unpin }
    "/v1/params/{}/verify"                 { POST params::verify }
    "/v1/verify"                           { POST verify::verify }
    "/v1/jobs"                             { GET jobs::list, POST jobs::submit }
    "/v1/jobs/{}"                          { GET jobs::show }
    "/v1/jobs/{}/cancel"                   { POST jobs::cancel }
    "/v1/jobs/{}/retry"                    { POST jobs::retry }
    "/v1/jobs/{}/events"                   { GET events::of_job }
    "/v1/jobs/{}/partitions"               { GET partitions::list }
    "/v1/jobs/{}/partitions/{}"            { GET partitions::show }
    "/v1/jobs/{}/partitions/{}/proof"      { GET partitions::proof }
    "/v1/jobs/{}/partitions/{}/public"     { GET partitions::public }
    "/v1/jobs/{}/proof"                    { GET proofs::proof }
    "/v1/jobs/{}/public"                   { GET proofs::public }
    "/v1/jobs/{}/results"                  { GET proofs::results }
};

/// Finds the way for a request.
pub(super) fn find(method: &Method, path: &str) -> Target {
    for (pattern, methods) in ROUTES {
        let Some(params) = matches(pattern, path) else {
            continue;
        };
        let named = |name: &str| methods.iter().find(|(method, _)| *method == name);
        // What can be read can be asked for its headers alone.
        let found = named(method.as_str()).or_else(|| named("GET").filter(|_| *method == Method::HEAD));
        return match found {
            Some((_, handler)) => Target::Found(*handler, params),
            None => Target::OtherMethods(allowed(methods)),
        };
    }
    Target::Nothing
}

fn allowed(methods: &[(&str, Handler)]) -> Vec<Method> {
    let mut allowed: Vec<Method> = methods
        .iter()
        .filter_map(|(method, _)| method.parse().ok())
        .collect();
    if allowed.contains(&Method::GET) && !allowed.contains(&Method::HEAD) {
        allowed.push(Method::HEAD);
    }
    allowed
}

/// What stands for each `{}` of the pattern, if the path is of its shape.
fn matches(pattern: &str, path: &str) -> Option<Vec<String>> {
    let mut params = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected == "{}" {
            params.push(percent::decode(part).filter(|part| !part.is_empty())?);
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(params)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(method: Method, path: &str) -> String {
        match find(&method, path) {
            Target::Found(_, params) => format!("found {}", params.join(" ")),
            Target::OtherMethods(methods) => methods.iter().map(Method::as_str).collect::<Vec<_>>().join(","),
            Target::Nothing => "nothing".to_owned(),
        }
    }

    #[test]
    fn a_path_leads_to_one_resource_and_names_its_methods() {
        assert_eq!(target(Method::GET, "/v1/jobs/7/partitions/3/proof"), "found 7 3");
        assert_eq!(target(Method::HEAD, "/v1/jobs/7"), "found 7");
        assert_eq!(target(Method::PUT, "/v1/blobs/sha256%3Aab"), "found sha256:ab");
        assert_eq!(target(Method::DELETE, "/v1/jobs"), "GET,POST,HEAD");
        assert_eq!(target(Method::GET, "/v1/blobs/x"), "HEAD,PUT");
        for path in [
            "/",
            "",
            "/v1",
            "/v1/jobs/",
            "/v1//jobs",
            "/v1/jobs/7/partitions/",
            "/v1/jobs/7/x",
            "/V1/jobs",
        ] {
            assert_eq!(target(Method::GET, path), "nothing", "{path}");
        }
    }
}
