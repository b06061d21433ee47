"""backplane_plugin(name, main, ops): the plugin NAME.so of the registry file `main`, which includes the files `ops`.

Its manifest and samples lie beside it. All inputs and outputs are declared, so both actions run in Bazel's sandbox. The compiler is
the `cc` of the PATH, or $CC. With rules_cc, give the output group `sources` to a cc_binary(linkshared = True) instead.
"""

SOURCES = ["_records.c", "_records.h", "_formulas.c", "_formulas.h", "_plugin.c"]

def _plugin(ctx):
    name = ctx.label.name
    sources = [ctx.actions.declare_file(name + end) for end in SOURCES]
    data = [ctx.actions.declare_file(file) for file in [name + ".backplane.json", "samples.json"]]
    plugin = ctx.actions.declare_file(name + ".so")
    ctx.actions.run(
        executable = ctx.executable._codegen,
        arguments = ["--ops", ctx.file.main.path, "--import", ctx.file._registry.path, "--out", plugin.dirname, "--symbol", name,
                     "--emit", "records,formulas,plugin,manifest,samples"],
        inputs = [ctx.file.main, ctx.file._registry] + ctx.files.ops + ctx.files._registry_files,
        outputs = sources + data,
        mnemonic = "BackplaneCodegen",
    )
    headers = ctx.file._base_header.dirname[:-len("/backplane/abi")]
    ctx.actions.run_shell(
        command = "exec ${CC:-cc} -O2 -shared -fPIC -fvisibility=hidden -Wl,-z,now \"$@\"",
        arguments = ["-Wl,--version-script=" + ctx.file._map.path, "-I" + headers, "-I" + plugin.dirname, "-o", plugin.path] +
                    [file.path for file in sources if file.extension == "c"],
        inputs = sources + ctx.files._headers + [ctx.file._map],
        outputs = [plugin],
        mnemonic = "BackplanePlugin",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([plugin] + data)), OutputGroupInfo(sources = depset(sources))]

backplane_plugin = rule(_plugin, attrs = {
    "main": attr.label(allow_single_file = [".yaml"], mandatory = True),
    "ops": attr.label_list(allow_files = [".yaml"]),
    "_codegen": attr.label(default = "@backplane//:bin/backplane-codegen", executable = True, allow_single_file = True, cfg = "host"),
    "_registry": attr.label(default = "@backplane//:share/backplane/ops.yaml", allow_single_file = True),
    "_registry_files": attr.label(default = "@backplane//:registry"),
    "_base_header": attr.label(default = "@backplane//:include/backplane/abi/base.h", allow_single_file = True),
    "_headers": attr.label(default = "@backplane//:headers"),
    "_map": attr.label(default = "@backplane//:lib/cmake/Backplane/plugin.map", allow_single_file = True),
})
