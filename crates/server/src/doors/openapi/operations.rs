//! The requests that are answered, by room.

/// What a body is made of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Matter {
    /// Nothing.
    None,
    /// JSON of a schema.
    Json(&'static str),
    /// A list of a schema.
    List(&'static str),
    /// Any bytes.
    Bytes,
    /// Any bytes, or JSON of a schema.
    BytesOr(&'static str),
    /// A ZIP file.
    Zip,
    /// Events.
    Events,
}

/// A request that is answered.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// Names of parameters beside those in the path.
    pub(super) parameters: &'static [&'static str],
    pub(super) body: Matter,
    pub(super) answers: &'static [(u16, Matter)],
}

const CONDITIONS: &[&str] = &["If-Match", "If-Absent"];
const PUT_HEADERS: &[&str] = &["If-Match", "If-Absent", "X-OC-Mtime", "OC-Checksum"];
const READ_HEADERS: &[&str] = &["version", "If-None-Match", "Range", "If-Range"];

pub(super) const fn operation(
    (method, path): (&'static str, &'static str),
    (name, summary): (&'static str, &'static str),
    parameters: &'static [&'static str],
    body: Matter,
    answers: &'static [(u16, Matter)],
) -> Operation {
    Operation { method, path, name, summary, parameters, body, answers }
}

use Matter::{Bytes, Events, Json, List, None as Nothing, Zip};

pub(super) const ACCOUNTS: &[Operation] = &[
    operation(
        ("post", "/login"),
        ("login", "Sign in: makes a device and returns its token; some accounts want a code, too"),
        &[],
        Json("Login"),
        &[(200, Json("Session"))],
    ),
    operation(
        ("post", "/login/begin"),
        ("beginLogin", "Begin to sign in without sending the password (OPAQUE)"),
        &[],
        Json("LoginBegin"),
        &[(200, Json("LoginBegun"))],
    ),
    operation(
        ("post", "/login/finish"),
        (
            "finishLogin",
            "Show the proof: makes a device and returns its token; some accounts want a code, too",
        ),
        &[],
        Json("LoginProof"),
        &[(200, Json("Session"))],
    ),
    operation(
        ("post", "/logout"),
        ("logout", "Sign this device out"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/whoami"),
        ("whoami", "The account and the device that ask"),
        &[],
        Nothing,
        &[(200, Json("WhoAmI"))],
    ),
    operation(
        ("get", "/devices"),
        ("listDevices", "The devices of the account"),
        &[],
        Nothing,
        &[(200, List("Device"))],
    ),
    operation(
        ("patch", "/devices/{device}"),
        ("renameDevice", "Give a device another name"),
        &[],
        Json("Renaming"),
        &[(200, Json("Device"))],
    ),
    operation(
        ("delete", "/devices/{device}"),
        ("revokeDevice", "Sign a device out for ever"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/workspaces"),
        ("listWorkspaces", "The workspaces of the account"),
        &[],
        Nothing,
        &[(200, List("Workspace"))],
    ),
    operation(
        ("post", "/workspaces"),
        (
            "createWorkspace",
            "Make the workspace of an encoded genesis, or one of a name that the server can read",
        ),
        &[],
        Matter::BytesOr("NewWorkspace"),
        &[(200, Json("Workspace")), (201, Json("Workspace"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}"),
        ("findWorkspace", "A workspace, by id or name"),
        &[],
        Nothing,
        &[(200, Json("Workspace"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/genesis"),
        ("getGenesis", "The encoded genesis of a workspace, which never changes"),
        &[],
        Nothing,
        &[(200, Bytes)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/log"),
        ("getEntries", "Entries of the log, oldest first, as a server frame"),
        &["since", "length_max"],
        Nothing,
        &[(200, Bytes)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/log/{seq}"),
        ("getEntryHash", "The hash of an entry, by which a server that was set back is known"),
        &[],
        Nothing,
        &[(200, Json("EntryHash"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/log"),
        (
            "commit",
            "Put an encoded commit into the log, as devices do; once, however often it is sent",
        ),
        &[],
        Bytes,
        &[(200, Bytes)],
    ),
    operation(
        ("get", "/live"),
        ("openLiveConnection", "Begin a WebSocket of binary frames, for devices"),
        &["syncline-incarnation"],
        Nothing,
        &[(101, Nothing)],
    ),
];

pub(super) const SHARING: &[Operation] = &[
    operation(
        ("get", "/workspaces/{workspace}/members"),
        ("listMembers", "Who may use a workspace; members are told of its owner and themselves"),
        &[],
        Nothing,
        &[(200, List("Member"))],
    ),
    operation(
        ("put", "/workspaces/{workspace}/members/{user}"),
        ("setMember", "Let an account into a workspace, or change what it may do"),
        &[],
        Json("MemberRole"),
        &[(200, Json("Member")), (201, Json("Member"))],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/members/{user}"),
        ("removeMember", "End a membership, one's own included"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/identity"),
        (
            "ownIdentity",
            "Who the account is to others in encrypted workspaces, and what its devices open",
        ),
        &[],
        Nothing,
        &[(200, Json("Identity"))],
    ),
    operation(
        ("put", "/identity"),
        (
            "setIdentity",
            "Say once who the account is to others, or put another identity in place of that one",
        ),
        &[],
        Json("NewIdentity"),
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/users/{user}/identity"),
        (
            "identityOf",
            "What others may know of the identity of an account; compare its fingerprint",
        ),
        &[],
        Nothing,
        &[(200, Json("Identity"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/links"),
        ("listLinks", "The links into a workspace; to who is not its owner the own ones"),
        &[],
        Nothing,
        &[(200, List("Link"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/links"),
        ("addLink", "Make a link for people without an account; its secret is in this answer only"),
        &[],
        Json("NewLink"),
        &[(201, Json("Link"))],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/links/{link}"),
        ("removeLink", "Take a link back"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/tokens"),
        ("listTokens", "The tokens that the account has made for other programs"),
        &[],
        Nothing,
        &[(200, List("Token"))],
    ),
    operation(
        ("post", "/tokens"),
        ("addToken", "Make a token for another program; it is shown in this answer only"),
        &[],
        Json("NewToken"),
        &[(201, Json("Token"))],
    ),
    operation(
        ("delete", "/tokens/{token}"),
        ("removeToken", "Make a token worthless"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
];

pub(super) const OBJECTS: &[Operation] = &[
    operation(
        ("get", "/workspaces/{workspace}/objects"),
        ("listObjects", "Packs and pages by key and length"),
        &["prefix", "start_after", "limit"],
        Nothing,
        &[(200, List("Object"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/objects/{key}"),
        ("getObject", "An object or a part of it"),
        &["Range"],
        Nothing,
        &[(200, Bytes), (206, Bytes)],
    ),
    operation(
        ("head", "/workspaces/{workspace}/objects/{key}"),
        ("headObject", "The length of an object"),
        &[],
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("put", "/workspaces/{workspace}/objects/{key}"),
        ("putObject", "Store an object that its key names"),
        &["If-None-Match"],
        Bytes,
        &[(200, Nothing), (201, Nothing)],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/objects/{key}"),
        ("deleteObject", "Remove a page, or a pack that a cleanup has condemned"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/packs/{pack}"),
        ("getPack", "A pack or a part of it"),
        &["Range"],
        Nothing,
        &[(200, Bytes), (206, Bytes)],
    ),
    operation(
        ("head", "/workspaces/{workspace}/packs/{pack}"),
        ("headPack", "The length of a pack"),
        &[],
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/packs/{pack}/direct"),
        ("askToReadPack", "A request that reads a pack straight from the store"),
        &[],
        Nothing,
        &[(200, Json("Way"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/packs/{pack}/direct"),
        ("askToBringPack", "A request that brings a pack straight to the store"),
        &[],
        Json("Announced"),
        &[(200, Json("Way"))],
    ),
    operation(
        ("put", "/workspaces/{workspace}/packs/{pack}/direct"),
        ("packWasBrought", "Say that a pack was brought; it is read and compared with its name"),
        &[],
        Json("Announced"),
        &[(200, Nothing), (201, Nothing)],
    ),
    operation(
        ("put", "/workspaces/{workspace}/packs/{pack}"),
        ("putPack", "Store a pack under the hash of its bytes"),
        &["If-None-Match"],
        Bytes,
        &[(200, Nothing), (201, Nothing)],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/packs/{pack}"),
        ("deletePack", "Remove a pack that a cleanup has condemned"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
];

pub(super) const FILES: &[Operation] = &[
    operation(
        ("get", "/workspaces/{workspace}/files/{path}"),
        ("getFile", "A file, a part of it, or an older version"),
        READ_HEADERS,
        Nothing,
        &[(200, Bytes), (206, Bytes), (304, Nothing)],
    ),
    operation(
        ("head", "/workspaces/{workspace}/files/{path}"),
        ("headFile", "Length, time and version of a file"),
        &["version", "If-None-Match"],
        Nothing,
        &[(200, Nothing), (304, Nothing)],
    ),
    operation(
        ("put", "/workspaces/{workspace}/files/{path}"),
        ("putFile", "Put a file"),
        PUT_HEADERS,
        Bytes,
        &[(200, Json("Node")), (201, Json("Node"))],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/files/{path}"),
        ("deleteFile", "Delete a file, or a folder with everything in it"),
        CONDITIONS,
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/chunks/{path}"),
        ("getChunks", "The chunk list of a file, against which a delta is made"),
        &["version", "If-None-Match"],
        Nothing,
        &[(200, Bytes), (304, Nothing)],
    ),
    operation(
        ("post", "/workspaces/{workspace}/delta/{path}"),
        ("putDelta", "Put a new version of a file as what has changed in it"),
        &["If-Match", "If-Absent", "X-OC-Mtime"],
        Bytes,
        &[(200, Json("Node")), (202, Bytes)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/nodes"),
        ("describeRoot", "The root folder"),
        &[],
        Nothing,
        &[(200, Json("Node"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/nodes/{path}"),
        ("describeNode", "A file, folder or link"),
        &[],
        Nothing,
        &[(200, Json("Node"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/folders"),
        ("listRoot", "What is in the root folder"),
        &["start_after", "limit"],
        Nothing,
        &[(200, Json("FolderPage"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/folders/{path}"),
        ("listFolder", "What is in a folder"),
        &["start_after", "limit"],
        Nothing,
        &[(200, Json("FolderPage"))],
    ),
    operation(
        ("put", "/workspaces/{workspace}/folders/{path}"),
        ("makeFolder", "Make a folder"),
        &[],
        Nothing,
        &[(201, Json("Node"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/archive"),
        ("getWorkspaceArchive", "All files and folders as a ZIP file"),
        &[],
        Nothing,
        &[(200, Zip)],
    ),
    operation(
        ("head", "/workspaces/{workspace}/archive"),
        ("headWorkspaceArchive", "The length of that ZIP file"),
        &[],
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/archive/{path}"),
        ("getFolderArchive", "A folder with everything in it, as a ZIP file"),
        &[],
        Nothing,
        &[(200, Zip)],
    ),
    operation(
        ("head", "/workspaces/{workspace}/archive/{path}"),
        ("headFolderArchive", "The length of that ZIP file"),
        &[],
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("get", "/workspaces/{workspace}/versions/{path}"),
        ("listVersions", "The versions of a node, oldest first"),
        &["cursor", "limit"],
        Nothing,
        &[(200, Json("Versions"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/deleted"),
        ("listDeleted", "What was deleted, the newest first"),
        &["deleted_cursor", "limit"],
        Nothing,
        &[(200, Json("DeletedPage"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/search"),
        (
            "searchNames",
            "Files and folders whose names have all words that are looked for, the best first",
        ),
        &["q", "search_cursor", "limit"],
        Nothing,
        &[(200, Json("SearchPage"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/activity"),
        ("listActivity", "What happened, the newest first"),
        &["activity_cursor", "limit"],
        Nothing,
        &[(200, Json("ActivityPage"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/usage"),
        ("showUsage", "What the workspace holds by kinds of files, and what came on which day"),
        &[],
        Nothing,
        &[(200, Json("Usage"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/conflicts"),
        (
            "listConflicts",
            "What was kept beside each other and waits for a decision, the newest first",
        ),
        &["deleted_cursor", "limit"],
        Nothing,
        &[(200, Json("ConflictPage"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/conflicts"),
        ("markConflict", "Mark a file that was kept beside another one"),
        &[],
        Json("Marking"),
        &[(200, Json("Node"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/resolve"),
        ("resolveConflict", "Decide a conflict: keep the copy, the original or both"),
        &[],
        Json("Resolution"),
        &[(200, Json("Node"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/move"),
        ("moveNode", "Move or rename"),
        CONDITIONS,
        Json("Relocation"),
        &[(200, Json("Node")), (201, Json("Node"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/copy"),
        ("copyNode", "Copy"),
        CONDITIONS,
        Json("Relocation"),
        &[(200, Json("Node")), (201, Json("Node"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/restore"),
        ("restoreVersion", "Bring a version back, or what was deleted"),
        &[],
        Json("Restoration"),
        &[(200, Json("Node")), (201, Json("Node"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/events"),
        ("listen", "Hear of every new entry of the log"),
        &[],
        Nothing,
        &[(200, Events)],
    ),
    operation(
        ("post", "/workspaces/{workspace}/uploads"),
        ("beginUpload", "Begin a file that comes in pieces"),
        &[],
        Json("Beginning"),
        &[(201, Json("Upload"))],
    ),
    operation(
        ("get", "/workspaces/{workspace}/uploads/{upload}"),
        ("describeUpload", "How far an upload is"),
        &[],
        Nothing,
        &[(200, Json("Upload"))],
    ),
    operation(
        ("head", "/workspaces/{workspace}/uploads/{upload}"),
        ("headUpload", "How far an upload is, in the header"),
        &[],
        Nothing,
        &[(200, Nothing)],
    ),
    operation(
        ("patch", "/workspaces/{workspace}/uploads/{upload}"),
        ("continueUpload", "Send the next piece"),
        &["Upload-Offset"],
        Bytes,
        &[(200, Json("Upload"))],
    ),
    operation(
        ("delete", "/workspaces/{workspace}/uploads/{upload}"),
        ("endUpload", "Give an upload up"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
    operation(
        ("post", "/workspaces/{workspace}/uploads/{upload}/commit"),
        ("commitUpload", "Put the file whose pieces have come"),
        PUT_HEADERS,
        Nothing,
        &[(200, Json("Node")), (201, Json("Node"))],
    ),
    operation(
        ("post", "/workspaces/{workspace}/uploads/{upload}/delta"),
        ("commitDelta", "Put a new version of a file by the delta whose pieces have come"),
        &["If-Match", "If-Absent", "X-OC-Mtime"],
        Nothing,
        &[(200, Json("Node")), (202, Bytes)],
    ),
];
