"""Attacks through the network, through rare system calls, and through native code."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import attempt, program

ATTACKS = [
    attempt("TCP", "s = socket.socket(); s.settimeout(1); s.connect(('127.0.0.1', TCP)); s.send(b'x'); return True"),
    attempt("UDP", "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP)); return True"),
    attempt("unix socket", "s = socket.socket(socket.AF_UNIX); s.connect(UNIX); return True"),
    attempt("abstract unix socket", "s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + ABSTRACT); return True"),
    attempt("listen", "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); return True"),
    attempt("socketpair", "socket.socketpair(); return True"),
    attempt("name lookup", "socket.getaddrinfo('localhost', 80); return True"),
    attempt("netlink", "socket.socket(16, socket.SOCK_RAW, 0); return True"),
    attempt("send on an inherited socket", "return any(worked(libc.send(fd, b'x', 1, 0)) for fd in range(3, 300))"),
    attempt("pass a descriptor", "return any(worked(libc.sendmsg(fd, bytes(56), 0)) for fd in range(3, 300))"),
    attempt("pipe", "os.pipe(); return True"),
    attempt("eventfd", "return worked(libc.eventfd(0, 0))"),
    attempt("epoll", "return worked(libc.epoll_create1(0))"),
    attempt("memfd", "os.memfd_create('x'); return True"),
    attempt("memfd_secret", "return worked(syscall(447, 0))"),
    attempt("SysV shared memory", "return worked(libc.shmget(0, 4096, 0o1600))"),
    attempt("SysV semaphores", "return worked(libc.semget(0, 1, 0o1600))"),
    attempt("SysV messages", "return worked(libc.msgget(0, 0o1600))"),
    attempt("POSIX shared memory", "return worked(libc.shm_open(b'/grace-irl-test', 0o102, 0o600))"),
    attempt("POSIX messages", "return worked(syscall(240 if X86 else 180, b'x', 0o102, 0o600, None))"),
    attempt("unshare", "return worked(libc.unshare(0x10000000))"),
    attempt("setns", "return worked(libc.setns(0, 0))"),
    attempt("io_uring", "return worked(syscall(425, 8, bytes(120)))"),
    attempt("aio", "return worked(syscall(206 if X86 else 0, 1, bytes(8)))"),
    attempt("userfaultfd", "return worked(syscall(323 if X86 else 282, 1))"),
    attempt("bpf", "return worked(syscall(321 if X86 else 280, 0, bytes(128), 128))"),
    attempt("perf_event_open", "return worked(syscall(298 if X86 else 241, bytes(128), 0, -1, -1, 0))"),
    attempt("keyctl", "return worked(syscall(250 if X86 else 219, 0, -3, 0))"),
    attempt("open_by_handle_at", "return worked(syscall(304 if X86 else 265, -100, bytes(16), 0))"),
    attempt("init_module", "return worked(syscall(175 if X86 else 105, bytes(16), 16, b''))"),
    attempt("reboot", "return worked(syscall(169 if X86 else 142, 0, 0, 0, None))"),
    attempt("sethostname", "return worked(libc.sethostname(b'x', 1))"),
    attempt("settimeofday", "return worked(libc.settimeofday(bytes(16), None))"),
    attempt("landlock undone", "return worked(syscall(444, bytes(8), 8, 0))"),
    attempt("executable map", "mmap.mmap(-1, 4096, prot=7); return True"),
    attempt("map made executable", "m = mmap.mmap(-1, 4096)\n"
            "address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
            "return worked(libc.mprotect(ctypes.c_void_p(address), 4096, 5))"),
    attempt("pkey_mprotect", "m = mmap.mmap(-1, 4096)\n"
            "address = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
            "return worked(syscall(329 if X86 else 288, ctypes.c_void_p(address), 4096, 5, -1))"),
    attempt("code made writable", "address = ctypes.cast(libc.getpid, ctypes.c_void_p).value // 4096 * 4096\n"
            "return worked(libc.mprotect(ctypes.c_void_p(address), 4096, 7))"),
    attempt("remap_file_pages", "return worked(syscall(216 if X86 else 234, 0, 4096, 4, 0, 0))"),
    attempt("shmat", "return worked(syscall(30 if X86 else 196, 0, 0, 0))"),
    attempt("load a library", "ctypes.CDLL('libBrokenLocale.so.1'); return True"),
    program("calls of another convention", "\nclass Reward:\n    def reward_fn(self, s):\n"
            "        return 1.0 if X86 and worked(syscall(0x40000000 + 39)) else 0.0\n", "killed", "ok"),
    attempt("subclass walk to os", "found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']\n"
            "return found[0].__init__.__globals__['system']('true') == 0"),
    attempt("os through random", "import random; return random._os.system('true') == 0"),
    attempt("builtins through a frame", "raise_ = sys._getframe().f_back.f_builtins['open'](FOLDER + '/secret'); return True"),
    program("segfault", "\nclass Reward:\n    def reward_fn(self, s):\n        ctypes.string_at(0)\n        return 1.0\n", "killed"),
    program("illegal free", "\nclass Reward:\n    def reward_fn(self, s):\n        libc.free(ctypes.c_void_p(12345))\n        return 1.0\n", "killed"),
    program("abort", "\nclass Reward:\n    def reward_fn(self, s):\n        os.abort()\n", "killed"),
    program("os._exit(0)", "\nclass Reward:\n    def reward_fn(self, s):\n        os._exit(0)\n", "killed"),
    program("os._exit(3)", "\nclass Reward:\n    def reward_fn(self, s):\n        os._exit(3)\n", "killed"),
    program("exit of a layer that failed", "\nclass Reward:\n    def reward_fn(self, s):\n        os._exit(96)\n", "killed"),
    program("exit in the module", "\nimport os\nos._exit(0)\nclass Reward:\n    def reward_fn(self, s):\n        return 1.0\n", "killed"),
    program("SystemExit", "\nclass Reward:\n    def reward_fn(self, s):\n        sys.exit(0)\n", "killed"),
    program("KeyboardInterrupt", "\nclass Reward:\n    def reward_fn(self, s):\n        raise KeyboardInterrupt\n", "killed"),
    program("exit in debug_fn", "\nclass Reward:\n    def reward_fn(self, s):\n        return 0.0\n"
            "    def debug_fn(self, s):\n        os._exit(0)\n", "killed", debug=True),
]  # fmt: skip
