"""A repository that is a folder of this tree, whichever workspace is the main one."""

def _folder_repository_impl(rctx):
    folder = rctx.path(Label("//:WORKSPACE")).dirname
    for name in rctx.attr.path.split("/"):
        folder = folder.get_child(name)
    for entry in folder.readdir():
        rctx.symlink(entry, entry.basename)

folder_repository = repository_rule(
    implementation = _folder_repository_impl,
    local = True,
    attrs = {"path": attr.string(mandatory = True, doc = "Below the root of this tree.")},
)
