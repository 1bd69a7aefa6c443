"""The sandbox's webhooks: signed, sent over a few connections, again and again until they are taken."""

from holdfast.sandbox.post.worker import Post

__all__ = ["Post"]
