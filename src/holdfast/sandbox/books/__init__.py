"""What the sandbox remembers: one SQLite file, written by one thread, many callers a commit."""

from holdfast.sandbox.books.store import Books, Kept, Writer, copy_as_of

__all__ = ["Books", "Kept", "Writer", "copy_as_of"]
