//! The requests that are answered without a token: what lies behind links.

use super::operations::Matter::{Bytes, Json, None as Nothing, Zip};
use super::operations::{Operation, operation};

const PASS: &[&str] = &["Syncline-Link-Pass"];
const PASS_AND_PAGE: &[&str] = &["Syncline-Link-Pass", "start_after", "limit"];
const PASS_AND_READ: &[&str] = &["Syncline-Link-Pass", "If-None-Match", "Range", "If-Range"];

pub(super) const PUBLIC: &[Operation] = &[
    operation(
        ("get", "/public/{secret}"),
        ("describeLink", "What lies behind a link"),
        PASS,
        Nothing,
        &[(200, Json("PublicLink"))],
    ),
    operation(
        ("post", "/public/{secret}/unlock"),
        ("unlockLink", "Turn the password of a link into a pass, which counts for an hour"),
        &[],
        Json("LinkPassword"),
        &[(200, Json("LinkPass"))],
    ),
    operation(
        ("get", "/public/{secret}/folders"),
        ("listLinkedFolder", "What is in the folder of a link"),
        PASS_AND_PAGE,
        Nothing,
        &[(200, Json("PublicPage"))],
    ),
    operation(
        ("get", "/public/{secret}/folders/{path}"),
        ("listFolderBehindLink", "What is in a folder below the one of a link"),
        PASS_AND_PAGE,
        Nothing,
        &[(200, Json("PublicPage"))],
    ),
    operation(
        ("get", "/public/{secret}/content"),
        ("getLinkedFile", "The file of a link"),
        PASS_AND_READ,
        Nothing,
        &[(200, Bytes), (206, Bytes), (304, Nothing)],
    ),
    operation(
        ("head", "/public/{secret}/content"),
        ("headLinkedFile", "Length and time of the file of a link"),
        PASS,
        Nothing,
        &[(200, Nothing), (304, Nothing)],
    ),
    operation(
        ("get", "/public/{secret}/content/{path}"),
        ("getFileBehindLink", "A file below the folder of a link"),
        PASS_AND_READ,
        Nothing,
        &[(200, Bytes), (206, Bytes), (304, Nothing)],
    ),
    operation(
        ("head", "/public/{secret}/content/{path}"),
        ("headFileBehindLink", "Length and time of a file below the folder of a link"),
        PASS,
        Nothing,
        &[(200, Nothing), (304, Nothing)],
    ),
    operation(
        ("get", "/public/{secret}/archive"),
        ("getLinkedArchive", "The folder of a link with everything in it, as a ZIP file"),
        PASS,
        Nothing,
        &[(200, Zip)],
    ),
    operation(
        ("head", "/public/{secret}/archive"),
        ("headLinkedArchive", "The length of that ZIP file"),
        PASS,
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("get", "/public/{secret}/archive/{path}"),
        ("getArchiveBehindLink", "A folder below the one of a link, as a ZIP file"),
        PASS,
        Nothing,
        &[(200, Zip)],
    ),
    operation(
        ("head", "/public/{secret}/archive/{path}"),
        ("headArchiveBehindLink", "The length of that ZIP file"),
        PASS,
        Nothing,
        &[(200, Nothing)],
    ),
];
