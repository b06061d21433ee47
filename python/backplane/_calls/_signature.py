"""inspect.signature of ops. Imported when a signature is asked for: inspect is slow to import."""

from inspect import Parameter, Signature


def signature_of(op):
    """The inspect.Signature of an op, from its record."""
    parameters = []
    for name, keyword_only, has_default, default, annotation, positional_only in op.parameters:
        kind = Parameter.POSITIONAL_ONLY if positional_only else Parameter.POSITIONAL_OR_KEYWORD
        kind = Parameter.KEYWORD_ONLY if keyword_only else kind
        default = default if has_default else Parameter.empty
        parameters.append(Parameter(name, kind, default=default, annotation=annotation))
    return Signature(parameters)
