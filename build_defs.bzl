"""What the BUILD files of this workspace use in place of the native rules, and the flags for those of others."""

# Options for targets of another workspace that compute (docs/library.md): the ones that .bazelrc has for every object
# of this workspace. A model whose object had other flags would compute other bits.
LOCKSTEP_COPTS = [
    "-std=c++17",
    "-march=x86-64-v3",
    "-mtune=generic",
    "-ffp-contract=off",
    "-isystem",
    "/usr/include/eigen3",
]

# A loop's address can cost up to a third of its speed (an optimizer's on AMD, if it crosses a cache line).
_FOLDERS_OF_LOOPS = ["common/tensor", "kernels", "server/optimizer", "server/ps", "worker/nn"]

def workspace_copts():
    """LOCKSTEP_COPTS where this workspace is not the main one, so that nobody's .bazelrc needs them."""
    return LOCKSTEP_COPTS if native.repository_name() != "@" else []

def _has_loops():
    for folder in _FOLDERS_OF_LOOPS:
        if (native.package_name() + "/").startswith(folder + "/"):
            return True
    return False

def _test_copts():
    return LOOP_TEST_COPTS if _has_loops() else TEST_COPTS

def _precompiled_for_tests():
    return "precompiled_loop_tests" if _has_loops() else "precompiled_tests"

# A test's own code need not be fast: these flags halve its compile time.
_UNOPTIMIZED = ["-O0", "-U_FORTIFY_SOURCE"]

# Under a sanitizer a test's own arithmetic is not checked for undefined behaviour, which would take a third more: what
# counts is that of the libraries.
_UNCHECKED = ["-fno-sanitize=undefined"]

TEST_COPTS = select({
    "//:sanitizer": _UNOPTIMIZED + _UNCHECKED,
    "//conditions:default": _UNOPTIMIZED,
})

# A kernel's test computes its reference results, so it is optimized like the libraries.
LOOP_TEST_COPTS = select({
    "//:sanitizer": _UNCHECKED,
    "//conditions:default": [],
})

def _precompiled(header, copts):
    """What a source needs to read one of third_party/precompiled: (copts, deps)."""
    if native.repository_name() != "@" or copts:  # It holds for one set of flags.
        return [], []
    target = "//third_party/precompiled:" + header

    # Clang looks for the precompiled header in no folder but that of the name.
    name = "$(BINDIR)/third_party/precompiled/%s.h" % header
    return (
        select({
            "//third_party/precompiled:off": [],
            "//conditions:default": ["-include", name],
        }),
        select({
            "//third_party/precompiled:off": [],
            "//conditions:default": [target],
        }),
    )

def cc_library(name, include_prefix = None, copts = [], deps = [], **kwargs):
    """A library whose headers are included by their path in the workspace behind "lockstep/"."""
    if include_prefix == None:
        include_prefix = "lockstep/" + native.package_name()
    is_test = native.package_name().endswith("/testing")
    header = _precompiled_for_tests() if is_test else "precompiled_libraries"
    precompiled_copts, precompiled_deps = _precompiled(header, copts)
    kind_copts = _test_copts() if is_test else ["-falign-loops=64"] if _has_loops() else []
    native.cc_library(
        name = name,
        include_prefix = include_prefix,
        copts = workspace_copts() + kind_copts + copts + precompiled_copts,
        deps = deps + precompiled_deps,
        **kwargs
    )

def cc_test(name, copts = [], deps = [], **kwargs):
    """A test, which other workspaces do not run."""
    precompiled_copts, precompiled_deps = _precompiled(_precompiled_for_tests(), copts)
    native.cc_test(
        name = name,
        copts = _test_copts() + copts + precompiled_copts,
        deps = deps + precompiled_deps,
        **kwargs
    )

def unit(name, hdrs = None, srcs = None, deps = [], test_deps = [], **kwargs):
    """A library and its test by convention: NAME.h, NAME.cc if it exists, NAME_test.cc if it exists.

    Attributes whose names begin with "test_" are the test's, the others are the library's.
    """
    cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]) if srcs == None else srcs,
        hdrs = [name + ".h"] if hdrs == None else hdrs,
        deps = deps,
        **{key: value for key, value in kwargs.items() if not key.startswith("test_")}
    )
    test = {key[len("test_"):]: value for key, value in kwargs.items() if key.startswith("test_")}
    if test_deps or test or native.glob([name + "_test.cc"]):
        unit_test(name = name + "_test", deps = [":" + name] + test_deps, **test)

def unit_test(name, size = "small", srcs = None, deps = [], main = "@com_google_googletest//:gtest_main", **kwargs):
    """A test by convention: NAME.cc, small, with GoogleTest's main function or that of the library `main`."""
    cc_test(
        name = name,
        size = size,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + [main],
        **kwargs
    )

# A program that is installed, in a folder such as bin, finds the libraries in the folder lib beside that one.
PROGRAM_LINKOPTS = ["-Wl,--disable-new-dtags,-rpath,$$ORIGIN/../lib"]

def cc_binary(name, srcs = None, copts = [], **kwargs):
    """A program that other workspaces may build as well: NAME.cc, unless `srcs` says otherwise."""
    native.cc_binary(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        copts = workspace_copts() + copts,
        **kwargs
    )
