"""Bazel repositories over libraries that the system's package manager installed."""

def _flags(rctx, value, what):
    """Linker flags for `value`: itself when it starts with '-', else what pkg-config says of that module."""
    if value.startswith("-"):
        return value.split(" ")
    result = rctx.execute(["pkg-config", "--libs-only-l", value])
    if result.return_code != 0:
        _missing(rctx, "pkg-config does not know " + value, what)
    seen = {}  # pkg-config repeats libraries for static linking; one mention each is enough here
    for flag in result.stdout.strip().split(" "):
        if flag:
            seen[flag] = True
    return seen.keys()

def _missing(rctx, why, what):
    fail("\n\n@%s (%s) is not installed: %s.\nInstall it with: apt-get install %s\n" %
         (rctx.name, what, why, rctx.attr.apt))

def _system_library_impl(rctx):
    if not rctx.which("pkg-config"):
        fail("\n\npkg-config is not installed.\nInstall it with: apt-get install pkg-config\n")
    for header in rctx.attr.headers + rctx.attr.links.values():
        if not rctx.path(header).exists:
            _missing(rctx, header + " does not exist", rctx.name)

    packages = {}
    for label, value in rctx.attr.targets.items():
        package, _, name = label.partition(":")
        if not name:
            # "absl/status" names the target "status" in "absl/status"; "protobuf" names a target in the root.
            name = package.split("/")[-1]
            if "/" not in package:
                package = ""
        packages.setdefault(package, []).append(
            "cc_library(\n    name = %r,\n    linkopts = %r,\n)\n" % (name, _flags(rctx, value, label)),
        )
    if rctx.attr.build_file:
        packages.setdefault("", []).append(rctx.read(rctx.attr.build_file))
    for package, rules in packages.items():
        path = package + "/BUILD" if package else "BUILD"
        rctx.file(path, "package(default_visibility = [\"//visibility:public\"])\n\n" + "\n".join(rules))
    for path, label in rctx.attr.files.items():
        rctx.file(path, rctx.read(Label(label)))
    for path, target in rctx.attr.links.items():
        rctx.symlink(target, path)

system_library = repository_rule(
    implementation = _system_library_impl,
    local = True,
    attrs = {
        "apt": attr.string(mandatory = True, doc = "The Debian packages to install, for the error message."),
        "targets": attr.string_dict(doc = "Label in the repository to pkg-config module, or to linker flags."),
        "headers": attr.string_list(doc = "Absolute paths that must exist."),
        "build_file": attr.label(doc = "Appended to the root package's BUILD file."),
        "files": attr.string_dict(doc = "Path in the repository to the label of a file copied there."),
        "links": attr.string_dict(doc = "Path in the repository to an absolute path linked there."),
    },
)
