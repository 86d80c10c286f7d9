"""The system's libraries that Lockstep builds with, and nothing but data: workspace.bzl declares a repository for each, and
tools/install_tree.bzl takes from here what a program outside of Bazel links.

Name of the repository -> the arguments of system_library. A value in `targets` is a pkg-config module or, when it starts
with "-", linker flags.
"""

SYSTEM_LIBRARIES = {
    "com_google_absl": dict(
        apt = "libabsl-dev",
        targets = {
            "absl/algorithm:container": "absl_algorithm_container",
            "absl/base:core_headers": "absl_core_headers",
            "absl/cleanup": "absl_cleanup",
            "absl/container:flat_hash_map": "absl_flat_hash_map",
            "absl/container:flat_hash_set": "absl_flat_hash_set",
            "absl/container:inlined_vector": "absl_inlined_vector",
            "absl/functional:any_invocable": "absl_any_invocable",
            "absl/functional:function_ref": "absl_function_ref",
            "absl/memory": "absl_memory",
            "absl/numeric:bits": "absl_bits",
            "absl/status": "absl_status",
            "absl/status:statusor": "absl_statusor",
            "absl/strings": "absl_strings",
            "absl/strings:str_format": "absl_str_format",
            "absl/synchronization": "absl_synchronization",
            "absl/time": "absl_time",
            "absl/types:optional": "absl_optional",
            "absl/types:span": "absl_span",
        },
    ),
    "com_google_protobuf": dict(
        apt = "libprotobuf-dev protobuf-compiler",
        build_file = Label("//third_party/system:protobuf.BUILD"),
        links = {
            "protoc.bin": "/usr/bin/protoc",
            "include": "/usr/include/google",
        },
        targets = {"protobuf": "protobuf"},
    ),
    "com_github_grpc_grpc": dict(
        apt = "libgrpc++-dev protobuf-compiler-grpc",
        build_file = Label("//third_party/system:grpc.BUILD"),
        files = {
            "bazel/BUILD": str(Label("//third_party/system:empty.BUILD")),
            "bazel/cc_grpc_library.bzl": str(Label("//third_party/system:cc_grpc_library.bzl")),
        },
        links = {"grpc_cpp_plugin.bin": "/usr/bin/grpc_cpp_plugin"},
        targets = {"grpc++": "grpc++"},
    ),
    "com_google_googletest": dict(
        apt = "libgtest-dev libgmock-dev",
        targets = {
            "gtest": "gmock",
            "gtest_main": "gmock_main",
        },
    ),
    "com_github_google_benchmark": dict(
        apt = "libbenchmark-dev",
        targets = {
            "benchmark": "benchmark",
            "benchmark_main": "-lbenchmark_main -lbenchmark",
        },
    ),
    # Eigen's headers are on the include path of every compilation (.bazelrc; outside this workspace, build_defs.bzl).
    "eigen": dict(
        apt = "libeigen3-dev",
        headers = ["/usr/include/eigen3/Eigen/Core"],
        targets = {"eigen": "eigen3"},
    ),
    "com_github_google_highway": dict(
        apt = "libhwy-dev",
        headers = ["/usr/include/hwy/foreach_target.h"],
        targets = {"hwy": "libhwy"},
    ),
    "com_github_google_leveldb": dict(
        apt = "libleveldb-dev",
        headers = ["/usr/include/leveldb/table.h"],
        targets = {"leveldb": "-lleveldb"},
    ),
    "com_github_google_glog": dict(
        apt = "libgoogle-glog-dev",
        targets = {"glog": "libglog"},
    ),
    "isal": dict(
        apt = "libisal-dev",
        targets = {"isal": "libisal"},
    ),
    "libmicrohttpd": dict(
        apt = "libmicrohttpd-dev",
        headers = ["/usr/include/microhttpd.h"],
        targets = {"libmicrohttpd": "-lmicrohttpd"},
    ),
    "com_googlesource_code_re2": dict(
        apt = "libre2-dev",
        targets = {"re2": "re2"},
    ),
    "png": dict(
        apt = "libpng-dev",
        targets = {"png": "libpng"},
    ),
    "jpeg": dict(
        apt = "libjpeg62-turbo-dev",
        targets = {"jpeg": "libjpeg"},
    ),
    "zlib": dict(
        apt = "zlib1g-dev",
        targets = {"zlib": "zlib"},
    ),
    "zstd": dict(
        apt = "libzstd-dev",
        targets = {"zstd": "libzstd"},
    ),
    "openssl": dict(
        apt = "libssl-dev",
        targets = {"crypto": "libcrypto", "ssl": "libssl"},
    ),
}
