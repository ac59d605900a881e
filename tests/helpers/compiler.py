"""Whether a step can be compiled on the machine of the tests."""

from attention_core.graphs.compiled import NoCompilerError, check_compiler


def has_compiler() -> bool:
    """False where there is no C++ compiler, or where Python came without its headers."""
    try:
        check_compiler()
    except NoCompilerError:
        return False
    return True
