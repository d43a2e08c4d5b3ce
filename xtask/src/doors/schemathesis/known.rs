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

/// The calls that prove or set a password without sending it.
const OF_PASSWORDS: &[&str] = &[
    "POST /login/begin",
    "POST /login/finish",
    "POST /join/begin",
    "POST /join/finish",
    "POST /account/password/begin",
    "POST /account/password/finish",
];

/// The calls at a link, whose secret the tool is told.
const PUBLIC: &[&str] = &[
    "GET /public/{secret}",
    "GET /public/{secret}/folders",
    "GET /public/{secret}/archive",
    "HEAD /public/{secret}/archive",
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
        &["POST /workspaces"],
        &[REFUSED, "body is invalid: missing field"],
        "bytes at random that begin as JSON have no name in it",
    ),
    known(
        &["POST /workspaces"],
        &[REFUSED, "it looks like a workspace id"],
        "a name that looks like an id would stand for two workspaces; a schema for that is longer than the rule",
    ),
    known(
        &["POST /workspaces/{workspace}/log"],
        &[REFUSED, "commit is invalid"],
        "bytes at random are no commit",
    ),
    known(
        &["POST /workspaces/{workspace}/delta/{path}"],
        &[REFUSED, "delta is invalid"],
        "bytes at random are no messages of a delta",
    ),
    known(
        &["POST /workspaces/{workspace}/delta/{path}"],
        &["413", "a message is longer than"],
        "a message at random says that it is longer than one may be; the tool takes 413 neither for a refusal nor for an answer to what fits",
    ),
    known(
        OF_PASSWORDS,
        &[REFUSED, "the message about the password is damaged or out of turn"],
        "bytes at random are no message of a proof",
    ),
    known(
        &["GET /workspaces/{workspace}/search"],
        &[REFUSED, "cursor is invalid"],
        "bytes at random are no text, which the last part of a cursor is",
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
        &[
            "POST /tokens",
            "PATCH /devices/{device}",
            "POST /login",
            "POST /sign-in/oidc",
            "POST /join/finish",
        ],
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
        &["POST /workspaces/{workspace}/links", "GET /workspaces/{workspace}/log"],
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
        PUBLIC,
        &[DONE, "in path - "],
        "the tool has made up a wrong secret, and asks by the one that it was told",
    ),
    known(PUBLIC, &[DONE, "in header - "], "at a link without a password nobody looks at a pass"),
    known(
        PUBLIC,
        &[DONE, "in query - value greater than maximum"],
        "a `limit` above 2^53 counts as 1,000",
    ),
    known(
        PUBLIC,
        &[DONE, "in query - object with unexpected properties"],
        "what a query has beside what is known here is passed over",
    ),
    known(
        &["POST /workspaces/{workspace}/uploads"],
        &["not_a_server_error, 503", "too many uploads under way"],
        "the tool begins more uploads than there may be at once, and ends none: 503 says that there is room later",
    ),
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
