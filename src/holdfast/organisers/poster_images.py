"""Turns an uploaded picture into the poster that pages show: WebP in three widths, without metadata.

Everything a browser gets is encoded here: a file that is also something else (a script, a page) loses that
part, and so do the place and the camera that a photo names.
"""

import hashlib
import io
from dataclasses import dataclass

from PIL import ExifTags, Image, ImageCms, ImageOps

from holdfast.catalogue import POSTER_WIDTHS
from holdfast.organisers.errors import BadPicture

FORMATS = {"image/jpeg": "JPEG", "image/png": "PNG", "image/webp": "WEBP"}
PIXELS_MAX = 40_000_000  # decoded before it is scaled: 120 MB
SIDE_MIN = 320  # pixels; less looks blurred on a phone
QUALITY = 80
Image.MAX_IMAGE_PIXELS = PIXELS_MAX  # Pillow refuses twice as many while it reads the header


TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True, slots=True)
class PosterImages:
    hash: str  # of the largest: in the address, so that browsers may cache an image permanently
    by_width: dict[int, bytes]


def build_poster_images(data: bytes, media_type: str) -> PosterImages:
    """Raises BadPicture for anything that is not a whole picture of this type."""
    try:
        picture = _decode(data, FORMATS[media_type])
    except Image.DecompressionBombError:
        raise _too_many_pixels() from None
    except BadPicture:
        raise
    except Exception:  # decoders fail in many ways on a broken file, and each means the same
        raise BadPicture(detail="Expected a whole JPEG, PNG or WebP picture of its Content-Type.") from None
    by_width = {width: _encode(picture, width) for width in POSTER_WIDTHS}
    content = by_width[max(by_width)]
    return PosterImages(hashlib.blake2b(content, digest_size=8).hexdigest(), by_width)


def _too_many_pixels() -> BadPicture:
    return BadPicture(detail=f"Expected at most {PIXELS_MAX} pixels.")


def _decode(data: bytes, file_format: str) -> Image.Image:
    with Image.open(io.BytesIO(data), formats=[file_format]) as file:
        if file.width * file.height > PIXELS_MAX:
            raise _too_many_pixels()
        if min(file.size) < SIDE_MIN:
            raise BadPicture(detail=f"Expected at least {SIDE_MIN} pixels on each side.")
        file.draft("RGB", (max(POSTER_WIDTHS) * 2, max(POSTER_WIDTHS) * 3))  # a JPEG is decoded smaller
        file.load()
        return _flatten(_to_srgb(_turn_upright(file)))


def _turn_upright(picture: Image.Image) -> Image.Image:
    """As a camera held sideways noted it. Not ImageOps.exif_transpose: it fails on other broken tags."""
    turn = TURNS.get(picture.getexif().get(ExifTags.Base.Orientation, 1))
    if turn is None:
        return picture
    upright = picture.transpose(turn)
    upright.info = picture.info
    return upright


def _to_srgb(picture: Image.Image) -> Image.Image:
    """Colours as sRGB: the profile is metadata and is removed with the rest."""
    profile = picture.info.get("icc_profile")
    if not profile or picture.mode not in ("RGB", "CMYK"):
        return picture
    try:
        source, wanted = ImageCms.ImageCmsProfile(io.BytesIO(profile)), ImageCms.createProfile("sRGB")
        return ImageCms.profileToProfile(picture, source, wanted, outputMode="RGB") or picture
    except (ImageCms.PyCMSError, OSError):
        return picture  # a broken profile is ignored, as browsers do


def _flatten(picture: Image.Image) -> Image.Image:
    """Transparent parts become white."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    ground = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(ground, layer).convert("RGB")


def _encode(picture: Image.Image, width: int) -> bytes:
    """Two to three, as pages show posters; what is wider or taller is cut evenly on both sides."""
    scaled = ImageOps.fit(picture, (width, width * 3 // 2), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    scaled.save(file, "WEBP", quality=QUALITY, method=4)
    return file.getvalue()
