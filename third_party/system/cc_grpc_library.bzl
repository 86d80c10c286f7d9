"""cc_grpc_library with the signature of gRPC's own, over the system's protoc and plugin."""

def _generate_grpc_impl(ctx):
    outputs = []
    sources = []
    transitive = []
    for dep in ctx.attr.srcs:
        info = dep[ProtoInfo]
        sources += info.direct_sources
        transitive.append(info.transitive_sources)
    for source in sources:
        stem = source.basename[:-len(".proto")]
        outputs.append(ctx.actions.declare_file(stem + ".grpc.pb.h"))
        outputs.append(ctx.actions.declare_file(stem + ".grpc.pb.cc"))
    args = ctx.actions.args()
    args.add("--plugin=protoc-gen-grpc=" + ctx.executable._plugin.path)
    args.add("--grpc_out=" + ctx.bin_dir.path)
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
        deps = deps + ["@com_github_grpc_grpc//:grpc++"],
        **kwargs
    )
