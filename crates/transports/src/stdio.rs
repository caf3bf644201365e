//! The standard streams of this process, which a client has started.

use std::io;
use std::sync::Arc;

use sabir_engine::Engine;
use sabir_wire::Caller;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::stream;

/// Serves the client that started this process until it disconnects or the engine stops.
///
/// Nothing else may write to the standard output meanwhile.
pub async fn serve(engine: &Arc<Engine>) -> io::Result<()> {
    stream::serve(engine, Caller::local(), input(), output()).await
}

/// The standard streams, for another protocol with the process that started us. Must be called
/// inside a tokio runtime.
pub fn streams() -> (Input, Output) {
    (input(), output())
}

/// Standard input.
pub type Input = Box<dyn AsyncRead + Unpin + Send>;
/// Standard output.
pub type Output = Box<dyn AsyncWrite + Unpin + Send>;

/// Standard input. Pipes and sockets are polled; anything else is read by a thread of its own,
/// which costs a few microseconds per message.
fn input() -> Input {
    if let Some(input) = unix::input() {
        return input;
    }
    Box::new(tokio::io::stdin())
}

fn output() -> Output {
    if let Some(output) = unix::output() {
        return output;
    }
    Box::new(tokio::io::stdout())
}

mod unix {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt as _;

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    pub(super) fn input() -> Option<Input> {
        let own = own_copy(io::stdin().as_fd())?;
        if is_pipe(&own) {
            // A pipe that is opened again has its own flags: making it non-blocking does not change
            // it for other processes that hold the same end.
            return match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
                Ok(pipe) => Some(Box::new(pipe)),
                Err(_) => pipe::Receiver::from_file(own).ok().map(|pipe| Box::new(pipe) as Input),
            };
        }
        socket(own).map(|socket| Box::new(socket) as Input)
    }

    pub(super) fn output() -> Option<Output> {
        let own = own_copy(io::stdout().as_fd())?;
        if is_pipe(&own) {
            return match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
                Ok(pipe) => Some(Box::new(pipe)),
                Err(_) => pipe::Sender::from_file(own).ok().map(|pipe| Box::new(pipe) as Output),
            };
        }
        socket(own).map(|socket| Box::new(socket) as Output)
    }

    fn own_copy(fd: BorrowedFd<'_>) -> Option<File> {
        fd.try_clone_to_owned().ok().map(File::from)
    }

    fn is_pipe(file: &File) -> bool {
        file.metadata().is_ok_and(|metadata: Metadata| metadata.file_type().is_fifo())
    }

    /// Node gives its children sockets instead of pipes.
    fn socket(file: File) -> Option<UnixStream> {
        if !file.metadata().ok()?.file_type().is_socket() {
            return None;
        }
        let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok()
    }
}
