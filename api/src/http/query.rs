//! Query parameters, read strictly: an unknown one is 400, so that a typo never silently lists everything.

use proofkeep_engine::problem::Problem;

use super::percent;
use super::problem::{malformed, shown};

/// The parameters of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads `raw`, whose names must be among `known`.
    pub fn parse(raw: &str, known: &[&str]) -> Result<Self, Problem> {
        let mut pairs = Vec::new();
        for part in raw.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let read = |text: &str| percent::decode(&text.replace('+', " "));
            let (Some(name), Some(value)) = (read(name), read(value)) else {
                let detail = format!(
                    "the query parameter {:?} is not percent-encoded UTF-8",
                    shown(part)
                );
                return Err(malformed("malformed-query", detail));
            };
            if !known.contains(&name.as_str()) {
                return Err(unknown(&name, known));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// Every value of a parameter that may be repeated.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that is given once or not at all.
    pub fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self
            .0
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            return Err(malformed(
                "malformed-query",
                format!("the query parameter {name} is given twice"),
            ));
        }
        Ok(first)
    }

    /// The same, read by `parse`.
    pub fn read<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.one(name)? else {
            return Ok(None);
        };
        parse(text).map(Some).ok_or_else(|| wrong(name, expected, text))
    }

    /// A page's size: `limit`, from 1 to `most`, or `usual`.
    pub fn limit(&self, usual: usize, most: usize) -> Result<usize, Problem> {
        let read = |text: &str| text.parse().ok().filter(|limit| (1..=most).contains(limit));
        Ok(self
            .read("limit", &format!("1 to {most}"), read)?
            .unwrap_or(usual))
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        Ok(self
            .read(name, "true or false", |text| text.parse().ok())?
            .unwrap_or(false))
    }

    /// The parameters but `cursor`, encoded again, for the address of the next page.
    pub fn without_cursor(&self) -> String {
        let others = self.0.iter().filter(|(name, _)| name != "cursor");
        others
            .map(|(name, value)| format!("{}={}&", percent::encode(name), percent::encode(value)))
            .collect()
    }
}

/// 400 for a value that doesn't do.
pub(super) fn wrong(name: &str, expected: &str, found: &str) -> Problem {
    malformed(
        "malformed-query",
        format!("{name}: expected {expected}, found {:?}", shown(found)),
    )
}

fn unknown(name: &str, known: &[&str]) -> Problem {
    let there = if known.is_empty() {
        "there are none here".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    };
    malformed(
        "unknown-parameter",
        format!("unknown query parameter {:?}; {there}", shown(name)),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn unknown_repeated_and_broken_parameters_are_named() {
        let text = |raw: &str| {
            let query = Query::parse(raw, &["limit", "state"]);
            query.and_then(|query| query.limit(10, 100)).unwrap_err().detail
        };
        assert!(text("limt=3").contains("\"limt\"") && text("limt=3").contains("limit, state"));
        assert!(text("limit=3&limit=4").contains("twice"));
        assert!(text("limit=0").contains("1 to 100") && text("limit=%zz").contains("percent"));
        let query = Query::parse("state=a%20b&state=c+d&limit=7", &["limit", "state"]).unwrap();
        assert_eq!(query.all("state").collect::<Vec<_>>(), ["a b", "c d"]);
        assert_eq!(query.limit(10, 100).unwrap(), 7);
    }
}
