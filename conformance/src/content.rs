//! Tools that return each kind of content, and tools that talk while they work.

use std::time::Duration;

use sabir::{BadOffer, Content, Context, Error, Handle, Level, ResourceContents, ToolFunction};

use crate::{Nothing, STREAM_TIME};

/// A red dot.
pub(crate) const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53,
    0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x08, 0xd7, 0x63, 0xf8, 0xcf, 0xc0, 0x00,
    0x00, 0x03, 0x01, 0x01, 0x00, 0x18, 0xdd, 0x8d, 0xb0, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82,
];

/// No sound at all, 8 kHz.
const WAV: &[u8] =
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\0\0\0\0";

pub(crate) fn offer(handle: &Handle) -> Result<(), BadOffer> {
    let tools = [
        ToolFunction::new(
            "test_simple_text",
            "Returns text",
            async |_: Nothing| "This is a simple text response for testing.",
        ),
        ToolFunction::new("test_image_content", "Returns a picture", async |_: Nothing| image()),
        ToolFunction::new("test_audio_content", "Returns a sound", async |_: Nothing| {
            Content::audio(WAV, "audio/wav")
        }),
        ToolFunction::new("test_embedded_resource", "Returns a resource", async |_: Nothing| {
            resource()
        }),
        ToolFunction::new(
            "test_multiple_content_types",
            "Returns text, a picture and a resource",
            async |_: Nothing| vec![Content::text("Mixed content:"), image(), resource()],
        ),
        ToolFunction::new("test_error_handling", "Fails", async |_: Nothing| {
            Err::<(), _>(Error::failed("This tool fails on purpose."))
        }),
        ToolFunction::new("test_tool_with_progress", "Reports progress", with_progress),
        ToolFunction::new("test_tool_with_logging", "Writes to the log", with_logging).logs(),
        ToolFunction::new("test_reconnection", "Takes longer than a stream", slowly),
        ToolFunction::new("test_logging_tool", "Tries to write to the log", log_once).logs(),
    ];
    tools.into_iter().try_for_each(|tool| handle.add_source(tool).map(drop))
}

fn image() -> Content {
    Content::image(PNG, "image/png")
}

fn resource() -> Content {
    let text = "This is an embedded resource content.";
    Content::resource(ResourceContents::text("test://embedded-resource", "text/plain", text))
}

async fn with_progress(_: Nothing, context: Context) -> &'static str {
    for progress in [0.0, 50.0, 100.0] {
        context.progress(progress, Some(100.0), Some("working"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    "done"
}

async fn with_logging(_: Nothing, context: Context) -> &'static str {
    for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        context.log(Level::Info, message);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    "logged"
}

/// Takes so long that the client's stream is closed before the answer, and the client must resume it.
async fn slowly(_: Nothing) -> &'static str {
    tokio::time::sleep(2 * STREAM_TIME).await;
    "Reconnection test completed"
}

async fn log_once(_: Nothing, context: Context) -> &'static str {
    context.log(Level::Info, "only for those who asked");
    "done"
}
