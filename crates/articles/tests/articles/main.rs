//! A store from the outside: questions, and changes of the folder.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod fuzz;
mod asking;
mod changing;
mod linking;
mod reopening;
mod searching;
mod support;
