"""Names of files that are not UTF-8, which Linux allows and Arrow does not."""

from __future__ import annotations

from pipeline.errors import InputError


def is_utf8(name: str | bytes) -> bool:
    """Whether a name, as the operating system or as Python has it, can be written as UTF-8."""
    try:
        name.decode() if isinstance(name, bytes) else name.encode()
    except UnicodeError:
        return False
    return True


def not_utf8(path: bytes) -> InputError:
    """What to raise for such a path in the input; it tells the directory whose entry is to blame."""
    directory, _, name = path.rpartition(b"/")
    while not is_utf8(directory):
        directory, _, name = directory.rpartition(b"/")
    return InputError(
        f"the directory {directory.decode() or '/'} holds a name that is not UTF-8: {repr(name)[1:]}. "
        "Rename it, or move it out of the input."
    )
