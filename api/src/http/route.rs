//! Which path and method leads where.

use futures_util::future::BoxFuture;
use warp::http::Method;

use super::answer::Outcome;
use super::context::Context;
use super::request::Request;
use super::{
    backup, blobs, circuits, events, jobs, params, partitions, percent, proofs, prove, status, tokens, verify,
};
use crate::tokens::Scope;

/// Answers one request.
pub(super) type Handler = for<'a> fn(&'a Context, &'a mut Request) -> BoxFuture<'a, Outcome>;

/// Where a path leads.
pub(super) enum Target {
    /// To a resource with this method, and what it needs.
    Found(Handler, Scope, Vec<String>),
    /// To a resource without it; these are there.
    OtherMethods(Vec<Method>),
    /// Nowhere.
    Nothing,
}

macro_rules! routes {
    ($($pattern:literal { $($method:ident $scope:ident $handler:path),+ $(,)? })*) => {
        &[$(($pattern, &[$((stringify!($method), Scope::$scope, {
            let handler: Handler = |context, request| Box::pin($handler(context, request));
            handler
        })),+])),*]
    };
}

/// A method of a resource, what a token must allow for it, and what answers.
type Way = (&'static str, Scope, Handler);

/// Every resource but those that answer while the daemon starts (`health`).
#[rustfmt::skip]
const ROUTES: &[(&str, &[Way])] = routes! {
    "/status"                              { GET Read status::cuzk }
    "/v1/status"                           { GET Read status::status }
    "/v1/blobs"                            { POST Submit blobs::post }
    "/v1/blobs/{}"                         { HEAD Submit blobs::head, PUT Submit blobs::put }
    "/v1/circuits"                         { GET Read circuits::list }
    "/v1/circuits/{}"                      { GET Read circuits::show, PUT Admin circuits::put, DELETE Admin circuits::delete }
    "/v1/circuits/{}/vk"                   { GET Read circuits::vk }
    "/v1/circuits/{}/prove"                { POST Submit prove::prove }
    "/v1/admin/backup"                     { POST Admin backup::backup }
    "/v1/tokens"                           { GET Admin tokens::list, POST Admin tokens::add }
    "/v1/tokens/{}"                        { DELETE Admin tokens::remove }
    "/v1/params"                           { GET Read params::list }
    "/v1/params/{}"                        { GET Read params::show }
    "/v1/params/{}/evict"                  { POST Admin params::evict }
    "/v1/params/{}/pin"                    { POST Admin params::pin }
    "/v1/params/{}/preload"                { POST Admin params::preload }
    "/v1/params/{}/unpin"                  { POST Admin params::unpin }
    "/v1/params/{}/verify"                 { POST Admin params::verify }
    "/v1/verify"                           { POST Read verify::verify }
    "/v1/jobs"                             { GET Read jobs::list, POST Submit jobs::submit }
    "/v1/jobs/{}"                          { GET Read jobs::show }
    "/v1/jobs/{}/cancel"                   { POST Submit jobs::cancel }
    "/v1/jobs/{}/retry"                    { POST Submit jobs::retry }
    "/v1/jobs/{}/events"                   { GET Read events::of_job }
    "/v1/jobs/{}/partitions"               { GET Read partitions::list }
    "/v1/jobs/{}/partitions/{}"            { GET Read partitions::show }
    "/v1/jobs/{}/partitions/{}/proof"      { GET Read partitions::proof }
    "/v1/jobs/{}/partitions/{}/public"     { GET Read partitions::public }
    "/v1/jobs/{}/proof"                    { GET Read proofs::proof }
    "/v1/jobs/{}/public"                   { GET Read proofs::public }
    "/v1/jobs/{}/results"                  { GET Read proofs::results }
};

/// Finds the way for a request.
pub(super) fn find(method: &Method, path: &str) -> Target {
    for (pattern, methods) in ROUTES {
        let Some(params) = matches(pattern, path) else {
            continue;
        };
        let named = |name: &str| methods.iter().find(|(method, ..)| *method == name);
        // What can be read can be asked for its headers alone.
        let found = named(method.as_str()).or_else(|| named("GET").filter(|_| *method == Method::HEAD));
        return match found {
            Some((_, scope, handler)) => Target::Found(*handler, *scope, params),
            None => Target::OtherMethods(allowed(methods)),
        };
    }
    Target::Nothing
}

fn allowed(methods: &[Way]) -> Vec<Method> {
    let mut allowed: Vec<Method> = methods
        .iter()
        .filter_map(|(method, ..)| method.parse().ok())
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
            Target::Found(_, _, params) => format!("found {}", params.join(" ")),
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
