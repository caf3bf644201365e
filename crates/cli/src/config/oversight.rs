//! `[[limit]]` and `[audit]`: how often callers may call, and the audit log.

use sabir_auth::{AuditSettings, Limit, Per};
use sabir_budget::Rate;
use serde::Deserialize;
use toml::Spanned;

use super::mistake::{Mistake, Text};
use super::values::{positive, rate, size};

/// A `[[limit]]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitEntry {
    rate: Option<Spanned<String>>,
    burst: Option<Spanned<usize>>,
    quota: Option<Spanned<usize>>,
    #[serde(default)]
    per: Vec<Spanned<String>>,
    #[serde(default)]
    tools: Vec<String>,
    source: Option<String>,
}

/// An `[audit]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditEntry {
    file: Spanned<String>,
    rotate: Option<Spanned<String>>,
    keep: Option<Spanned<usize>>,
    arguments: Option<bool>,
}

/// Who may call how often, and the audit log.
#[derive(Debug, Default)]
pub(crate) struct Oversight {
    pub(crate) limits: Vec<Limit>,
    pub(crate) audit: Option<AuditSettings>,
}

/// Settles limits and the audit log.
pub(super) fn settle(
    limits: &[Spanned<LimitEntry>],
    audit: Option<&AuditEntry>,
    text: &Text<'_>,
) -> Oversight {
    let limits = limits.iter().filter_map(|file| text.checked(limit(file, text)));
    let limits = limits.collect();
    Oversight { limits, audit: audit.and_then(|file| text.checked(audited(file, text))) }
}

/// The properties by which calls share a bucket.
const PER: &str = "\"caller\", \"address\", \"tool\" or \"source\"";

fn limit(written: &Spanned<LimitEntry>, text: &Text<'_>) -> Result<Limit, Mistake> {
    let file = written.get_ref();
    let burst = text.checked(positive(file.burst.as_ref(), text)).flatten();
    let written_rate = file.rate.as_ref().and_then(|written| text.checked(rate(written, text)));
    let rate = written_rate.map(|(calls, period)| {
        let burst = burst.map_or(calls, |burst| u32::try_from(burst).unwrap_or(u32::MAX));
        Rate { calls, period, burst }
    });
    let quota = file.quota.as_ref().map(|quota| *quota.get_ref() as u64);
    let per = file.per.iter().filter_map(|written| match written.get_ref().as_str() {
        "caller" => Some(Per::Caller),
        "address" => Some(Per::Address),
        "tool" => Some(Per::Tool),
        "source" => Some(Per::Source),
        _ => text.checked(Err(text.invalid(written, "`per`", PER))),
    });
    let per = per.collect();
    let limit = Limit { per, tools: file.tools.clone(), source: file.source.clone(), rate, quota };
    if file.rate.is_none() && file.quota.is_none() {
        let what = "[[limit]]: neither `rate` nor `quota` (expected at least one)";
        let hint = "add e.g. `rate = \"10/s\"`";
        return Err(text.lacking(written.span(), what).hint(hint));
    }
    Ok(limit)
}

fn audited(file: &AuditEntry, text: &Text<'_>) -> Result<AuditSettings, Mistake> {
    let default = AuditSettings::default();
    let keep = file.keep.as_ref().map(|keep| *keep.get_ref());
    Ok(AuditSettings {
        file: match file.file.get_ref().as_str() {
            "stderr" => None,
            path => Some(text.resolve(path)),
        },
        rotate: size(file.rotate.as_ref(), text)?.map_or(default.rotate, |size| size as u64),
        keep: keep.map_or(default.keep, |keep| u32::try_from(keep).unwrap_or(u32::MAX)),
        arguments: file.arguments.unwrap_or(false),
    })
}
