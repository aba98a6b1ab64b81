// @ts-check
// Streams the pictures of a folder to a model over one WebSocket, and prints an answer for each, in order.   npm install undici
//
//     skein serve --model-repository examples/frames/models
//     node examples/frames/main.mjs [SERVER [FOLDER]]
//
// The folder has grey pictures (PGM, P5); without one a spot of light moves through a dozen pictures that are made here.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'undici';

/** Frames on their way at once: the model always has one, and a slow one holds up the reading of files. */
const AHEAD = 4;

const server = process.argv[2] ?? 'http://127.0.0.1:8000';
const folder = process.argv[3] ?? makePictures();
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.pgm'))
  .sort();

const socket = new WebSocket(`${server.replace(/^http/, 'ws')}/v2/models/spot/infer`);
let next = 0;
let answered = 0;
const ended = new Promise((resolve, reject) => {
  socket.addEventListener('error', () =>
    reject(new Error(`${server} opens no WebSocket for the model 'spot'.`)),
  );
  socket.addEventListener('close', ({ code, reason }) => resolve([code, reason]));
});
socket.addEventListener('open', () => {
  while (next < names.length && next < AHEAD) sendFrame();
  if (names.length === 0) socket.close(1000);
});
socket.addEventListener('message', ({ data }) => {
  print(JSON.parse(data));
  answered++;
  if (next < names.length) sendFrame();
  else if (answered === names.length) socket.close(1000);
});

const [code, reason] = await ended;
if (process.argv[3] === undefined) rmSync(folder, { recursive: true });
if (answered < names.length) {
  console.error(
    `The server closed the socket after ${answered} of ${names.length} answers: ${code} ${reason}`,
  );
  process.exitCode = 1;
}

/** A binary message: the length of the JSON in 4 bytes, the JSON, the picture as it lies in its file. */
function sendFrame() {
  const name = /** @type {string} */ (names[next++]);
  const { width, height, pixels } = readPicture(readFileSync(join(folder, name)), name);
  const parameters = { binary_data_size: pixels.length };
  const inputs = [{ name: 'PICTURE', datatype: 'UINT8', shape: [height, width], parameters }];
  const json = Buffer.from(JSON.stringify({ id: name, inputs }));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  socket.send(Buffer.concat([length, json, pixels]));
}

/** @param {{ id: string, error?: string, outputs: { name: string, data: number[] }[] }} answer */
function print({ id, error, outputs }) {
  if (error !== undefined) {
    console.log(`${id}: ${error}`);
    return;
  }
  const of = Object.fromEntries(outputs.map(({ name, data }) => [name, data]));
  const [x, y] = of.CENTRE ?? [];
  console.log(`${id}: the spot is at ${x}, ${y}; mean brightness ${of.MEAN?.[0]?.toFixed(1)}`);
}

/**
 * @param {Buffer} bytes
 * @param {string} name
 */
function readPicture(bytes, name) {
  const head = /^P5\s+(\d+)\s+(\d+)\s+255\s/.exec(bytes.toString('latin1', 0, 100));
  if (head === null) throw new Error(`${name} is no grey picture of 8 bits (P5, without comments).`);
  const [width, height] = [Number(head[1]), Number(head[2])];
  const begin = head[0].length;
  return { width, height, pixels: bytes.subarray(begin, begin + width * height) };
}

function makePictures() {
  const made = mkdtempSync(join(tmpdir(), 'frames-'));
  for (let frame = 0; frame < 12; frame++) {
    const pixels = Buffer.alloc(64 * 48, 20);
    const [left, top] = [4 * frame, 3 * frame];
    for (let y = top; y < top + 5; y++) pixels.fill(250, y * 64 + left, y * 64 + left + 5);
    const name = `frame-${String(frame).padStart(2, '0')}.pgm`;
    writeFileSync(join(made, name), Buffer.concat([Buffer.from('P5\n64 48\n255\n'), pixels]));
  }
  return made;
}
