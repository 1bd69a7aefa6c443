"""R1, R3: organisers upload posters, and pages show them from our own origin."""

import io
import struct
import zlib
from typing import Any

import httpx2
import msgspec
import pytest
from PIL import Image, PngImagePlugin

from holdfast.app import App
from tests.support.html_page import city_cookie, opens
from tests.support.organiser import Organiser, Stage, an_event, show_of, sign_in_organiser
from tests.support.searchable_events import index_event
from tests.support.shows import API, problem


def a_picture(
    file_format: str = "JPEG", size: tuple[int, int] = (800, 1200), colour: str = "teal", **more: Any
) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, file_format, **more)
    return file.getvalue()


async def uploads(
    organiser: Organiser, event_id: int, data: bytes, media_type: str = "image/jpeg"
) -> httpx2.Response:
    headers = {"Content-Type": media_type}
    return await organiser.send("PUT", f"/events/{event_id}/poster", content=data, headers=headers)


async def poster_of(api: httpx2.AsyncClient, event_id: int) -> str:
    event = msgspec.json.decode((await api.get(f"{API}/events/{event_id}")).content)
    return str(event["poster"])


@pytest.mark.parametrize(
    ("file_format", "media_type"), [("JPEG", "image/jpeg"), ("PNG", "image/png"), ("WEBP", "image/webp")]
)
async def test_an_uploaded_poster_is_served_in_three_widths(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage, file_format: str, media_type: str
) -> None:
    stored = await uploads(organiser, stage.event_id, a_picture(file_format), media_type)

    assert stored.status_code == 200, stored.text
    url = stored.json()["poster"]
    for width in (240, 480, 960):
        image = await api.get(url.replace("-960.", f"-{width}."))
        assert (image.status_code, image.headers["Content-Type"]) == (200, "image/webp")
        assert image.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert image.headers["X-Content-Type-Options"] == "nosniff"
        decoded = Image.open(io.BytesIO(image.content))
        assert (decoded.format, decoded.size) == ("WEBP", (width, width * 3 // 2))


async def test_every_page_shows_the_poster_that_was_uploaded(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    await organiser.create("/shows", show_of(stage))
    await index_event(app, stage.event_id)
    url = (await uploads(organiser, stage.event_id, a_picture())).json()["poster"]

    for path in (f"/?city={stage.city}", f"/find?city={stage.city}", f"/events/{stage.event_id}"):
        page = await opens(api, path, headers=city_cookie(stage.city))
        shown = [had for had in page.all("img") if url in had.get("srcset", "")]
        assert shown, path
        assert f"/posters/{stage.event_id}.svg" not in {had["src"] for had in page.all("img")}, path
        assert all(size in shown[0]["srcset"] for size in ("240w", "480w", "960w"))
    venue = await opens(api, f"/venues/{stage.venue_id}")
    assert [had for had in venue.all("img") if url in had.get("srcset", "")]


async def test_the_event_page_describes_its_poster(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    url = (await uploads(organiser, stage.event_id, a_picture())).json()["poster"]
    plain = await opens(api, f"/events/{stage.event_id}")
    change = {"poster_alt": "Four people in a paper boat"}
    await organiser.send("PATCH", f"/events/{stage.event_id}", change)
    other = await organiser.create("/events", an_event(title="Unseen"))

    described = await opens(api, f"/events/{stage.event_id}?day=2031-01-01")
    generated = await opens(api, f"/events/{other['id']}")

    assert plain.all("img")[0]["alt"] == "Poster for The Paper Boats"
    assert described.all("img")[0]["alt"] == "Four people in a paper boat"
    assert generated.all("img")[0]["alt"] == ""  # a drawing with the title beside it
    assert plain.all("meta", property="og:image")[0]["content"] == f"http://box.office{url}"


async def test_metadata_of_a_photo_is_removed(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    exif = Image.Exif()
    exif[0x010F] = "SecretCamera"
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", "SecretComment<script>")
    photo = a_picture(exif=exif)
    drawing = a_picture("PNG", pnginfo=words) + b"<script>trailing</script>"
    assert b"SecretCamera" in photo

    for data, media_type in ((photo, "image/jpeg"), (drawing, "image/png")):
        stored = await uploads(organiser, stage.event_id, data, media_type)
        image = (await api.get(stored.json()["poster"])).content
        assert not [secret for secret in (b"Secret", b"script", b"EXIF") if secret in image]


def sideways(*more: tuple[int, int, int, bytes]) -> bytes:
    """Metadata of a photo to be turned clockwise, and further tags: (tag, type, count, value)."""
    tags = [(0x0112, 3, 1, b"\x06\0\0\0"), *more]
    entries = b"".join(struct.pack("<HHI", *tag[:3]) + tag[3] for tag in tags)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0\0\0\0"


RESOLUTION_IN_LETTERS = (0x011A, 2, 4, b"abc\0")


@pytest.mark.parametrize("exif", [sideways(), sideways(RESOLUTION_IN_LETTERS)], ids=["whole", "broken"])
async def test_a_photo_taken_sideways_stands_upright(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage, exif: bytes
) -> None:
    photo = Image.new("RGB", (1200, 800), "white")
    photo.paste("black", (0, 0, 600, 800))  # the left half: the top, once turned
    file = io.BytesIO()
    photo.save(file, "JPEG", exif=exif)

    stored = await uploads(organiser, stage.event_id, file.getvalue())

    image = Image.open(io.BytesIO((await api.get(stored.json()["poster"])).content)).convert("L")
    top, bottom = image.getpixel((480, 100)), image.getpixel((480, 1340))
    assert isinstance(top, int)
    assert isinstance(bottom, int)
    assert top < 60 < 200 < bottom


def a_bomb() -> bytes:
    """A small file that says it has 20 000 times 20 000 pixels."""
    data = bytearray(a_picture("PNG", (400, 600)))
    data[16:24] = (20_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "media_type", "status"),
    [
        (b"", "image/jpeg", 422),
        (b"GIF89a not a picture", "image/png", 422),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", 415),
        (a_picture("PNG"), "image/jpeg", 422),
        (a_picture()[:5000], "image/jpeg", 422),
        (a_picture(size=(100, 150)), "image/jpeg", 422),
        (a_bomb(), "image/png", 422),
        (b"x" * (10 * 1024 * 1024 + 1), "image/jpeg", 413),
    ],
    ids=["empty", "not a picture", "drawing", "another type", "cut off", "tiny", "bomb", "too long"],
)
async def test_what_is_not_a_picture_we_can_show_is_refused(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage, data: bytes, media_type: str, status: int
) -> None:
    refused = await uploads(organiser, stage.event_id, data, media_type)

    assert refused.status_code == status, refused.text
    assert problem(refused)["code"] in ("bad_picture", "unsupported_media_type", "body_too_large")
    assert await poster_of(api, stage.event_id) == f"/posters/{stage.event_id}.svg"


async def test_a_new_poster_replaces_the_old_one_and_old_addresses_lead_to_it(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    old = (await uploads(organiser, stage.event_id, a_picture(colour="red"))).json()["poster"]
    new = (await uploads(organiser, stage.event_id, a_picture(colour="blue"))).json()["poster"]

    followed = await api.get(old.replace("-960.", "-240."))

    assert new != old
    assert (followed.status_code, followed.headers["Location"]) == (302, new.replace("-960.", "-240."))
    assert "immutable" not in followed.headers["Cache-Control"]
    assert await poster_of(api, stage.event_id) == new


async def test_a_removed_poster_gives_way_to_the_generated_one(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    url = (await uploads(organiser, stage.event_id, a_picture())).json()["poster"]

    removed = await organiser.send("DELETE", f"/events/{stage.event_id}/poster")
    again = await organiser.send("DELETE", f"/events/{stage.event_id}/poster")
    followed = await api.get(url)

    assert (removed.status_code, again.status_code) == (204, 204)
    assert await poster_of(api, stage.event_id) == f"/posters/{stage.event_id}.svg"
    assert (followed.status_code, followed.headers["Location"]) == (302, f"/posters/{stage.event_id}.svg")
    assert not await app.postgres.fetch("SELECT FROM poster_image WHERE event_id = $1", stage.event_id)


async def test_a_poster_from_elsewhere_is_refused_with_the_way_to_upload_it(
    api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    elsewhere = {"poster": "https://elsewhere.example/p.png"}
    url = (await uploads(organiser, stage.event_id, a_picture())).json()["poster"]

    created = await organiser.send("POST", "/events", an_event(**elsewhere))
    changed = await organiser.send("PATCH", f"/events/{stage.event_id}", elsewhere)
    same = await organiser.send("PATCH", f"/events/{stage.event_id}", {"poster": url, "title": "New"})
    none = await organiser.send("PATCH", f"/events/{stage.event_id}", {"poster": ""})

    for refused in (created, changed):
        assert (refused.status_code, problem(refused)["field"]) == (422, "poster")
        assert "PUT /api/v1/admin/events/" in problem(refused)["detail"]
    assert (same.status_code, same.json()["poster"]) == (200, url)
    assert (none.status_code, none.json()["poster"]) == (200, "")
    assert await poster_of(api, stage.event_id) == f"/posters/{stage.event_id}.svg"


async def test_only_its_organiser_changes_a_poster(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, stage: Stage
) -> None:
    stranger = await sign_in_organiser(app, api)

    put = await uploads(stranger, stage.event_id, a_picture())
    deleted = await stranger.send("DELETE", f"/events/{stage.event_id}/poster")
    nowhere = await uploads(organiser, 999_999_999, a_picture())

    assert (put.status_code, deleted.status_code, nowhere.status_code) == (404, 404, 404)


@pytest.mark.parametrize("name", ["{}-0123456789abcdef-300.webp", "{}-x-240.webp", "{}--240.webp", "{}.webp"])
async def test_a_width_that_is_not_made_is_not_found(
    api: httpx2.AsyncClient, stage: Stage, name: str
) -> None:
    assert (await api.get(f"/posters/{name.format(stage.event_id)}")).status_code == 404
