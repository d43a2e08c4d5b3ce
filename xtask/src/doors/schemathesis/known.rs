//! What schemathesis finds fault with and that stays so, each with its reason.

use super::super::finding::Exception;
use super::NAME;

const fn known(
    whats: &'static [&'static str],
    says: &'static [&'static str],
    why: &'static str,
) -> Exception {
    Exception { tool: NAME, part: "", whats, says, why }
}

/// Something that fits the document was refused.
const REFUSED: &str = "positive_data_acceptance, 400";

/// The same, where the body could not be read.
const NOT_UNDERSTOOD: &str = "positive_data_acceptance, 422";

/// Something that does not fit the document was done.
const DONE: &str = "negative_data_rejection, 20";

/// The calls that announce how long a pack is.
const ANNOUNCED: &[&str] = &[
    "POST /workspaces/{workspace}/packs/{pack}/direct",
    "PUT /workspaces/{workspace}/packs/{pack}/direct",
];

/// All of it.
pub(in super::super) const EXCEPTIONS: &[Exception] = &[
    known(
        &[],
        &["positive_data_acceptance, 412"],
        "the version that `If-Match` names is not there, or something is where `If-None-Match` wants nothing; the tool does not know 412 as an answer to that",
    ),
    known(
        &[],
        &["negative_data_rejection, 412"],
        "an `If-Match` of a form that is not ours is compared like any, and is not there; the tool does not take 412 for a refusal",
    ),
    known(
        &[],
        &[REFUSED, "If-None-Match is invalid"],
        "the tool takes an empty header for one that fits the pattern",
    ),
    known(
        &["POST /workspaces"],
        &[REFUSED, "genesis is invalid"],
        "bytes at random are no genesis",
    ),
    known(
        &["PUT /workspaces/{workspace}/packs/{pack}", "PUT /workspaces/{workspace}/objects/{key}"],
        &[NOT_UNDERSTOOD, "the bytes have another hash"],
        "bytes at random are not those that the name says",
    ),
    known(
        &[],
        &[REFUSED, "the body that arrived has another one"],
        "a checksum at random is not that of the body",
    ),
    known(
        &["POST /public/{secret}/unlock"],
        &[REFUSED, "the link wants none"],
        "the link that is there has no password",
    ),
    known(
        &[],
        &[REFUSED, "is followed by no two digits"],
        "paths and names are percent-encoded, also in a query and in JSON, which no schema says",
    ),
    known(
        &[],
        &[NOT_UNDERSTOOD, "the request cannot be understood"],
        "JSON Schema takes 685.0 for a whole number, and numbers of any length; the server takes neither",
    ),
    known(
        &["POST /tokens", "PATCH /devices/{device}", "POST /login", "POST /sign-in/oidc"],
        &[REFUSED, "device name is invalid"],
        "a name has at most 64 bytes, of which a letter may have four, and no control characters; a schema counts letters",
    ),
    known(
        &["DELETE /tokens/{token}"],
        &["ensure_resource_availability, 404", "there is no token"],
        "the tool takes the secret of a token that it has made for its id",
    ),
    known(
        &["PUT /workspaces/{workspace}/members/{user}"],
        &[REFUSED, "owns the workspace"],
        "the owner of a workspace is no member of it",
    ),
    known(
        &[],
        &[REFUSED, "contains a zero byte"],
        "a name has no zero byte, however it is written",
    ),
    known(
        ANNOUNCED,
        &[REFUSED, "the length of the pack is expected"],
        "JSON Schema takes 685.0 for a whole number; the server does not",
    ),
    known(
        ANNOUNCED,
        &["negative_data_rejection, 413"],
        "who announces a pack that is too long is refused by 413, which the tool does not take for a refusal",
    ),
    known(
        &["POST /workspaces/{workspace}/links"],
        &[DONE, "Value greater than maximum"],
        "a number above 2^53, which not every reader of JSON reads as it is, counts as it is",
    ),
    known(
        &[],
        &[DONE, "limit: Value greater than maximum"],
        "a `limit` above 2^53 counts as 1,000",
    ),
    known(
        &[],
        &[DONE, "C-Checksum"],
        "a checksum of a kind that is not known here is passed over, as programs expect who know other kinds",
    ),
    known(&[], &[DONE, "yncline-Link-Pass"], "at a link without a password nobody looks at a pass"),
    known(
        &[
            "PUT /workspaces/{workspace}/objects/{key}",
            "GET /workspaces/{workspace}/objects/{key}",
            "HEAD /workspaces/{workspace}/objects/{key}",
            "DELETE /workspaces/{workspace}/objects/{key}",
        ],
        &["not tried: Too many generated examples are filtered out"],
        "too few strings at random are keys",
    ),
];
