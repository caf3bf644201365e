//! The system calls that a sandbox refuses, with `EPERM`.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use crate::command::program::{Sandbox, Sockets};

/// Calls that act for or on other processes, with any arguments. `io_uring` would run other calls
/// past this filter; keys, message queues and shared memory belong to the user, not to a program.
const SHARED: [libc::c_long; 14] = [
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgget,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semctl,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_open_by_handle_at,
];

/// Changes of metadata: mode, owner, times and extended attributes. The last four are newer than
/// the library's list; their numbers are the same on every processor.
const METADATA: [libc::c_long; 15] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    452, // fchmodat2
    463, // setxattrat
    466, // removexattrat
    469, // file_setattr
];

/// The old forms of the same, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
const OLD_METADATA: &[libc::c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: &[libc::c_long] = &[];

/// `ioctl` requests that change the attributes of an open file: `FS_IOC_SETFLAGS`, its form for 32
/// bits, and `FS_IOC_FSSETXATTR`.
const SET_ATTRIBUTES: [u64; 3] = [0x4008_6602, 0x4004_6602, 0x401c_5820];

/// Calls that set the scheduling of the process in their first argument, in which 0 is the caller.
const SCHEDULING: [libc::c_long; 5] = [
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// `IOPRIO_WHO_PROCESS`.
const IO_PRIORITY_OF_PROCESS: u64 = 1;

/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// Applies the filter to this process.
pub(super) fn apply(sandbox: &Sandbox) -> Result<(), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot filter system calls: {error}");
    let program = compile(sandbox).map_err(|error| cannot(&error))?;
    seccompiler::apply_filter(&program).map_err(|error| cannot(&error))
}

fn compile(sandbox: &Sandbox) -> Result<BpfProgram, BackendError> {
    let mut refused = Refused::default();
    refused.always(&SHARED);
    for call in SCHEDULING {
        refused.when(call, &[(0, SeccompCmpOp::Ne, 0)])?;
    }
    let process = libc::PRIO_PROCESS as u64;
    for (call, own) in
        [(libc::SYS_setpriority, process), (libc::SYS_ioprio_set, IO_PRIORITY_OF_PROCESS)]
    {
        // A group may contain other processes; the second argument is the process, 0 the caller.
        refused.when(call, &[(0, SeccompCmpOp::Ne, own)])?;
        refused.when(call, &[(1, SeccompCmpOp::Ne, 0)])?;
    }
    if sandbox.files.is_some() && !sandbox.metadata {
        refused.always(&METADATA);
        refused.always(OLD_METADATA);
        for request in SET_ATTRIBUTES {
            refused.when(libc::SYS_ioctl, &[(1, SeccompCmpOp::Eq, request)])?;
        }
    }
    refuse_sockets(&mut refused, sandbox)?;
    SeccompFilter::new(
        refused.0,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM as u32),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}

fn refuse_sockets(refused: &mut Refused, sandbox: &Sandbox) -> Result<(), BackendError> {
    let unix = libc::AF_UNIX as u64;
    let has_unix = sandbox.sockets != Sockets::None;
    match (sandbox.network, has_unix) {
        (true, true) => {}
        (true, false) => refused.when(libc::SYS_socket, &[(0, SeccompCmpOp::Eq, unix)])?,
        (false, true) => refused.when(libc::SYS_socket, &[(0, SeccompCmpOp::Ne, unix)])?,
        (false, false) => refused.always(&[libc::SYS_socket]),
    }
    if !has_unix {
        // A datagram socket of a pair can send to any address; a stream only to the other end.
        for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            let is_kind = SeccompCmpOp::MaskedEq(SOCKET_TYPE);
            refused.when(libc::SYS_socketpair, &[(1, is_kind, kind as u64)])?;
        }
    }
    Ok(())
}

/// The refused calls. A call without rules is always refused, otherwise if one of its rules holds.
#[derive(Default)]
struct Refused(BTreeMap<i64, Vec<SeccompRule>>);

impl Refused {
    fn always(&mut self, calls: &[libc::c_long]) {
        for call in calls {
            self.0.insert(*call, vec![]);
            self.refuse_x32(*call);
        }
    }

    /// Refuses `call` when all conditions on its arguments hold. Only the lower half of an argument
    /// is compared: the kernel takes all of these as 32 bits.
    fn when(
        &mut self,
        call: libc::c_long,
        conditions: &[(u8, SeccompCmpOp, u64)],
    ) -> Result<(), BackendError> {
        let conditions = conditions.iter().map(|(index, operator, value)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, operator.clone(), *value)
        });
        let rule = SeccompRule::new(conditions.collect::<Result<_, _>>()?)?;
        self.0.entry(call).or_default().push(rule);
        self.refuse_x32(call);
        Ok(())
    }

    /// Refuses the same call of the x32 interface, with any arguments.
    fn refuse_x32(&mut self, call: libc::c_long) {
        const X32: libc::c_long = 0x4000_0000;
        if cfg!(target_arch = "x86_64") {
            self.0.insert(X32 + call, vec![]);
        }
    }
}
