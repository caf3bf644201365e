//! The systems that this project was born from: each acceptance criterion is a test, under the
//! dialect of its system. (What needs HTTP, WebSocket or the real tools is tested where those are.)

mod seed_000;
mod seed_001;
mod seed_002;
mod seed_003;
mod seed_004;
