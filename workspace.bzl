"""What a workspace calls to build with Lockstep: this one, and any other that depends on it (docs/library.md)."""

load("//third_party/system:folder_repository.bzl", "folder_repository")
load("//third_party/system:libraries.bzl", "SYSTEM_LIBRARIES")
load("//third_party/system:system_library.bzl", "system_library")

def lockstep_workspace():
    """Declares every repository that Lockstep builds with. One that is declared already stays as it is."""

    # Repositories that Bazel's own tools need, replaced by local ones.
    _declare(folder_repository, "rules_cc", path = "third_party/rules_cc")
    _declare(folder_repository, "remote_coverage_tools", path = "third_party/remote_coverage_tools")
    _declare(native.local_repository, "rules_java", path = "/usr/share/bazel/rules/java")
    _declare(native.local_repository, "rules_proto", path = "/usr/share/bazel/rules/proto")
    _declare(native.local_repository, "bazel_skylib", path = "/usr/share/bazel/tools/skylib")

    for name, arguments in SYSTEM_LIBRARIES.items():
        _declare(system_library, name, **arguments)

def _declare(rule, name, **kwargs):
    if not native.existing_rule(name):
        rule(name = name, **kwargs)
