"""inspect.signature of ops. Imported when a signature is asked for: inspect is slow to import."""

from inspect import Parameter, Signature


def signature_of(op):
    """The inspect.Signature of an op, from its record."""
    parameters = []
    for name, keyword_only, has_default, default, annotation in op.parameters:
        kind = Parameter.KEYWORD_ONLY if keyword_only else Parameter.POSITIONAL_OR_KEYWORD
        default = default if has_default else Parameter.empty
        parameters.append(Parameter(name, kind, default=default, annotation=annotation))
    return Signature(parameters)
