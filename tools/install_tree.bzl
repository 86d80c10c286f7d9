"""A library as a folder to be installed: headers, one static library, a pkg-config file."""

load("//third_party/system:libraries.bzl", "SYSTEM_LIBRARIES")

def _system_modules():
    """The label of each target of the system's libraries -> its pkg-config module, or its linker flags."""
    modules = {}
    for repository, arguments in SYSTEM_LIBRARIES.items():
        for label, value in arguments["targets"].items():
            package, _, name = label.partition(":")
            if not name:
                name = package.split("/")[-1]
                if "/" not in package:
                    package = ""
            modules["@%s//%s:%s" % (repository, package, name)] = value
    return modules

_SYSTEM_MODULES = _system_modules()

def _label_text(label):
    return "@%s//%s:%s" % (label.workspace_name, label.package, label.name)

def _include_path(header):
    """The path by which `header` is included, or None if it is not below "lockstep/"."""
    for folder in ["/_virtual_includes/", "/_virtual_imports/"]:
        _, found, path = header.path.partition(folder)
        if found:
            path = path.partition("/")[2]  # without the target's name
            return path if path.startswith("lockstep/") else None
    path = header.path.partition("/_grpc/")[2]
    return path if path.startswith("lockstep/") else None

def _linked(library, extra):
    """What is in `library` and below: our objects, the system's pkg-config modules, further linker flags."""
    objects, modules, flags = {}, {}, {}
    for input in library[CcInfo].linking_context.linker_inputs.to_list() + extra[CcInfo].linking_context.linker_inputs.to_list():
        module = _SYSTEM_MODULES.get(_label_text(input.owner))
        if module == None:
            for part in input.libraries:
                for object in part.pic_objects or part.objects:
                    objects[object] = True
            for flag in input.user_link_flags:
                flags[flag] = True
        elif module.startswith("-"):
            for flag in module.split(" "):
                flags[flag] = True
        else:
            modules[module] = True
    return struct(objects = objects.keys(), modules = modules.keys(), flags = flags.keys())

# Paths are relative to the file itself, so that the folder may be moved. The archive is linked as a whole, because a
# REGISTER_MODEL in it takes effect only then.
_PKG_CONFIG = """prefix=${{pcfiledir}}/../..

Name: Lockstep
Description: Synchronous training whose bits do not depend on the workers
Version: @VERSION@
Requires.private: {modules}
Cflags: -I${{prefix}}/include {copts}
Libs: -L${{prefix}}/lib -Wl,--whole-archive -llockstep -Wl,--no-whole-archive
Libs.private: {flags}
"""

# The system's libraries and the flags come from the pkg-config file, so that they are listed only once. The archive is
# linked as a whole with a single word, because CMake drops words that it has already seen.
_CMAKE_PACKAGE = """# find_package(lockstep): the target lockstep::lockstep.
get_filename_component(_lockstep_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  set(lockstep_FOUND FALSE)
  set(lockstep_NOT_FOUND_MESSAGE "lockstep needs pkg-config; install it with: apt-get install pkg-config")
  return()
endif()
set(_lockstep_path "$ENV{PKG_CONFIG_PATH}")
set(ENV{PKG_CONFIG_PATH} "${_lockstep_prefix}/lib/pkgconfig:${_lockstep_path}")
pkg_check_modules(LOCKSTEP_MODULE QUIET lockstep)
set(ENV{PKG_CONFIG_PATH} "${_lockstep_path}")
if(NOT LOCKSTEP_MODULE_FOUND)
  set(lockstep_FOUND FALSE)
  set(lockstep_NOT_FOUND_MESSAGE "a library that lockstep needs is missing; pkg-config --libs --static lockstep names it")
  return()
endif()
if(NOT TARGET lockstep::lockstep)
  set(_lockstep_link ${LOCKSTEP_MODULE_STATIC_LDFLAGS})
  list(FILTER _lockstep_link EXCLUDE REGEX "^(-llockstep|-Wl,--whole-archive|-Wl,--no-whole-archive)$")
  add_library(lockstep::lockstep INTERFACE IMPORTED)
  set_target_properties(lockstep::lockstep PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_lockstep_prefix}/include"
    INTERFACE_COMPILE_OPTIONS "${LOCKSTEP_MODULE_STATIC_CFLAGS_OTHER}"
    INTERFACE_LINK_LIBRARIES
      "-Wl,--whole-archive,${_lockstep_prefix}/lib/liblockstep.a,--no-whole-archive;${_lockstep_link}")
endif()
"""

_INSTALL = """set -euo pipefail
out="$1" objects="$2" headers="$3" template="$4" cmake="$5" license="$6" version="$7"
mkdir -p "${out}/lib/pkgconfig"
xargs ar qcsD "${out}/lib/liblockstep.a" <"${objects}"
while read -r source path; do
  install -D -m 644 "${source}" "${out}/include/${path}"
done <"${headers}"
release="$(sed -nE 's/^constexpr char kVersion\\[\\] = "(.*)";/\\1/p' "${version}")"
sed "s/@VERSION@/${release}/" "${template}" >"${out}/lib/pkgconfig/lockstep.pc"
install -D -m 644 "${cmake}" "${out}/lib/cmake/lockstep/lockstep-config.cmake"
cat >"${out}/lib/cmake/lockstep/lockstep-config-version.cmake" <<VERSION
set(PACKAGE_VERSION "${release}")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
VERSION
install -D -m 644 "${license}" "${out}/share/doc/lockstep/LICENSE"
"""

def _install_tree_impl(ctx):
    linked = _linked(ctx.attr.library, ctx.attr.revision)
    headers = {}
    for header in ctx.attr.library[CcInfo].compilation_context.headers.to_list():
        path = _include_path(header)
        if path and header.extension == "h":
            headers[path] = header

    out = ctx.actions.declare_directory(ctx.label.name)
    objects = ctx.actions.declare_file(ctx.label.name + ".objects")
    ctx.actions.write(objects, "".join([object.path + "\n" for object in linked.objects]))
    list = ctx.actions.declare_file(ctx.label.name + ".headers")
    ctx.actions.write(list, "".join(["%s %s\n" % (header.path, path) for path, header in headers.items()]))
    template = ctx.actions.declare_file(ctx.label.name + ".pc")
    ctx.actions.write(template, _PKG_CONFIG.format(
        copts = " ".join(ctx.attr.copts),
        flags = " ".join(linked.flags),
        modules = " ".join(linked.modules),
    ))
    cmake = ctx.actions.declare_file(ctx.label.name + ".cmake")
    ctx.actions.write(cmake, _CMAKE_PACKAGE)
    files = [objects, list, template, cmake, ctx.file.license, ctx.file.version]
    ctx.actions.run_shell(
        outputs = [out],
        inputs = linked.objects + headers.values() + files,
        command = _INSTALL,
        arguments = [file.path for file in [out] + files],
        mnemonic = "InstallTree",
        progress_message = "Collecting the library",
    )
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out]))]

install_tree = rule(
    implementation = _install_tree_impl,
    attrs = {
        "library": attr.label(mandatory = True, providers = [CcInfo], doc = "Everything below it goes along."),
        "revision": attr.label(mandatory = True, providers = [CcInfo], doc = "Says which commit this is."),
        "copts": attr.string_list(doc = "What a program that includes the headers is compiled with."),
        "license": attr.label(mandatory = True, allow_single_file = True),
        "version": attr.label(mandatory = True, allow_single_file = True, doc = "The header with kVersion."),
    },
)
