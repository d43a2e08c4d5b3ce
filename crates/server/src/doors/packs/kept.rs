//! Locked keys, boxes of pairings and envelopes, at the same addresses as objects. They rest in the database, so that what of two
//! of them counts is decided in a transaction; all but envelopes are put only where there is nothing.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::{Target, too_large};
use crate::audit::{Happened, Line};
use crate::doors::to_the_end;
use crate::error::{Result, ServerError};
use crate::limits::KEPT_LENGTH_MAX;
use crate::metadata::Metadata;
use crate::services::keys;

impl Target {
    /// Tells whether this is no object of the store.
    pub(super) fn is_kept(&self) -> bool {
        keys::is_kept(&self.key)
    }

    pub(super) async fn keep(
        &self,
        announced: Option<u64>,
        if_absent: bool,
        body: &mut BodyDataStream,
    ) -> Result<StatusCode> {
        if announced.is_some_and(|length| length > KEPT_LENGTH_MAX) {
            return Err(too_large(KEPT_LENGTH_MAX));
        }
        if !if_absent && !keys::is_replaced(&self.key) {
            let reason = format!("{} is put only where nothing is (If-None-Match: *)", self.key);
            return Err(ServerError::Invalid { what: "request", reason });
        }
        let memory = self.app.memory_for_body(announced.unwrap_or(KEPT_LENGTH_MAX)).await?;
        let (bytes, _) = self.receive(announced, KEPT_LENGTH_MAX, body).await?;
        let (app, caller) = (Arc::clone(&self.app), self.caller);
        let (workspace, key) = (self.workspace, self.key.clone());
        let put = async move {
            let (target, now) = (key.clone(), app.now());
            let put = move |metadata: &mut dyn Metadata| {
                keys::put(metadata, &caller, workspace, (&target, &bytes), now)
            };
            let is_put = app.writer.write(put).await?;
            drop(memory);
            if is_put && key.as_keys().is_some() {
                let line = Line::new(app.clock.now(), Happened::KeysChanged).by(caller.device);
                app.audit.note(line.to_object(workspace, &key)).await;
            }
            Ok(if is_put { StatusCode::CREATED } else { StatusCode::PRECONDITION_FAILED })
        };
        to_the_end(put).await
    }

    async fn kept(&self) -> Result<Vec<u8>> {
        let (caller, workspace, key) = (self.caller, self.workspace, self.key.clone());
        let get = move |metadata: &dyn Metadata| keys::get(metadata, &caller, workspace, &key);
        self.app.readers.read(get).await
    }

    pub(super) async fn describe_kept(&self) -> Result<Response> {
        let length = self.kept().await?.len() as u64;
        let mut response = self.headers(length).into_response();
        *response.body_mut() = Body::empty();
        Ok(response)
    }

    /// Sends it whole, whatever part was asked for.
    pub(super) async fn send_kept(&self) -> Result<Response> {
        let bytes = self.kept().await?;
        let headers = self.headers(bytes.len() as u64);
        Ok((headers, Body::from(Bytes::from(bytes))).into_response())
    }

    pub(super) async fn delete_kept(&self) -> Result<StatusCode> {
        let (caller, workspace, key) = (self.caller, self.workspace, self.key.clone());
        let delete =
            move |metadata: &mut dyn Metadata| keys::delete(metadata, &caller, workspace, &key);
        self.app.writer.write(delete).await?;
        Ok(StatusCode::NO_CONTENT)
    }
}
