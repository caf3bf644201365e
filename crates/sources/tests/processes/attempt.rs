//! The attempts of a hostile program: each succeeds, or the system refuses it.

use std::fs::{self, File};
use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use rustix::process::{Pid, Resource, Rlimit};

/// Makes an attempt with its values: a path, an address or a process id.
pub(super) fn make(kind: &str, values: &[&str]) -> io::Result<()> {
    let value = values.first().copied().unwrap_or_default();
    match kind {
        "read" => File::open(value).map(drop),
        "write" => File::options().append(true).open(value).map(drop),
        "chmod" => fs::set_permissions(value, fs::Permissions::from_mode(0o640)),
        "fchmod" => File::open(value)?.set_permissions(fs::Permissions::from_mode(0o640)),
        "chown" => std::os::unix::fs::chown(value, Some(rustix::process::getuid().as_raw()), None),
        "utimes" => {
            let time = Timespec { tv_sec: 1, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            Ok(rustix::fs::utimensat(CWD, value, &times, AtFlags::empty())?)
        }
        "xattr" => Ok(rustix::fs::setxattr(value, "user.sabir", b"x", XattrFlags::empty())?),
        "tcp" => TcpStream::connect(value).map(drop),
        "udp" => UdpSocket::bind("127.0.0.1:0").map(drop),
        "unix" => UnixStream::connect(value).map(drop),
        "unix-datagram" => UnixDatagram::unbound()?.send_to(b"x", value).map(drop),
        "unix-pair" => UnixDatagram::pair()?.0.send_to(b"x", value).map(drop),
        "abstract" => UnixStream::connect_addr(&SocketAddr::from_abstract_name(value)?).map(drop),
        "pair" => UnixStream::pair().map(drop),
        "signal" => Ok(rustix::process::test_kill_process(pid(value)?)?),
        "signal-parent" => {
            let parent = rustix::process::getppid().ok_or(io::ErrorKind::NotFound)?;
            Ok(rustix::process::test_kill_process(parent)?)
        }
        "memory" => File::open(format!("/proc/{value}/mem")).map(drop),
        // A file that opens and is empty tells nothing.
        "environment" => match fs::read(format!("/proc/{value}/environ"))?.len() {
            0 => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(()),
        },
        "limit" => {
            let none = Rlimit { current: Some(0), maximum: Some(0) };
            Ok(rustix::process::prlimit(Some(pid(value)?), Resource::Core, none).map(drop)?)
        }
        "priority" => Ok(rustix::process::setpriority_process(Some(pid(value)?), 19)?),
        "own-limit" => {
            let core = rustix::process::getrlimit(Resource::Core);
            Ok(rustix::process::setrlimit(Resource::Core, core)?)
        }
        "own-priority" => Ok(rustix::process::setpriority_process(None, 19)?),
        "privileges" if rustix::thread::no_new_privs()? => Err(io::ErrorKind::Unsupported.into()),
        "privileges" => Ok(()),
        _ => Err(io::Error::other(format!("unknown attempt `{kind}`"))),
    }
}

fn pid(text: &str) -> io::Result<Pid> {
    let raw = text.parse().ok().and_then(Pid::from_raw);
    raw.ok_or_else(|| io::Error::other(format!("invalid process id `{text}`")))
}
