"""What people type about themselves, and what of it we take. No I/O."""

from typing import Annotated

from msgspec import Meta

# ASCII on purpose: see normal_email.
Email = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=254,
        pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$",
        examples=["ann@example.org"],
    ),
]
NewPassword = Annotated[str, Meta(min_length=8, max_length=128, examples=["correct horse battery staple"])]
Password = Annotated[str, Meta(min_length=1, max_length=128)]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=120,
        pattern=r"^[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$",
        examples=["Ann"],
    ),
]
RefreshToken = Annotated[str, Meta(min_length=1, max_length=128)]
