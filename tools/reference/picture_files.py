"""Small pictures of every kind of file, drawn here and written by PIL, or byte by byte where PIL cannot write them."""

import io
import struct
import zlib

import numpy
from PIL import Image, ImageCms

WIDTH, HEIGHT = 29, 19


def drawn(channels=3, width=WIDTH, height=HEIGHT):
    """A smooth drawing with some noise [height, width, channels]."""
    y, x = numpy.mgrid[0:height, 0:width]
    waves = [128 + 100 * numpy.sin(x / 5 + c) * numpy.cos(y / (4 + c)) for c in range(channels)]
    noise = numpy.random.default_rng(channels).normal(0, 9, (height, width, channels))
    return numpy.clip(numpy.stack(waves, -1) + noise, 0, 255).astype(numpy.uint8)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(bits, colour, samples, extra=b""):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    stride = (WIDTH * channels * bits + 7) // 8
    rows = b"".join(b"\0" + samples[i * stride : (i + 1) * stride] for i in range(HEIGHT))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + extra + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def turned(image, kind, orientation, **options):
    exif = Image.Exif()
    exif[0x112] = orientation
    return saved(image, kind, exif=exif, **options)


def jpegs():
    rgb, grey = Image.fromarray(drawn()), Image.fromarray(drawn(1)[:, :, 0])
    files = {}
    for quality in (30, 85):
        for name, sampling in (("444", 0), ("422", 1), ("420", 2), ("411", "4:1:1")):
            files[f"jpeg {quality} {name}"] = saved(rgb, "JPEG", quality=quality, subsampling=sampling)
    files["jpeg progressive"] = saved(rgb, "JPEG", quality=80, progressive=True)
    files["jpeg grey"] = saved(grey, "JPEG")
    files["jpeg rgb"] = saved(rgb, "JPEG", keep_rgb=True)
    files["jpeg restarts"] = saved(rgb, "JPEG", restart_marker_blocks=2)
    for orientation in range(1, 9):
        files[f"jpeg exif {orientation}"] = turned(rgb, "JPEG", orientation)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    files["jpeg profile"] = saved(rgb, "JPEG", icc_profile=profile)
    files["jpeg cmyk"] = cmyk = saved(Image.fromarray(drawn(4), "CMYK"), "JPEG", quality=90)
    adobe = cmyk.index(b"Adobe")
    files["jpeg ycck"] = cmyk[: adobe + 11] + b"\2" + cmyk[adobe + 12 :]
    length = struct.unpack(">H", cmyk[adobe - 2 : adobe])[0]
    files["jpeg cmyk without Adobe's marker"] = cmyk[: adobe - 4] + cmyk[adobe - 2 + length :]
    files["jpeg and more"] = saved(rgb, "JPEG") + b"PK\3\4 something else"
    return files


def pngs():
    rgb, rgba = Image.fromarray(drawn()), Image.fromarray(drawn(4))
    palette = rgb.quantize(50)
    noise = numpy.random.default_rng(7)
    wide = lambda channels: noise.integers(0, 65536, (HEIGHT, WIDTH, channels)).astype(">u2").tobytes()
    packed = lambda bits: noise.integers(0, 256, (WIDTH * bits + 7) // 8 * HEIGHT, dtype=numpy.uint8).tobytes()
    ramp = numpy.add.outer(numpy.arange(HEIGHT) * 30, numpy.arange(WIDTH) * 9).astype(">u2").tobytes()
    colour = [int(value) for value in drawn()[3, 3]]
    grey = drawn(1)
    files = {
        "png rgb": saved(rgb, "PNG"),
        "png rgba": saved(rgba, "PNG"),
        "png grey": saved(Image.fromarray(grey[:, :, 0]), "PNG"),
        "png grey alpha": saved(rgba.convert("LA"), "PNG"),
        "png palette": saved(palette, "PNG"),
        "png palette 4 bits": saved(rgb.quantize(13), "PNG", bits=4),
        "png palette alpha": saved(palette, "PNG", transparency=bytes(range(0, 250, 5))),
        "png palette hole": saved(palette, "PNG", transparency=7),
        "png 16 grey": png(16, 0, ramp),
        "png 16 grey hole": png(16, 0, ramp, chunk(b"tRNS", struct.pack(">H", 39))),
        "png 16 rgb": png(16, 2, wide(3)),
        "png 16 rgb hole": png(16, 2, bytes([0, 1, 0, 2, 0, 3] * (WIDTH * HEIGHT)), chunk(b"tRNS", struct.pack(">HHH", 0, 0, 0))),
        "png 16 grey alpha": png(16, 4, wide(2)),
        "png 16 rgba": png(16, 6, wide(4)),
        "png grey hole": png(8, 0, grey.tobytes(), chunk(b"tRNS", struct.pack(">H", int(grey[3, 3, 0])))),
        "png rgb hole": png(8, 2, drawn().tobytes(), chunk(b"tRNS", struct.pack(">HHH", *colour))),
        "png gamma": png(8, 2, drawn().tobytes(), chunk(b"gAMA", struct.pack(">I", 100000))),
        "png exif 6": turned(rgb, "PNG", 6),
        "png animated": saved(rgb, "PNG", save_all=True, append_images=[rgb.rotate(90)]),
        "png animated apart": saved(rgb, "PNG", save_all=True, append_images=[rgb.rotate(90)], default_image=True),
    }
    for bits in (1, 2, 4):
        files[f"png {bits} grey"] = png(bits, 0, packed(bits))
        files[f"png {bits} grey hole"] = png(bits, 0, packed(bits), chunk(b"tRNS", struct.pack(">H", 1)))
        files[f"png {bits} grey hole 0"] = png(bits, 0, packed(bits), chunk(b"tRNS", struct.pack(">H", 0)))
    return files


def webps():
    rgb, rgba = Image.fromarray(drawn()), Image.fromarray(drawn(4))
    frames = {"save_all": True, "duration": 100}
    return {
        "webp": saved(rgb, "WEBP", quality=60),
        "webp lossless": saved(rgb, "WEBP", lossless=True),
        "webp alpha": saved(rgba, "WEBP", quality=60),
        "webp alpha lossless": saved(rgba, "WEBP", lossless=True, exact=True),
        "webp exif 6": turned(rgb, "WEBP", 6, lossless=True),
        "webp animated": saved(rgb, "WEBP", append_images=[rgb.rotate(90)], **frames),
        "webp animated alpha": saved(rgba, "WEBP", append_images=[rgba.rotate(90)], lossless=True, **frames),
    }


COLOURS = bytes([200, 10, 10, 10, 200, 10, 10, 10, 200, 240, 240, 0])


def codes(colours, bits):
    """A frame of a GIF, with a clearing code before each colour number that would make codes longer."""
    clear, size, held, count, data = 1 << bits, bits + 1, 0, 0, bytearray()
    sent = [clear]
    for i, colour in enumerate(colours):
        sent += [colour] + ([clear] if i % (clear - 2) == clear - 3 else [])
    for code in sent + [clear + 1]:
        held |= code << count
        count += size
        while count >= 8:
            data.append(held & 255)
            held >>= 8
            count -= 8
    data.append(held & 255)
    blocks = [bytes(data[i : i + 255]) for i in range(0, len(data), 255)]
    return bytes([bits]) + b"".join(bytes([len(one)]) + one for one in blocks) + b"\0"


def gif(size, place, transparent=None, palette=True, local=False, background=0):
    width, height = 4, 3
    colours = [1, 2, 3, 0] * 3
    file = b"GIF89a" + struct.pack("<HHBBB", *size, 0x81 if palette else 0, background, 0)
    file += COLOURS if palette else b""
    if transparent is not None:
        file += b"\x21\xf9\x04\1\0\0" + bytes([transparent]) + b"\0"
    file += b"," + struct.pack("<HHHHB", *place, width, height, 0x81 if local else 0)
    return file + (COLOURS[::-1] if local else b"") + codes(colours, 2) + b";"


def gifs():
    rgb = Image.fromarray(drawn())
    palette = rgb.quantize(50)
    noise = Image.fromarray(numpy.random.default_rng(3).integers(0, 256, (90, 110), dtype=numpy.uint8))
    return {
        "gif": saved(rgb, "GIF"),
        "gif grey": saved(Image.fromarray(drawn(1)[:, :, 0]), "GIF"),
        "gif full of codes": saved(noise, "GIF"),
        "gif hole": saved(palette, "GIF", transparency=7),
        "gif interlaced": saved(palette, "GIF", interlace=1),
        "gif animated": saved(rgb, "GIF", save_all=True, append_images=[rgb.rotate(90)]),
        "gif part": gif((8, 7), (2, 2)),
        "gif part on a background": gif((8, 7), (2, 2), background=2),
        "gif part with a hole": gif((8, 7), (2, 2), transparent=1, background=2),
        "gif palette of its frame": gif((8, 7), (2, 2), local=True),
        "gif palette of its frame alone": gif((4, 3), (0, 0), local=True, palette=False),
        "gif without palette": gif((4, 3), (0, 0), palette=False),
    }


def all_files():
    return {**jpegs(), **pngs(), **webps(), **gifs()}
