"""Attacks on other processes, and ways to become several."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import attempt

ATTACKS = [
    attempt("fork", "pid = os.fork()\nif pid == 0: os._exit(0)\nreturn True"),
    attempt("fork bomb", "while True: os.fork()"),
    attempt("daemon", "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time; time.sleep(60)\nreturn True"),
    attempt("vfork", "return worked(syscall(58 if X86 else 220, 17, 0, 0, 0, 0))"),
    attempt("clone", "return worked(syscall(56 if X86 else 220, 17, 0, 0, 0, 0))"),
    attempt("clone3", "return worked(syscall(435, bytes(88), 88))"),
    attempt("libc fork", "return worked(libc.fork())"),
    attempt("thread", "import _thread; _thread.start_new_thread(lambda: None, ()); return True"),
    attempt("threading", "import threading; t = threading.Thread(target=lambda: None); t.start(); return True"),
    attempt("threads of linear algebra", "a = np.ones((300, 300)); return float((a @ a)[0, 0]) != 300.0"),
    attempt("os.system", "return os.system('true') == 0"),
    attempt("popen", "os.popen('true').read(); return True"),
    attempt("posix_spawn", "os.posix_spawn('/bin/true', ['true'], {}); return True"),
    attempt("execve", "os.execv('/bin/true', ['true'])"),
    attempt("execveat", "return worked(syscall(322 if X86 else 281, -100, b'/bin/true', None, None, 0))"),
    attempt("subprocess", "import subprocess; subprocess.run(['true']); return True"),
    attempt("multiprocessing", "import multiprocessing as m; p = m.Process(target=print); p.start(); return True"),
    attempt("kill the parent", "os.kill(os.getppid(), 9); return True"),
    attempt("kill the zygote", "os.kill(ZYGOTE, 9); return True"),
    attempt("kill the host", "os.kill(HOST, 9); return True"),
    attempt("kill a bystander", "os.kill(BYSTANDER, 9); return True"),
    attempt("kill everyone", "os.kill(-1, 9); return True"),
    attempt("kill the group", "os.killpg(0, 9); return True"),
    attempt("tgkill", "return worked(syscall(234 if X86 else 131, ZYGOTE, ZYGOTE, 9))"),
    attempt("pidfd_open", "return worked(syscall(434, ZYGOTE, 0))"),
    attempt("pidfd_getfd", "return worked(syscall(438, 0, 0, 0))"),
    attempt("sigqueue", "return worked(syscall(129 if X86 else 138, ZYGOTE, 9, bytes(128)))"),
    attempt("alarm for the zygote", "return worked(libc.setitimer(0, bytes(32), None))"),
    attempt("ptrace the zygote", "return worked(libc.ptrace(16, ZYGOTE, None, None))"),
    attempt("ptrace the host", "return worked(libc.ptrace(16, HOST, None, None))"),
    attempt("process_vm_readv", "return worked(syscall(310 if X86 else 270, ZYGOTE, bytes(16), 1, bytes(16), 1, 0))"),
    attempt("process_madvise", "return worked(syscall(440, 0, bytes(16), 1, 0, 0))"),
    attempt("kcmp", "return worked(syscall(312 if X86 else 272, ZYGOTE, ZYGOTE, 0, 0, 0))"),
    attempt("priority of others", "os.setpriority(os.PRIO_PROCESS, BYSTANDER, 19); return True"),
    attempt("affinity of others", "os.sched_setaffinity(BYSTANDER, {0}); return True"),
    attempt("limits of others", "import resource; resource.prlimit(BYSTANDER, resource.RLIMIT_CPU); return True"),
    attempt("own limits", "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10)); return True"),
    attempt("CPU time of the zygote", "import time; time.clock_gettime(~ZYGOTE << 3 | 2); return True"),
    attempt("CPU time of the host", "import time; time.clock_gettime(~HOST << 3 | 2); return True"),
    attempt("CPU time of a thread", "import time; time.clock_gettime(~HOST << 3 | 6); return True"),
    attempt("clock of a bystander", "import time; time.clock_getres(~BYSTANDER << 3 | 2); return True"),
    attempt("sleep by the clock of the zygote", "return libc.clock_nanosleep(~ZYGOTE << 3 | 2, 1, bytes(8) + b'\\1' + bytes(7), None) == 0"),
    attempt("clock with high bits set", "return worked(syscall(228 if X86 else 113, (~ZYGOTE << 3 | 2) & (1 << 64) - 1 ^ 1 << 63, bytes(16)))"),
    attempt("which processes there are", "import time\nfound = []\nfor pid in range(1, 4000):\n"
            "    try: time.clock_getres(~pid << 3 | 2); found.append(pid)\n"
            "    except OSError: pass\nreturn found"),
    attempt("cores of the zygote", "return os.sched_getaffinity(ZYGOTE)"),
    attempt("cores of a bystander", "return os.sched_getaffinity(BYSTANDER)"),
    attempt("which processes there are, by locks", "word = ctypes.c_uint32(2**22 - 1)  # nobody's: the kernel looked, and says ESRCH\n"
            "syscall(202 if X86 else 98, ctypes.addressof(word), 6 | 128, 0, bytes(8) + b'\\1' + bytes(7), None, 0)\n"
            "return ctypes.get_errno() == 3"),
    attempt("wake others through a page of a library", "page = ctypes.cast(libc.getpid, ctypes.c_void_p).value // 4096 * 4096\n"
            "return worked(syscall(202 if X86 else 98, page, 1, 1, None, None, 0))"),
    attempt("wait for others at a page of a library", "page = ctypes.cast(libc.getpid, ctypes.c_void_p).value // 4096 * 4096\n"
            "word = ctypes.c_uint32.from_address(page).value\n"
            "return not worked(syscall(202 if X86 else 98, page, 0, word, bytes(8) + b'\\1' + bytes(7), None, 0)) and ctypes.get_errno() == 110"),
    attempt("take shared pages away", "page = ctypes.cast(libc.getpid, ctypes.c_void_p).value // 4096 * 4096\n"
            "return worked(libc.madvise(ctypes.c_void_p(page), 4096, 21))"),
    attempt("merge pages with others", "m = mmap.mmap(-1, 4096)\nm.madvise(12); return True"),
    attempt("priority that others have", "return os.getpriority(os.PRIO_PROCESS, BYSTANDER) is not None"),
    attempt("scheduler of others", "return os.sched_getscheduler(ZYGOTE) is not None"),
    attempt("group of others", "return os.getpgid(ZYGOTE)"),
    attempt("session of others", "return os.getsid(ZYGOTE)"),
    attempt("who the parent is", "return os.getppid() != -1"),
    attempt("robust futexes of others", "return worked(syscall(274 if X86 else 100, ZYGOTE, bytes(8), bytes(8)))"),
    attempt("input and output priority of others", "return worked(syscall(252 if X86 else 31, 1, ZYGOTE))"),
    attempt("load of the machine", "return os.getloadavg() or worked(libc.sysinfo(bytes(256)))"),
    attempt("setsid", "os.setsid(); return True"),
    attempt("setuid", "os.setuid(0); return True"),
    attempt("capset", "return worked(libc.capset(bytes(8), bytes(24)))"),
    attempt("prctl", "return worked(libc.prctl(4, 1, 0, 0, 0))"),
    attempt("another filter", "return worked(syscall(317 if X86 else 277, 1, 0, bytes(16)))"),
    attempt("personality", "return worked(libc.personality(0x0040000))"),
    attempt("wait for anyone", "os.wait(); return True"),
]  # fmt: skip
