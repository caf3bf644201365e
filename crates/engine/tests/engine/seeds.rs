//! The systems that this project started from: each acceptance criterion is a test, under the
//! dialect of its system. (Criteria that need HTTP, WebSocket or the real tools are tested
//! elsewhere.)

mod seed_000;
mod seed_001;
mod seed_002;
mod seed_003;
mod seed_004;
