"""What the BUILD files of this workspace use in place of the native rules, and the flags for those of others."""

# For targets of another workspace that compute (docs/library.md): what .bazelrc has for every object of this one. A model
# whose object had other flags would compute other bits.
LOCKSTEP_COPTS = [
    "-std=c++17",
    "-march=x86-64-v3",
    "-mtune=generic",
    "-ffp-contract=off",
    "-isystem",
    "/usr/include/eigen3",
]

# Where a loop happens to lie costs up to a third of its speed (an optimizer's on AMD, when it crosses a cache line).
_FOLDERS_OF_LOOPS = ["common/tensor", "server/optimizer", "server/ps", "worker/nn"]

def workspace_copts():
    """LOCKSTEP_COPTS where this workspace is not the main one, so that nobody's .bazelrc needs them."""
    return LOCKSTEP_COPTS if native.repository_name() != "@" else []

def _loop_copts():
    for folder in _FOLDERS_OF_LOOPS:
        if (native.package_name() + "/").startswith(folder + "/"):
            return ["-falign-loops=64"]
    return []

def cc_library(name, include_prefix = None, copts = [], **kwargs):
    """A library whose headers are included by their path in the workspace behind "lockstep/"."""
    if include_prefix == None:
        include_prefix = "lockstep/" + native.package_name()
    native.cc_library(
        name = name,
        include_prefix = include_prefix,
        copts = workspace_copts() + _loop_copts() + copts,
        **kwargs
    )

def cc_binary(name, copts = [], **kwargs):
    """A program that other workspaces may build as well."""
    native.cc_binary(name = name, copts = workspace_copts() + copts, **kwargs)
