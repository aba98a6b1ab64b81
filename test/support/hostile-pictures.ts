import { crc32, deflateSync } from 'node:zlib';
import { pictureGoldens } from './picture-goldens.js';

/** A file, and what becomes of it: the size of a picture, or the sentence that refuses it. */
export interface HostilePicture {
  name: string;
  bytes: Uint8Array;
  becomes: [width: number, height: number] | RegExp;
}

const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');

export function golden(name: string): Buffer {
  const found = pictureGoldens().files.find((one) => one.name === name);
  if (found === undefined) throw new Error(`No golden picture '${name}'.`);
  return Buffer.from(found.file, 'base64');
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function pngChunk(type: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  return Buffer.concat([uint32(data.length), body, uint32(crc32(body))]);
}

interface PngParts {
  bits?: number;
  colour?: number;
  interlace?: number;
  rows?: Uint8Array;
  before?: Buffer[];
  after?: Buffer[];
}

/** A PNG file, of bytes that are all zero where no rows are given. */
function png(width: number, height: number, parts: PngParts = {}): Buffer {
  const { bits = 8, colour = 0, interlace = 0, before = [], after = [] } = parts;
  const header = Buffer.concat([uint32(width), uint32(height), Buffer.from([bits, colour, 0, 0, interlace])]);
  const rows = parts.rows ?? Buffer.alloc(Math.min(1e6, (width + 1) * height));
  return Buffer.concat([
    SIGNATURE,
    pngChunk('IHDR', header),
    ...before,
    pngChunk('IDAT', deflateSync(rows)),
    ...after,
    pngChunk('IEND', Buffer.alloc(0)),
  ]);
}

/** A PNG file whose pixels are drawn, so that it is hardly smaller than they are. */
export function noisePng(width: number, height: number): Buffer {
  const rows = Buffer.alloc((3 * width + 1) * height);
  let state = 1;
  for (let i = 0; i < rows.length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    // Each row begins with the number of its filter: none.
    rows[i] = i % (3 * width + 1) === 0 ? 0 : state >>> 24;
  }
  return png(width, height, { colour: 2, rows });
}

function packedText(length: number): Buffer {
  return Buffer.concat([Buffer.from('comment\0\0', 'latin1'), deflateSync(Buffer.alloc(length, 65))]);
}

const whole = { rows: Buffer.alloc(6 * 5) };

function pngs(): HostilePicture[] {
  const rgb = golden('png rgb');
  const badSum = Buffer.from(rgb);
  badSum.writeUInt8(badSum.at(-20)! ^ 1, badSum.length - 20);
  const empty = Buffer.alloc(0);
  const frames = Array.from({ length: 10_000 }, () => pngChunk('fdAT', Buffer.alloc(8)));
  const file = (name: string, bytes: Uint8Array, becomes: HostilePicture['becomes']) => ({
    name: `PNG ${name}`,
    bytes,
    becomes,
  });
  return [
    file('of 30000 x 30000', png(30_000, 30_000), /has 30000 x 30000 pixels, and a side may have 16384\.$/),
    file('of 16000 x 16000', png(16_000, 16_000), /which are 256000000, and may have 16000000\.$/),
    file('of the largest numbers', png(2 ** 32 - 1, 2 ** 32 - 1), /and a side may have 16384/),
    file('without columns', png(0, 5), /^The PNG picture has 0 x 5 pixels: it is empty\.$/),
    file('without rows', png(5, 0), /has 5 x 0 pixels: it is empty/),
    file('of nothing, packed a thousandfold', png(1000, 999), [1000, 999]),
    file(
      'with a text of 200 MB',
      png(5, 5, { ...whole, before: [pngChunk('zTXt', packedText(2e8))] }),
      [5, 5],
    ),
    file(
      'with a profile of 99 MB',
      png(5, 5, { ...whole, before: [pngChunk('iCCP', packedText(1e8))] }),
      [5, 5],
    ),
    file('with 10000 frames', png(5, 5, { ...whole, after: frames }), [5, 5]),
    file(
      'with too many chunks',
      png(5, 5, { ...whole, before: Array.from({ length: 70_000 }, () => pngChunk('tEXt', empty)) }),
      /it has more than 65536 chunks/,
    ),
    file('cut in its header', rgb.subarray(0, 20), /it breaks off in a chunk/),
    file('cut in the middle', rgb.subarray(0, rgb.length >> 1), /it breaks off in a chunk/),
    file('without its end', rgb.subarray(0, rgb.length - 12), /it has no end/),
    file(
      'with too few rows',
      png(5, 5, { rows: Buffer.alloc(11) }),
      /^The PNG picture cannot be decoded: .*\.$/,
    ),
    file('with a wrong checksum', badSum, /^The PNG picture cannot be decoded: .*\.$/),
    file(
      'with a filter that is none',
      png(5, 5, { rows: Buffer.alloc(30, 9) }),
      /^The PNG picture cannot be decoded: /,
    ),
    file('with colours of type 5', png(5, 5, { ...whole, colour: 5 }), /it has colours of type 5 and 8 bits/),
    file('with colours of 3 bits', png(5, 5, { ...whole, bits: 3 }), /it has colours of type 0 and 3 bits/),
    file(
      'with another interlacing',
      png(5, 5, { ...whole, interlace: 7 }),
      /^The PNG picture cannot be decoded: /,
    ),
    file('without its palette', png(5, 5, { ...whole, colour: 3 }), /^The PNG picture cannot be decoded: /),
    file(
      'with its end first',
      Buffer.concat([SIGNATURE, pngChunk('IEND', empty)]),
      /does not begin with its header/,
    ),
    file('that is a beginning alone', SIGNATURE, /it has no end/),
  ];
}

/** A JPEG file whose frame header is changed. @param at from its length on */
function withFrame(file: Buffer, at: number, ...values: number[]): Buffer {
  const frame = file.findIndex((byte, i) => byte === 0xff && (file[i + 1] === 0xc0 || file[i + 1] === 0xc2));
  const changed = Buffer.from(file);
  changed.set(values, frame + 2 + at);
  return changed;
}

function jpegs(): HostilePicture[] {
  const jpeg = golden('jpeg 85 420');
  const progressive = golden('jpeg progressive');
  const lastScan = progressive.lastIndexOf(Buffer.from([0xff, 0xda]));
  const scan = progressive.subarray(lastScan, progressive.length - 2);
  const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]));
  const header = jpeg.subarray(frame, frame + 2 + jpeg.readUInt16BE(frame + 2));
  const turned = golden('jpeg exif 6');
  const orientation = turned.indexOf(Buffer.from([1, 0x12]));
  const oddly = Buffer.from(turned);
  oddly.set([0, 99], orientation + 8);
  const file = (name: string, bytes: Uint8Array, becomes: HostilePicture['becomes']) => ({
    name: `JPEG ${name}`,
    bytes,
    becomes,
  });
  return [
    file(
      'of 65500 x 65500',
      withFrame(jpeg, 3, 0xff, 0xdc, 0xff, 0xdc),
      /has 65500 x 65500 pixels, and a side may/,
    ),
    file('that is larger than its data', withFrame(jpeg, 3, 0x0f, 0, 0x0f, 0), [3840, 3840]),
    file('without rows', withFrame(jpeg, 3, 0, 0), /has 29 x 0 pixels: it is empty/),
    file('of 12 bits', withFrame(jpeg, 2, 12), /it has samples of 12 bits, and 8 are read/),
    file('of two channels', withFrame(jpeg, 7, 2), /it has 2 channels, and 1, 3 or 4 are read/),
    file(
      'cut in the middle',
      jpeg.subarray(0, jpeg.length - 200),
      /^The JPEG picture cannot be decoded: .*\.$/,
    ),
    file('cut in a segment', jpeg.subarray(0, 30), /it breaks off in a segment/),
    file('that is a beginning alone', jpeg.subarray(0, 3), /it has no frame/),
    file(
      'of fill bytes alone',
      Buffer.concat([jpeg.subarray(0, 2), Buffer.alloc(1e6, 0xff)]),
      /no scan is found at its/,
    ),
    file(
      'of restarts alone',
      Buffer.concat([jpeg.subarray(0, 3), Buffer.alloc(1e6, '\xff\xd0', 'latin1')]),
      /no scan is/,
    ),
    file(
      'of a thousand scans',
      Buffer.concat([
        progressive.subarray(0, lastScan),
        ...Array.from({ length: 1000 }, () => scan),
        progressive.subarray(-2),
      ]),
      /it has more than 64 scans/,
    ),
    file(
      'of two frames',
      Buffer.concat([jpeg.subarray(0, frame), header, jpeg.subarray(frame)]),
      /it has two frames/,
    ),
    file('turned in no way', oddly, [29, 19]),
  ];
}

function riff(size: number, ...chunks: Buffer[]): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(size);
  return Buffer.concat([Buffer.from('RIFF'), length, Buffer.from('WEBP'), ...chunks]);
}

function webps(): HostilePicture[] {
  const webp = golden('webp');
  const lossless = golden('webp lossless');
  const animated = golden('webp animated');
  const canvas = Buffer.from(animated);
  canvas.set([0xff, 0x3f, 0, 0xff, 0x3f, 0], 24);
  const wider = Buffer.from(animated);
  wider.set([99, 0, 0], 24);
  const bigger = Buffer.from(lossless);
  bigger.writeUInt32LE(0x0fffffff, 21);
  const file = (name: string, bytes: Uint8Array, becomes: HostilePicture['becomes']) => ({
    name: `WebP ${name}`,
    bytes,
    becomes,
  });
  return [
    file('cut in its header', webp.subarray(0, 25), /it breaks off in its header/),
    file('cut in the middle', webp.subarray(0, webp.length - 30), /it breaks off/),
    file(
      'cut, with a length that fits',
      riff(webp.length - 38, webp.subarray(12, webp.length - 30)),
      /^The WebP picture cannot/,
    ),
    file('of 16384 x 16384', canvas, /has 16384 x 16384 pixels, which are 268435456/),
    file('of more than its data has', bigger, /has 16384 x 16384 pixels/),
    file('whose frames are smaller', wider, /^The WebP picture |^100 19$/),
    file(
      'of zeros',
      Buffer.concat([webp.subarray(0, 12), Buffer.alloc(webp.length - 12)]),
      /does not begin with a picture/,
    ),
    file(
      'without a picture',
      riff(22, Buffer.from('VP8X'), Buffer.from([10, 0, 0, 0]), Buffer.alloc(10)),
      /^The WebP picture /,
    ),
  ];
}

function gifs(): HostilePicture[] {
  const gif = golden('gif part');
  const frame = gif.subarray(gif.indexOf(0x2c, 25), gif.length - 1);
  const start = gif.subarray(0, gif.length - 1 - frame.length);
  const changed = (at: number, ...values: number[]) => {
    const file = Buffer.from(gif);
    file.set(values, at);
    return file;
  };
  const place = start.length;
  const comments = Buffer.alloc(3e6, Buffer.from([0x21, 0xfe, 1, 65, 0]));
  const file = (name: string, bytes: Uint8Array, becomes: HostilePicture['becomes']) => ({
    name: `GIF ${name}`,
    bytes,
    becomes,
  });
  return [
    file(
      'of 10000 frames',
      Buffer.concat([start, ...Array.from({ length: 10_000 }, () => frame), Buffer.from(';')]),
      [8, 7],
    ),
    file('of 65535 x 65535', changed(6, 255, 255, 255, 255), /has 65535 x 65535 pixels/),
    file('without columns', changed(6, 0, 0), /has 0 x 7 pixels: it is empty/),
    file('cut in its header', gif.subarray(0, 9), /it breaks off in its header/),
    file('cut in its palette', gif.subarray(0, 20), /it breaks off in a palette/),
    file('cut in its frame', gif.subarray(0, gif.length - 6), /it breaks off in its first frame/),
    file('without a frame', Buffer.concat([start, Buffer.from(';')]), /it has no frame/),
    file('of comments alone', Buffer.concat([start, comments]), /it has no frame/),
    file('whose frame lies outside', changed(place + 1, 7), /its first frame is larger than the picture/),
    file('with colour numbers of 12 bits', changed(place + 10, 12), /its colour numbers have 12 bits/),
    file(
      'with an unknown code',
      changed(place + 12, 0xfc, 0xff, 0xff),
      /it has an unknown code|it ends too early|ends too/,
    ),
    file('that is a script', Buffer.from('GIF89a/*\n*/=1;alert(1);//'), /^The GIF picture /),
  ];
}

function others(): HostilePicture[] {
  const png = golden('png rgb');
  const jpeg = golden('jpeg 85 420');
  const box = (brand: string) =>
    Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from(`ftyp${brand}`), Buffer.alloc(12)]);
  const bomb = `<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "${'&b;'.repeat(50)}">]><svg>&c;</svg>`;
  const kinds: [name: string, bytes: Buffer, found: string][] = [
    [
      'an SVG',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
      'an SVG drawing',
    ],
    ['an SVG of entities', Buffer.from(bomb), 'an SVG drawing'],
    ['an SVG with a mark before it', Buffer.from('\ufeff<SVG width="9">'), 'an SVG drawing'],
    ['a TIFF', Buffer.from('II*\0\x08\0\0\0', 'latin1'), 'a TIFF picture'],
    ['a TIFF of the other order', Buffer.from('MM\0*\0\0\0\x08', 'latin1'), 'a TIFF picture'],
    ['an AVIF', box('avif'), 'an AVIF picture'],
    ['a HEIC', box('heic'), 'a HEIC picture'],
    ['a video', box('mp42'), 'a video'],
    ['a BMP', Buffer.from('BM6\0\0\0', 'latin1'), 'a BMP picture'],
    ['an icon', Buffer.from([0, 0, 1, 0, 1, 0]), 'an icon file'],
    ['a PDF', Buffer.from('%PDF-1.7'), 'a PDF file'],
    ['an archive', Buffer.from('PK\x03\x04', 'latin1'), 'an archive'],
    ['a JPEG XL', Buffer.from([0xff, 0x0a, 0, 0]), 'a JPEG XL picture'],
    ['a page', Buffer.from('<!doctype html><img>'), 'an HTML page'],
    ['a data URL', Buffer.from('data:image/png;base64,iVBO'), 'a data URL, not decoded'],
    ['base64', Buffer.from(png.toString('base64')), 'base64 text of a PNG picture, not decoded'],
    ['no bytes', Buffer.alloc(0), 'empty'],
    ['a byte', Buffer.from('x'), 'none of those: it begins with the bytes 78'],
    [
      'a RIFF that is no WebP',
      Buffer.from('RIFF\0\0\0\0WAVEfmt '),
      'none of those: it begins with the bytes 52 49 46 46 00 00 00 00',
    ],
    [
      'a PNG without its first byte',
      png.subarray(1),
      'none of those: it begins with the bytes 50 4e 47 0d 0a 1a 0a 00',
    ],
  ];
  return [
    ...kinds.map(([name, bytes, found]) => ({
      name,
      bytes,
      becomes: new RegExp(`^The picture should be a JPEG, PNG, WebP or GIF file, and it is ${found}\\.$`),
    })),
    { name: 'a JPEG that is a PNG too', bytes: Buffer.concat([jpeg, png]), becomes: [29, 19] },
    {
      name: 'a PNG that is an archive too',
      bytes: Buffer.concat([png, Buffer.from('PK\x03\x04rest')]),
      becomes: [29, 19],
    },
  ];
}

export function hostilePictures(): HostilePicture[] {
  return [...pngs(), ...jpegs(), ...webps(), ...gifs(), ...others()];
}
