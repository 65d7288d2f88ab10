"""Attacks on files: opened, changed, listed, read through libraries or through /proc."""

# ruff: noqa: E501  (an attack is one line, as far as it can be)

from tests.hostile.attack import attempt

ATTACKS = [
    attempt("open to read", "return open(FOLDER + '/secret').read()"),
    attempt("open to write", "open(FOLDER + '/secret', 'w').write('changed'); return True"),
    attempt("create", "open(FOLDER + '/created', 'x'); return True"),
    attempt("os.open", "return worked(os.open(FOLDER + '/secret', os.O_RDONLY))"),
    attempt("openat by ctypes", "return worked(libc.openat(-100, (FOLDER + '/secret').encode(), 0))"),
    attempt("openat2", "return worked(syscall(437, -100, (FOLDER + '/secret').encode(), bytes(24), 24))"),
    attempt("unlink", "os.unlink(FOLDER + '/decoy'); return True"),
    attempt("rename", "os.rename(FOLDER + '/decoy', FOLDER + '/moved'); return True"),
    attempt("chmod", "os.chmod(FOLDER + '/decoy', 0o600); return True"),
    attempt("chown", "os.chown(FOLDER + '/decoy', 65534, 65534); return True"),
    attempt("truncate", "os.truncate(FOLDER + '/decoy', 0); return True"),
    attempt("utime", "os.utime(FOLDER + '/decoy', (0, 0)); return True"),
    attempt("mkdir", "os.mkdir(FOLDER + '/folder'); return True"),
    attempt("rmdir", "os.rmdir(FOLDER + '/empty'); return True"),
    attempt("symlink", "os.symlink('/etc/passwd', FOLDER + '/link'); return True"),
    attempt("hard link", "os.link(FOLDER + '/decoy', FOLDER + '/link'); return True"),
    attempt("mknod", "os.mkfifo(FOLDER + '/pipe'); return True"),
    attempt("stat", "os.stat(FOLDER + '/secret'); return True"),
    attempt("access", "return os.access(FOLDER + '/secret', os.F_OK)"),
    attempt("readlink", "os.readlink('/proc/self/exe'); return True"),
    attempt("listdir", "return os.listdir(FOLDER)"),
    attempt("chdir", "os.chdir(FOLDER); return True"),
    attempt("getxattr", "os.listxattr(FOLDER + '/secret'); return True"),
    attempt("inotify", "return worked(libc.inotify_init())"),
    attempt("np.load", "np.load(FOLDER + '/secret', allow_pickle=True); return True"),
    attempt("np.fromfile", "return len(np.fromfile(FOLDER + '/secret', dtype=np.uint8))"),
    attempt("np.save", "np.save(FOLDER + '/created.npy', np.zeros(3)); return True"),
    attempt("tofile", "np.zeros(3).tofile(FOLDER + '/created'); return True"),
    attempt("np.memmap", "np.memmap(FOLDER + '/secret', mode='r'); return True"),
    attempt("linecache", "import linecache; return linecache.getline(FOLDER + '/secret', 1)"),
    attempt("import from disk", "import importlib.machinery as m; sys.path_hooks[:] = []; "
            "return m.SourceFileLoader('x', FOLDER + '/module.py').load_module()"),
    attempt("lxml parse", "import lxml.etree as e; e.parse(FOLDER + '/page.xml'); return True"),
    attempt("lxml write", "import lxml.etree as e; e.ElementTree(e.Element('a')).write(FOLDER + '/created.xml'); return True"),
    attempt("ElementTree parse", "import xml.etree.ElementTree as e; e.parse(FOLDER + '/page.xml'); return True"),
    attempt("XXE", "import lxml.etree as e\n"
            "text = '<!DOCTYPE a [<!ENTITY x SYSTEM \"file://' + FOLDER + '/secret\">]><a>&x;</a>'\n"
            "parser = e.XMLParser(resolve_entities=True, load_dtd=True, no_network=False)\n"
            "return 'TREASURE' in (e.fromstring(text, parser).text or '')"),
    attempt("external DTD", "import lxml.etree as e\n"
            "text = '<!DOCTYPE a SYSTEM \"http://127.0.0.1:' + str(TCP) + '/x.dtd\"><a/>'\n"
            "e.fromstring(text, e.XMLParser(load_dtd=True, no_network=False)); return False"),
    attempt("entity bomb", "import lxml.etree as e\n"
            "names = ''.join('<!ENTITY l%d \"%s\">' % (i, ('&l%d;' % (i - 1)) * 10) for i in range(1, 12))\n"
            "text = '<!DOCTYPE a [<!ENTITY l0 \"x\">' + names + ']><a>&l11;</a>'\n"
            "e.fromstring(text, e.XMLParser(huge_tree=True, resolve_entities=True)); return False",
            "ok", "timeout", "memory", "killed", wall_s=1.0),
    attempt("XInclude", "import lxml.etree as e\n"
            "t = e.fromstring('<a xmlns:x=\"http://www.w3.org/2001/XInclude\"><x:include href=\"' + FOLDER + '/page.xml\"/></a>')\n"
            "t.getroottree().xinclude(); return True"),
    attempt("XSLT document()", "import lxml.etree as e\n"
            "x = e.XSLT(e.fromstring('<x:stylesheet version=\"1.0\" xmlns:x=\"http://www.w3.org/1999/XSL/Transform\">'\n"
            "  '<x:template match=\"/\"><x:value-of select=\"document(\\'' + FOLDER + '/page.xml\\')\"/></x:template></x:stylesheet>'))\n"
            "return 'TREASURE' in str(x(e.fromstring('<a/>')))"),
    attempt("/proc/self/environ", "return open('/proc/self/environ').read()"),
    attempt("/proc of the host", "return open('/proc/%d/environ' % HOST).read()"),
    attempt("memory of the zygote", "return open('/proc/%d/mem' % ZYGOTE, 'rb').read(1)"),
    attempt("/proc/self/mem", "open('/proc/self/mem', 'r+b'); return True"),
    attempt("/dev/shm", "open('/dev/shm/grace-irl-test', 'x'); return True"),
    attempt("/dev/tty", "open('/dev/tty', 'w'); return True"),
    attempt("inherited descriptors", "import stat\n"
            "found = []\n"
            "for fd in range(5, 4096):\n"
            "    try: os.read(fd, 0); found.append(fd)\n"
            "    except OSError: pass\n"
            "return found"),
    attempt("dup over the limit", "os.dup(0); return True"),
    attempt("a closed number used again", "os.close(0); return worked(libc.open(b'/dev/null', 0)) or worked(libc.dup(1))"),
    attempt("write to the standard streams", "os.write(1, b'x'); os.write(2, b'x'); return os.read(0, 1)"),
    attempt("ioctl", "import fcntl, termios; fcntl.ioctl(0, termios.FIONREAD, b'1234'); return True"),
    attempt("sendfile", "return worked(libc.sendfile(1, 0, None, 10))"),
    attempt("mount", "return worked(libc.mount(b'none', FOLDER.encode(), b'tmpfs', 0, None))"),
    attempt("chroot", "os.chroot(FOLDER); return True"),
    attempt("umask", "os.umask(0); return True"),
    attempt("sync", "return worked(syscall(306 if X86 else 267, 0))"),
]  # fmt: skip
