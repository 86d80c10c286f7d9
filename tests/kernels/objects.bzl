"""The object files of a library, as a list."""

def _objects_of_impl(ctx):
    objects = {}
    for input in ctx.attr.library[CcInfo].linking_context.linker_inputs.to_list():
        if input.owner.workspace_name == ctx.label.workspace_name:
            for part in input.libraries:
                for object in part.pic_objects or part.objects:
                    objects[object] = True
    out = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(out, "".join([object.short_path + "\n" for object in objects]))
    return [DefaultInfo(files = depset([out]), runfiles = ctx.runfiles([out] + objects.keys()))]

objects_of = rule(
    implementation = _objects_of_impl,
    doc = "A file with the path of each object of this workspace in `library` and below; the objects go along.",
    attrs = {"library": attr.label(mandatory = True, providers = [CcInfo])},
)
