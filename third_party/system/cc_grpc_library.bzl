"""cc_grpc_library with the signature of gRPC's own, over the system's protoc and plugin."""

# This folder of the package holds the stubs, by the path that imports name; it is on the include path.
_FOLDER = "_grpc"

def _import_path(source, roots):
    for root in roots:
        if root != "." and source.path.startswith(root + "/"):
            return source.path[len(root) + 1:]
    return source.path

def _generate_grpc_impl(ctx):
    outputs = []
    sources = []
    transitive = []
    roots = []
    for dep in ctx.attr.srcs:
        info = dep[ProtoInfo]
        sources += [_import_path(source, [info.proto_source_root]) for source in info.direct_sources]
        transitive.append(info.transitive_sources)
        roots.append(info.transitive_proto_path)
    for source in sources:
        stem = _FOLDER + "/" + source[:-len(".proto")]
        outputs.append(ctx.actions.declare_file(stem + ".grpc.pb.h"))
        outputs.append(ctx.actions.declare_file(stem + ".grpc.pb.cc"))
    args = ctx.actions.args()
    args.add("--plugin=protoc-gen-grpc=" + ctx.executable._plugin.path)
    folders = [ctx.bin_dir.path, ctx.label.workspace_root, ctx.label.package, _FOLDER]
    args.add("--grpc_out=" + "/".join([folder for folder in folders if folder]))
    args.add_all(depset(transitive = roots), format_each = "-I%s")
    args.add("-I.")
    args.add_all(sources)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = depset(transitive = transitive),
        tools = [ctx.executable._plugin],
        outputs = outputs,
        mnemonic = "GenerateGrpc",
    )
    return [DefaultInfo(files = depset(outputs))]

_generate_grpc = rule(
    implementation = _generate_grpc_impl,
    attrs = {
        "srcs": attr.label_list(providers = [ProtoInfo]),
        "_protoc": attr.label(default = "@com_google_protobuf//:protoc", executable = True, cfg = "host"),
        "_plugin": attr.label(default = "@com_github_grpc_grpc//:grpc_cpp_plugin", executable = True, cfg = "host"),
    },
)

def cc_grpc_library(name, srcs, deps, grpc_only = True, **kwargs):
    """The service stubs of `srcs` (proto_library); `deps` are their cc_proto_library targets."""
    if not grpc_only:
        fail("only grpc_only = True is provided here")
    generated = "_" + name + "_grpc"
    _generate_grpc(name = generated, srcs = srcs)
    native.cc_library(
        name = name,
        srcs = [generated],
        hdrs = [generated],
        includes = [_FOLDER],
        deps = deps + ["@com_github_grpc_grpc//:grpc++"],
        **kwargs
    )
