//! A store from the outside: what is asked, what is answered, and what happens when the folder changes.

mod asking;
mod changing;
mod reopening;
mod searching;
mod serving;
mod support;
