"""Which systems a test is for, and what only some of them have."""

import os
import sys

import pytest

posix_only = pytest.mark.skipif(
    os.name != "posix", reason="needs what only Linux and macOS have: see tests/platforms.py"
)
linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="needs what only Linux has, /proc or its limits: see tests/platforms.py",
)

#: What Windows does not have, or what does something else there: `os.kill` ends a process whatever
#: the signal, and `os.rename` replaces no file.
OF_OS = """
O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_NDELAY O_NOATIME O_NOCTTY
O_NOFOLLOW O_NONBLOCK O_PATH O_RSYNC O_SYNC O_TMPFILE
chown chroot confstr ctermid fchdir fchmod fchown fdatasync fork forkpty fpathconf fstatvfs
getegid geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp getpriority
getresgid getresuid getsid getuid getxattr initgroups kill killpg lchown listxattr lockf
login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open
pipe2 posix_fadvise posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv
pwrite pwritev readv register_at_fork removexattr rename sched_getaffinity
sched_getscheduler sched_setaffinity sched_yield sendfile setegid seteuid setgid setgroups
setpgid setpriority setregid setresgid setresuid setreuid setsid setuid setxattr splice
statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid writev
"""
OF_SIGNAL = """
ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL
SIGPIPE SIGPROF SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH SIG_BLOCK
SIG_SETMASK SIG_UNBLOCK alarm getitimer pause pthread_kill pthread_sigmask setitimer
siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
"""
POSIX_NAMES = {
    "os": frozenset(OF_OS.split()),
    "signal": frozenset(OF_SIGNAL.split()),
    "time": frozenset({"tzset", "pthread_getcpuclockid"}),
    "socket": frozenset({"AF_UNIX"}),
}
POSIX_MODULES = frozenset(
    {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
)
