"""A header of other people's headers that the compiler reads once, instead of once for each source.

GCC takes it only where the flags are those of the source, and else reads the text (-Winvalid-pch says so). For Clang,
other flags are an error."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header_impl(ctx):
    # The text lies next to the precompiled header, and in no folder that is searched before it.
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.run_shell(
        command = "cat \"${@:2}\" >\"$1\"",
        arguments = [header.path] + [file.path for file in ctx.files.headers],
        inputs = ctx.files.headers,
        outputs = [header],
    )
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    action = "c++-compile"
    compiler = cc_common.get_tool_for_action(feature_configuration = features, action_name = action)

    # Clang records where it found what it read, and looks there again. Therefore it reads the text from its standard
    # input, which GCC refuses, and knows the folder by a name that every checkout has.
    is_clang = "clang" in compiler
    recorded = ["-working-directory=/proc/self/cwd"] if is_clang else []
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = "-" if is_clang else header.path,
        output_file = precompiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + recorded +
                             ["-x", "c++-header"],
        quote_include_directories = depset(["."]),
        use_pic = True,
    )
    ctx.actions.run_shell(
        command = "\"${@:2}\" <\"$1\"",
        arguments = [header.path, compiler] + cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        inputs = depset([header], transitive = [toolchain.all_files]),
        outputs = [precompiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + header.short_path,
    )
    files = [header, precompiled]
    return [
        DefaultInfo(files = depset(files)),
        CcInfo(compilation_context = cc_common.create_compilation_context(headers = depset(files))),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.label_list(allow_files = [".h"], mandatory = True),  # one after the other
        "copts": attr.string_list(),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    fragments = ["cpp"],
    provides = [CcInfo],
)
