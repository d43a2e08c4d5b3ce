//! What the programs of WebDAV find fault with and that stays so, each with its reason. Whatever else they find makes the task fail.

use super::finding::Exception;
use super::litmus;

const OWN_PROPERTIES: &str = "properties that programs make up are refused (403): a workspace has no place for them, and to say that they were kept would be a lie";

/// All of them.
pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        tool: litmus::NAME,
        part: "basic",
        whats: &["delete_fragment"],
        says: &["fragment"],
        why: "the fragment of an address is cut off before it arrives",
    },
    Exception {
        tool: litmus::NAME,
        part: "props",
        whats: &["propset", "propmanyns"],
        says: &["403 Forbidden"],
        why: OWN_PROPERTIES,
    },
    Exception {
        tool: litmus::NAME,
        part: "props",
        whats: &["propget"],
        says: &["No value given for property"],
        why: OWN_PROPERTIES,
    },
    Exception {
        tool: litmus::NAME,
        part: "props",
        whats: &[],
        says: &[litmus::LEFT_OUT],
        why: "it needs a property that litmus has set before",
    },
    Exception {
        tool: litmus::NAME,
        part: "locks",
        whats: &["owner_modify"],
        says: &["403 Forbidden"],
        why: OWN_PROPERTIES,
    },
];
