"""
What PIL and transformers' image processors make of pictures.

    python tools/reference/pictures.py

writes test/goldens/pictures.json (needs pillow and torchvision besides the requirements):
`files` are small files of every kind, with the digest of the red, green and blue bytes that an image processor gets of what PIL opens,
turned upright as transformers' `load_image` does. `resizes` are digests of drawn pictures in other sizes, by PIL's resize and by
torchvision's of bytes. `processors` are image processors of transformers with torchvision, each with the digests of its float32 patches in
the order in which the tower reads them, and the text that its processor puts in a picture's place.
Drawn pictures are a formula, which the tests have too, so that no pixels are kept.
"""

import base64
import hashlib
import io
import os

import numpy
import torch
from PIL import Image, ImageOps
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional
from transformers.image_transforms import convert_to_rgb

from golden import write_json
from picture_files import all_files
from picture_processors import processors

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "test", "goldens", "pictures.json")
FILTERS = {
    "bilinear": (Image.BILINEAR, InterpolationMode.BILINEAR),
    "bicubic": (Image.BICUBIC, InterpolationMode.BICUBIC),
    "lanczos": (Image.LANCZOS, InterpolationMode.LANCZOS),
}
SIZES = [
    ((40, 30), (17, 11)),
    ((17, 11), (40, 30)),
    ((64, 48), (64, 20)),
    ((64, 48), (20, 48)),
    ((233, 111), (100, 90)),
    ((5, 5), (64, 63)),
    ((2, 7), (28, 28)),
    ((700, 3), (56, 28)),
    ((31, 29), (2, 1)),
]


def digest(array):
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def formula(width, height):
    """The drawn picture [height, width, 3] of bytes."""
    y, x, c = numpy.mgrid[0:height, 0:width, 0:3]
    return ((x * 37 + y * 59 + c * 83 + (x * y * 7 >> 4) + ((x >> 3) ^ (y >> 2)) * 29) & 255).astype(numpy.uint8)


def decoded(name, file):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
    pixels = convert_to_rgb(image, return_numpy=True)
    return {
        "name": name,
        "file": base64.b64encode(file).decode(),
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "sha256": digest(pixels),
    }


def resizes():
    for (width, height), (wide, high) in SIZES:
        pixels = formula(width, height)
        channels = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()[None]
        for name, (of_pil, of_torch) in FILTERS.items():
            torches = functional.resize(channels, [high, wide], interpolation=of_torch, antialias=True)
            yield {
                "filter": name,
                "from": [width, height],
                "to": [wide, high],
                "pil": digest(Image.fromarray(pixels).resize((wide, high), of_pil)),
                "torch": digest(torches[0].permute(1, 2, 0).numpy()),
            }


if __name__ == "__main__":
    known = {"files": list(decoded(*one) for one in all_files().items()), "resizes": list(resizes())}
    write_json(PATH, known, "processors", list(processors(formula, digest)))
