//! A store from the outside: what is asked, what is answered, and what happens when the folder changes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod asking;
mod changing;
mod reopening;
mod searching;
mod support;
