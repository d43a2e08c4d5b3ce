//! The requests by which a person sees to the own account.

use super::operations::Matter::{Json, List, None as Nothing};
use super::operations::{Operation, operation};

pub(super) const ACCOUNT: &[Operation] = &[
    operation(
        ("post", "/account/password"),
        ("changePassword", "Give the account another password; may sign out all others"),
        &[],
        Json("NewPassword"),
        &[(200, Json("PasswordChanged"))],
    ),
    operation(
        ("get", "/account/totp"),
        ("describeSecondFactor", "Whether a sign-in wants a code beside the password"),
        &[],
        Nothing,
        &[(200, Json("SecondFactor"))],
    ),
    operation(
        ("post", "/account/password/begin"),
        (
            "beginPasswordChange",
            "Begin to prove the password and to set another one, without sending either (OPAQUE)",
        ),
        &[],
        Json("PasswordBegin"),
        &[(200, Json("PasswordBegun"))],
    ),
    operation(
        ("post", "/account/password/finish"),
        ("finishPasswordChange", "Show the proof, and set the other one"),
        &[],
        Json("PasswordProof"),
        &[(200, Json("PasswordChanged"))],
    ),
    operation(
        ("post", "/account/totp"),
        ("beginSecondFactor", "Make a secret for an app, which waits for its first code"),
        &[],
        Json("OwnPassword"),
        &[(201, Json("TotpOffer"))],
    ),
    operation(
        ("post", "/account/totp/confirm"),
        ("turnOnSecondFactor", "Show the first code; the recovery codes are in this answer only"),
        &[],
        Json("Code"),
        &[(200, Json("RecoveryCodes"))],
    ),
    operation(
        ("post", "/account/totp/disable"),
        ("turnOffSecondFactor", "Go back to the password alone, by a code or a recovery code"),
        &[],
        Json("Code"),
        &[(204, Nothing)],
    ),
    operation(
        ("get", "/sign-in/oidc"),
        ("describeProvider", "Where a browser goes to sign in by OpenID Connect, if it may"),
        &[],
        Nothing,
        &[(200, Json("Provider"))],
    ),
    operation(
        ("post", "/sign-in/oidc"),
        ("signInByProvider", "Sign in by what a browser has brought back from the provider"),
        &[],
        Json("ProviderLogin"),
        &[(200, Json("Session"))],
    ),
    operation(
        ("post", "/join"),
        ("describeInvitation", "What an invitation is for, by its secret"),
        &[],
        Json("InvitationSecret"),
        &[(200, Json("Invitation"))],
    ),
    operation(
        ("post", "/join/begin"),
        ("beginToJoin", "Begin to make an account, without sending its password (OPAQUE)"),
        &[],
        Json("JoinBegin"),
        &[(200, Json("JoinBegun"))],
    ),
    operation(
        ("post", "/join/finish"),
        ("join", "Make the account and a device of it, and return its token; ends the invitation"),
        &[],
        Json("JoinProof"),
        &[(201, Json("Session"))],
    ),
    operation(
        ("get", "/account/oidc"),
        ("listSubjects", "Who the account is at providers of OpenID Connect"),
        &[],
        Nothing,
        &[(200, List("Subject"))],
    ),
    operation(
        ("post", "/account/oidc"),
        ("bindSubject", "Let a person at the provider sign in to the account"),
        &[],
        Json("NewSubject"),
        &[(201, Json("Subject"))],
    ),
    operation(
        ("delete", "/account/oidc/{subject}"),
        ("unbindSubject", "End that; devices that are signed in stay so"),
        &[],
        Nothing,
        &[(204, Nothing)],
    ),
];
