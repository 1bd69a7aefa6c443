"""Types of request fields with their limits, each defined once. No I/O.

The tables have the same limits: forms reject bad values first, and the database enforces them again.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

# A NUL cannot be stored in PostgreSQL, and a line break in a name breaks every page that shows it.
ONE_LINE = r"^[^\x00-\x1f\x7f]*$(?!\n)"
SOME_LINES = r"^[^\x00]*$(?!\n)"
Id = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Slug = Annotated[str, Meta(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$(?!\n)", max_length=60)]
Name = Annotated[str, Meta(min_length=1, max_length=120, pattern=ONE_LINE)]
Title = Annotated[str, Meta(min_length=1, max_length=160, pattern=ONE_LINE)]
ShortText = Annotated[str, Meta(max_length=60, pattern=ONE_LINE)]
Address = Annotated[str, Meta(max_length=300, pattern=ONE_LINE)]
PostalCode = Annotated[str, Meta(max_length=16, pattern=ONE_LINE)]
Country = Annotated[str, Meta(pattern=r"^[A-Z]{2}$(?!\n)", max_length=2)]
Timezone = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+/-]{1,60}$(?!\n)")]
Latitude = Annotated[float, Meta(ge=-90, le=90)]
Longitude = Annotated[float, Meta(ge=-180, le=180)]
Description = Annotated[str, Meta(max_length=4000, pattern=SOME_LINES)]
Rating = Annotated[float, Meta(ge=0, le=10)]
Minutes = Annotated[int, Meta(ge=1, le=1440)]
People = Annotated[list[Name], Meta(max_length=20)]
PosterUrl = Annotated[str, Meta(max_length=500, pattern=ONE_LINE)]  # only known values: organisers/store.py
PosterAlt = Annotated[str, Meta(max_length=300, pattern=ONE_LINE)]

AwareDatetime = Annotated[datetime, Meta(tz=True)]
Currency = Annotated[str, Meta(pattern=r"^[A-Z]{3}$(?!\n)", max_length=3)]
PriceMinor = Annotated[int, Meta(ge=0, le=1_000_000_000)]
HoldTtl = Annotated[int, Meta(ge=1, le=3600)]
OwnerSeats = Annotated[int, Meta(ge=1, le=1000)]
OrderSeats = Annotated[int, Meta(ge=1, le=10)]
