// Made from docs/openapi.json by `npm run generate`; changes here are lost.

export type Activity = {
  "changes": (ActivityChange)[];
  "count": number;
  "device_id": string;
  "device_name": string;
  "seq": number;
  "time": number;
};

export type ActivityChange = {
  "happened": "made" | "changed" | "renamed" | "moved" | "deleted" | "restored" | "kept_beside" | "decided";
  "id": string;
  "kind"?: "file" | "folder" | "link";
  "mode"?: number | null;
  "modified"?: number | null;
  "modified_ns"?: number | null;
  "name": string;
  "old_name": string | null;
  "path": string | null;
  "size"?: number | null;
  "target"?: string | null;
  "version": number;
};

export type ActivityPage = {
  "activity": (Activity)[];
  "next": string | null;
};

export type Announced = {
  "length": number;
};

export type Beginning = {
  "path": string;
};

export type Code = {
  "code": string;
};

export type Conflict = {
  "base": number;
  "copy": Node;
  "device_id": string | null;
  "device_name": string | null;
  "original": null | Node;
  "original_id": string;
  "seq": number | null;
  "time": number | null;
};

export type ConflictPage = {
  "conflicts": (Conflict)[];
  "count": number;
  "next": string | null;
};

export type DeletedNode = {
  "device_id": string | null;
  "device_name": string | null;
  "id": string;
  "is_in_deleted": boolean;
  "kind": "file" | "folder" | "link";
  "last_version": number;
  "mode": number | null;
  "modified": number | null;
  "modified_ns": number | null;
  "name": string;
  "path": string;
  "seq": number | null;
  "size": number | null;
  "target": string | null;
  "time": number | null;
  "version": number;
};

export type DeletedPage = {
  "next": string | null;
  "nodes": (DeletedNode)[];
};

export type Device = {
  "created": number;
  "id": string;
  "is_this": boolean;
  "last_in_sync": number | null;
  "last_seen": number;
  "name": string;
};

export type EntryHash = {
  "hash": string;
  "seq": number;
};

export type FolderPage = {
  "next": string | null;
  "nodes": (Node)[];
};

export type FoundNode = {
  "etag": string;
  "id": string;
  "is_conflict": boolean;
  "kind": "file" | "folder" | "link";
  "marks": (Mark)[];
  "mode": number | null;
  "modified": number | null;
  "modified_ns": number | null;
  "mounted": string | null;
  "name": string;
  "path": string;
  "size": number | null;
  "target": string | null;
  "version": number;
};

export type Identity = {
  "locked"?: string;
  "public": string;
};

export type Invitation = {
  "expires": number;
  "name": string | null;
  "quota_bytes": number | null;
};

export type InvitationSecret = {
  "secret": string;
};

export type JoinBegin = {
  "message": string;
  "secret": string;
  "user": string;
};

export type JoinBegun = {
  "message": string;
};

export type JoinProof = {
  "device_name": string;
  "message": string;
  "secret": string;
  "user": string;
};

export type Link = {
  "created": number;
  "downloads": number;
  "downloads_max": number | null;
  "expires": number | null;
  "has_password": boolean;
  "id": string;
  "maker": string;
  "path": string | null;
  "secret"?: string;
  "state": "open" | "expired" | "used_up" | "suspended";
};

export type LinkPass = {
  "expires_in": number;
  "pass": string;
};

export type LinkPassword = {
  "password": string;
};

export type Login = {
  "code"?: string | null;
  "device_name": string;
  "password": string;
  "user": string;
};

export type LoginBegin = {
  "message": string;
  "user": string;
};

export type LoginBegun = {
  "message": string;
  "session": string;
};

export type LoginProof = {
  "code"?: string | null;
  "device_name": string;
  "message": string;
  "session": string;
};

export type Mark = {
  "end": number;
  "start": number;
};

export type Marking = {
  "base": number;
  "node": string;
  "original": string;
  "version": number;
};

export type Member = {
  "added": number | null;
  "role": "owner" | "edit" | "view";
  "user": string;
};

export type MemberRole = {
  "role": "edit" | "view";
};

export type NewIdentity = {
  "locked": string;
  "public": string;
  "replaces"?: string | null;
};

export type NewLink = {
  "downloads_max"?: number | null;
  "expires_in_seconds"?: number | null;
  "password"?: string | null;
  "path"?: string;
};

export type NewPassword = {
  "new_password": string;
  "password": string;
  "sign_out_others"?: boolean;
};

export type NewSubject = {
  "authorization_code": string;
  "code_verifier": string;
  "nonce": string;
  "password": string;
  "redirect_uri": string;
};

export type NewToken = {
  "expires_in_seconds"?: number | null;
  "name": string;
  "scope": "read" | "write";
  "workspace"?: string | null;
};

export type NewWorkspace = {
  "name": string;
};

export type Node = {
  "etag": string;
  "id": string;
  "is_conflict": boolean;
  "kind": "file" | "folder" | "link";
  "mode": number | null;
  "modified": number | null;
  "modified_ns": number | null;
  "mounted": string | null;
  "name": string;
  "path": string;
  "size": number | null;
  "target": string | null;
  "version": number;
};

export type Object = {
  "key": string;
  "size": number;
};

export type OwnPassword = {
  "password": string;
};

export type PasswordBegin = {
  "message": string;
  "new_message": string;
};

export type PasswordBegun = {
  "message": string;
  "new_message": string;
  "session": string;
};

export type PasswordChanged = {
  "identities": number;
  "signed_out": number;
};

export type PasswordProof = {
  "message": string;
  "new_message": string;
  "session": string;
  "sign_out_others"?: boolean;
};

export type Problem = {
  "code": string;
  "detail": string;
  "status": number;
  "title": string;
  "type": string;
};

export type Provider = {
  "authorization_endpoint": string;
  "client_id": string;
  "issuer": string;
  "scope": string;
};

export type ProviderLogin = {
  "authorization_code": string;
  "code"?: string | null;
  "code_verifier": string;
  "device_name": string;
  "nonce": string;
  "redirect_uri": string;
};

export type PublicLine = {
  "kind": "file" | "folder" | null;
  "modified": number | null;
  "name": string | null;
  "path": string;
  "size": number | null;
};

export type PublicLink = {
  "expires": number | null;
  "is_limited": boolean;
  "kind": "file" | "folder" | null;
  "modified": number | null;
  "name": string | null;
  "needs_password": boolean;
  "size": number | null;
};

export type PublicPage = {
  "next": string | null;
  "nodes": (PublicLine)[];
};

export type RecoveryCodes = {
  "recovery_codes": (string)[];
};

export type Relocation = {
  "from": string;
  "overwrite"?: boolean;
  "to": string;
};

export type Renaming = {
  "name": string;
};

export type Resolution = {
  "keep": "copy" | "original" | "both";
  "name"?: string | null;
  "node": string;
  "original_version"?: number | null;
  "version": number;
};

export type Restoration = {
  "node": string;
  "version"?: number | null;
};

export type SearchPage = {
  "next": string | null;
  "nodes": (FoundNode)[];
};

export type SecondFactor = {
  "recovery_codes_left": number;
  "since": number | null;
  "state": "off" | "waiting" | "on";
};

export type Session = {
  "account": string;
  "device_id": string;
  "token": string;
};

export type Subject = {
  "issuer": string;
  "since": number;
  "subject": string;
};

export type Token = {
  "created": number;
  "expires": number | null;
  "id": string;
  "last_used": number;
  "name": string;
  "scope": "read" | "write";
  "token"?: string;
  "workspace": string | null;
};

export type TotpOffer = {
  "secret": string;
  "uri": string;
};

export type Upload = {
  "expires_in": number;
  "id": string;
  "offset": number;
  "path": string;
};

export type Usage = {
  "content": UsageContent | null;
  "days": (UsageOfDay)[];
  "days_since": number | null;
  "seq": number;
  "used_bytes": number;
};

export type UsageContent = {
  "deleted": UsageOfFiles;
  "kinds": (UsageOfKind)[];
  "packs": UsageOfPacks;
};

export type UsageOfDay = {
  "day": number;
  "stored_bytes": number;
};

export type UsageOfFiles = {
  "bytes": number;
  "files": number;
};

export type UsageOfKind = {
  "bytes": number;
  "files": number;
  "kind": "image" | "video" | "audio" | "document" | "archive" | "text" | "other";
};

export type UsageOfPacks = {
  "content_bytes": number | null;
  "count": number;
  "stored_bytes": number;
};

export type Version = {
  "device_id": string;
  "device_name": string;
  "is_deleted": boolean;
  "kind"?: string;
  "mode"?: number | null;
  "modified"?: number | null;
  "modified_ns"?: number | null;
  "seq": number;
  "size"?: number | null;
  "target"?: string | null;
  "time": number;
  "version": number;
};

export type Versions = {
  "next": string | null;
  "node": string;
  "versions": (Version)[];
};

export type Way = {
  "is_stored": boolean;
  "request": null | {
  "expires_in_seconds": number;
  "headers": ({
  "name": string;
  "value": string;
})[];
  "url": string;
};
};

export type WhoAmI = {
  "account": string;
  "device_id": string;
  "device_name": string;
  "quota_bytes": number | null;
  "used_bytes": number;
};

export type Workspace = {
  "head_hash": string;
  "head_seq": number;
  "id": string;
  "mode": "plain" | "sealed";
  "name": string;
  "owner": string;
  "role": "owner" | "edit" | "view";
  "used_bytes": number;
};

/** What may be asked: method and path, what goes with it, and what comes back. */
export interface Operations {
  /** Who the account is at providers of OpenID Connect. */
  "GET /account/oidc": { body: undefined; answer: (Subject)[] };
  /** Let a person at the provider sign in to the account. */
  "POST /account/oidc": { body: NewSubject; answer: Subject };
  /** End that; devices that are signed in stay so. */
  "DELETE /account/oidc/{subject}": { body: undefined; answer: undefined };
  /** Give the account another password; may sign out all others. */
  "POST /account/password": { body: NewPassword; answer: PasswordChanged };
  /** Begin to prove the password and to set another one, without sending either (OPAQUE). */
  "POST /account/password/begin": { body: PasswordBegin; answer: PasswordBegun };
  /** Show the proof, and set the other one. */
  "POST /account/password/finish": { body: PasswordProof; answer: PasswordChanged };
  /** Whether a sign-in wants a code beside the password. */
  "GET /account/totp": { body: undefined; answer: SecondFactor };
  /** Make a secret for an app, which waits for its first code. */
  "POST /account/totp": { body: OwnPassword; answer: TotpOffer };
  /** Show the first code; the recovery codes are in this answer only. */
  "POST /account/totp/confirm": { body: Code; answer: RecoveryCodes };
  /** Go back to the password alone, by a code or a recovery code. */
  "POST /account/totp/disable": { body: Code; answer: undefined };
  /** The devices of the account. */
  "GET /devices": { body: undefined; answer: (Device)[] };
  /** Give a device another name. */
  "PATCH /devices/{device}": { body: Renaming; answer: Device };
  /** Sign a device out for ever. */
  "DELETE /devices/{device}": { body: undefined; answer: undefined };
  /** Who the account is to others in encrypted workspaces, and what its devices open. */
  "GET /identity": { body: undefined; answer: Identity };
  /** Say once who the account is to others, or put another identity in place of that one. */
  "PUT /identity": { body: NewIdentity; answer: undefined };
  /** What an invitation is for, by its secret. */
  "POST /join": { body: InvitationSecret; answer: Invitation };
  /** Begin to make an account, without sending its password (OPAQUE). */
  "POST /join/begin": { body: JoinBegin; answer: JoinBegun };
  /** Make the account and a device of it, and return its token; ends the invitation. */
  "POST /join/finish": { body: JoinProof; answer: Session };
  /** Begin a WebSocket of binary frames, for devices. */
  "GET /live": { body: undefined; answer: undefined };
  /** Sign in: makes a device and returns its token; some accounts want a code, too. */
  "POST /login": { body: Login; answer: Session };
  /** Begin to sign in without sending the password (OPAQUE). */
  "POST /login/begin": { body: LoginBegin; answer: LoginBegun };
  /** Show the proof: makes a device and returns its token; some accounts want a code, too. */
  "POST /login/finish": { body: LoginProof; answer: Session };
  /** Sign this device out. */
  "POST /logout": { body: undefined; answer: undefined };
  /** What lies behind a link. */
  "GET /public/{secret}": { body: undefined; answer: PublicLink };
  /** The folder of a link with everything in it, as a ZIP file. */
  "GET /public/{secret}/archive": { body: undefined; answer: Response };
  /** The length of that ZIP file. */
  "HEAD /public/{secret}/archive": { body: undefined; answer: undefined };
  /** A folder below the one of a link, as a ZIP file. */
  "GET /public/{secret}/archive/{path}": { body: undefined; answer: Response };
  /** The length of that ZIP file. */
  "HEAD /public/{secret}/archive/{path}": { body: undefined; answer: undefined };
  /** The file of a link. */
  "GET /public/{secret}/content": { body: undefined; answer: Response };
  /** Length and time of the file of a link. */
  "HEAD /public/{secret}/content": { body: undefined; answer: undefined };
  /** A file below the folder of a link. */
  "GET /public/{secret}/content/{path}": { body: undefined; answer: Response };
  /** Length and time of a file below the folder of a link. */
  "HEAD /public/{secret}/content/{path}": { body: undefined; answer: undefined };
  /** What is in the folder of a link. */
  "GET /public/{secret}/folders": { body: undefined; answer: PublicPage };
  /** What is in a folder below the one of a link. */
  "GET /public/{secret}/folders/{path}": { body: undefined; answer: PublicPage };
  /** Turn the password of a link into a pass, which counts for an hour. */
  "POST /public/{secret}/unlock": { body: LinkPassword; answer: LinkPass };
  /** Where a browser goes to sign in by OpenID Connect, if it may. */
  "GET /sign-in/oidc": { body: undefined; answer: Provider };
  /** Sign in by what a browser has brought back from the provider. */
  "POST /sign-in/oidc": { body: ProviderLogin; answer: Session };
  /** The tokens that the account has made for other programs. */
  "GET /tokens": { body: undefined; answer: (Token)[] };
  /** Make a token for another program; it is shown in this answer only. */
  "POST /tokens": { body: NewToken; answer: Token };
  /** Make a token worthless. */
  "DELETE /tokens/{token}": { body: undefined; answer: undefined };
  /** What others may know of the identity of an account; compare its fingerprint. */
  "GET /users/{user}/identity": { body: undefined; answer: Identity };
  /** The account and the device that ask. */
  "GET /whoami": { body: undefined; answer: WhoAmI };
  /** The workspaces of the account. */
  "GET /workspaces": { body: undefined; answer: (Workspace)[] };
  /** Make the workspace of an encoded genesis, or one of a name that the server can read. */
  "POST /workspaces": { body: NewWorkspace | BodyInit; answer: Workspace };
  /** A workspace, by id or name. */
  "GET /workspaces/{workspace}": { body: undefined; answer: Workspace };
  /** What happened, the newest first. */
  "GET /workspaces/{workspace}/activity": { body: undefined; answer: ActivityPage };
  /** All files and folders as a ZIP file. */
  "GET /workspaces/{workspace}/archive": { body: undefined; answer: Response };
  /** The length of that ZIP file. */
  "HEAD /workspaces/{workspace}/archive": { body: undefined; answer: undefined };
  /** A folder with everything in it, as a ZIP file. */
  "GET /workspaces/{workspace}/archive/{path}": { body: undefined; answer: Response };
  /** The length of that ZIP file. */
  "HEAD /workspaces/{workspace}/archive/{path}": { body: undefined; answer: undefined };
  /** The chunk list of a file, against which a delta is made. */
  "GET /workspaces/{workspace}/chunks/{path}": { body: undefined; answer: Response };
  /** What was kept beside each other and waits for a decision, the newest first. */
  "GET /workspaces/{workspace}/conflicts": { body: undefined; answer: ConflictPage };
  /** Mark a file that was kept beside another one. */
  "POST /workspaces/{workspace}/conflicts": { body: Marking; answer: Node };
  /** Copy. */
  "POST /workspaces/{workspace}/copy": { body: Relocation; answer: Node };
  /** What was deleted, the newest first. */
  "GET /workspaces/{workspace}/deleted": { body: undefined; answer: DeletedPage };
  /** Put a new version of a file as what has changed in it. */
  "POST /workspaces/{workspace}/delta/{path}": { body: BodyInit; answer: Node };
  /** Hear of every new entry of the log. */
  "GET /workspaces/{workspace}/events": { body: undefined; answer: Response };
  /** A file, a part of it, or an older version. */
  "GET /workspaces/{workspace}/files/{path}": { body: undefined; answer: Response };
  /** Length, time and version of a file. */
  "HEAD /workspaces/{workspace}/files/{path}": { body: undefined; answer: undefined };
  /** Put a file. */
  "PUT /workspaces/{workspace}/files/{path}": { body: BodyInit; answer: Node };
  /** Delete a file, or a folder with everything in it. */
  "DELETE /workspaces/{workspace}/files/{path}": { body: undefined; answer: undefined };
  /** What is in the root folder. */
  "GET /workspaces/{workspace}/folders": { body: undefined; answer: FolderPage };
  /** What is in a folder. */
  "GET /workspaces/{workspace}/folders/{path}": { body: undefined; answer: FolderPage };
  /** Make a folder. */
  "PUT /workspaces/{workspace}/folders/{path}": { body: undefined; answer: Node };
  /** The encoded genesis of a workspace, which never changes. */
  "GET /workspaces/{workspace}/genesis": { body: undefined; answer: Response };
  /** The links into a workspace; to who is not its owner the own ones. */
  "GET /workspaces/{workspace}/links": { body: undefined; answer: (Link)[] };
  /** Make a link for people without an account; its secret is in this answer only. */
  "POST /workspaces/{workspace}/links": { body: NewLink; answer: Link };
  /** Take a link back. */
  "DELETE /workspaces/{workspace}/links/{link}": { body: undefined; answer: undefined };
  /** Entries of the log, oldest first, as a server frame. */
  "GET /workspaces/{workspace}/log": { body: undefined; answer: Response };
  /** Put an encoded commit into the log, as devices do; once, however often it is sent. */
  "POST /workspaces/{workspace}/log": { body: BodyInit; answer: Response };
  /** The hash of an entry, by which a server that was set back is known. */
  "GET /workspaces/{workspace}/log/{seq}": { body: undefined; answer: EntryHash };
  /** Who may use a workspace; members are told of its owner and themselves. */
  "GET /workspaces/{workspace}/members": { body: undefined; answer: (Member)[] };
  /** Let an account into a workspace, or change what it may do. */
  "PUT /workspaces/{workspace}/members/{user}": { body: MemberRole; answer: Member };
  /** End a membership, one's own included. */
  "DELETE /workspaces/{workspace}/members/{user}": { body: undefined; answer: undefined };
  /** Move or rename. */
  "POST /workspaces/{workspace}/move": { body: Relocation; answer: Node };
  /** The root folder. */
  "GET /workspaces/{workspace}/nodes": { body: undefined; answer: Node };
  /** A file, folder or link. */
  "GET /workspaces/{workspace}/nodes/{path}": { body: undefined; answer: Node };
  /** Packs and pages by key and length. */
  "GET /workspaces/{workspace}/objects": { body: undefined; answer: (Object)[] };
  /** An object or a part of it. */
  "GET /workspaces/{workspace}/objects/{key}": { body: undefined; answer: Response };
  /** The length of an object. */
  "HEAD /workspaces/{workspace}/objects/{key}": { body: undefined; answer: undefined };
  /** Store an object that its key names. */
  "PUT /workspaces/{workspace}/objects/{key}": { body: BodyInit; answer: undefined };
  /** Remove a page, or a pack that a cleanup has condemned. */
  "DELETE /workspaces/{workspace}/objects/{key}": { body: undefined; answer: undefined };
  /** A pack or a part of it. */
  "GET /workspaces/{workspace}/packs/{pack}": { body: undefined; answer: Response };
  /** The length of a pack. */
  "HEAD /workspaces/{workspace}/packs/{pack}": { body: undefined; answer: undefined };
  /** Store a pack under the hash of its bytes. */
  "PUT /workspaces/{workspace}/packs/{pack}": { body: BodyInit; answer: undefined };
  /** Remove a pack that a cleanup has condemned. */
  "DELETE /workspaces/{workspace}/packs/{pack}": { body: undefined; answer: undefined };
  /** A request that reads a pack straight from the store. */
  "GET /workspaces/{workspace}/packs/{pack}/direct": { body: undefined; answer: Way };
  /** Say that a pack was brought; it is read and compared with its name. */
  "PUT /workspaces/{workspace}/packs/{pack}/direct": { body: Announced; answer: undefined };
  /** A request that brings a pack straight to the store. */
  "POST /workspaces/{workspace}/packs/{pack}/direct": { body: Announced; answer: Way };
  /** Decide a conflict: keep the copy, the original or both. */
  "POST /workspaces/{workspace}/resolve": { body: Resolution; answer: Node };
  /** Bring a version back, or what was deleted. */
  "POST /workspaces/{workspace}/restore": { body: Restoration; answer: Node };
  /** Files and folders whose names have all words that are looked for, the best first. */
  "GET /workspaces/{workspace}/search": { body: undefined; answer: SearchPage };
  /** Begin a file that comes in pieces. */
  "POST /workspaces/{workspace}/uploads": { body: Beginning; answer: Upload };
  /** How far an upload is. */
  "GET /workspaces/{workspace}/uploads/{upload}": { body: undefined; answer: Upload };
  /** How far an upload is, in the header. */
  "HEAD /workspaces/{workspace}/uploads/{upload}": { body: undefined; answer: undefined };
  /** Send the next piece. */
  "PATCH /workspaces/{workspace}/uploads/{upload}": { body: BodyInit; answer: Upload };
  /** Give an upload up. */
  "DELETE /workspaces/{workspace}/uploads/{upload}": { body: undefined; answer: undefined };
  /** Put the file whose pieces have come. */
  "POST /workspaces/{workspace}/uploads/{upload}/commit": { body: undefined; answer: Node };
  /** Put a new version of a file by the delta whose pieces have come. */
  "POST /workspaces/{workspace}/uploads/{upload}/delta": { body: undefined; answer: Node };
  /** What the workspace holds by kinds of files, and what came on which day. */
  "GET /workspaces/{workspace}/usage": { body: undefined; answer: Usage };
  /** The versions of a node, oldest first. */
  "GET /workspaces/{workspace}/versions/{path}": { body: undefined; answer: Versions };
}
