import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { BpeTables, type BpeTablesData, bytesOf, type TableSizes } from './bpe-tables.js';
import { controlTexts } from './control-tokens.js';
import { adjustForLibrary } from './library-adjustments.js';
import { isBpe, parseTokenizerJson, type TokenizerJson } from './tokenizer-json.js';

/** What a tables file holds: a tokenizer.json again, with its vocabulary and merges as tables. */
export interface TablesFile {
  /** Contents of tokenizer.json without vocabulary and merges. */
  tokenizerJson: unknown;
  tables: BpeTablesData;
}

/** In front of the tables, as JSON. */
interface Header {
  version: number;
  /** sha256 of the tokenizer.json that the file was made from, in hex; where that has changed since, the file is ignored. */
  source: string;
  tokenizerJson: unknown;
  sizes: TableSizes;
}

/**
 * Name of the tables file in an engine directory, next to tokenizer.json; absent where the tokenizer is no
 * BPE. The sha256 of all that follows, the length of the header (uint32, little-endian), the header with
 * spaces up to a multiple of four bytes, the tables.
 */
export const TABLES_FILE_NAME = 'tokenizer-tables.bin';
const VERSION = 3;
const DIGEST_BYTES = 32;
/** Bytes that are hashed at a time. */
const SLICE_BYTES = 2 ** 20;

/**
 * Makes the tables file of a tokenizer.json with this text; null where its model is no BPE, or cannot be used, which the tokenizer
 * reports.
 */
export function makeTablesFile(tokenizerText: string): Uint8Array | null {
  let json: TokenizerJson;
  let made: BpeTablesData;
  try {
    json = parseTokenizerJson(JSON.parse(tokenizerText));
    if (!isBpe(json.model)) return null;
    made = BpeTables.make(adjustForLibrary(json, controlTexts(json)).model);
  } catch {
    return null;
  }
  const { sizes, bytes } = made;
  const source = createHash('sha256').update(tokenizerText).digest('hex');
  const tokenizerJson = { ...json, model: { ...json.model, vocab: {}, merges: [] } };
  const header: Header = { version: VERSION, source, tokenizerJson, sizes };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  const contents = Buffer.concat([length, text, Buffer.alloc(-text.length & 3, ' '), bytes]);
  return Buffer.concat([createHash('sha256').update(contents).digest(), contents]);
}

/**
 * Reads the contents of a tables file; null where it was not made from the tokenizer.json next to it, or is
 * damaged, or of another version. The tables stay where they are in the contents.
 */
export async function readTablesFile(
  contents: Uint8Array,
  tokenizerFile: string,
): Promise<TablesFile | null> {
  const rest = contents.subarray(DIGEST_BYTES);
  if (!(await sha256Of(rest)).equals(contents.subarray(0, DIGEST_BYTES))) return null;
  const read = contentsOf(rest);
  if (read === null || read.header.source !== (await sha256OfFile(tokenizerFile))) return null;
  const { tokenizerJson, sizes } = read.header;
  return { tokenizerJson, tables: { sizes, bytes: read.bytes } };
}

function contentsOf(contents: Uint8Array): { header: Header; bytes: Uint8Array } | null {
  if (contents.length < 4) return null;
  const length = new DataView(contents.buffer, contents.byteOffset).getUint32(0, true);
  const bytes = contents.subarray(4 + length + (-length & 3));
  try {
    const header: Header = JSON.parse(new TextDecoder().decode(contents.subarray(4, 4 + length)));
    return header.version === VERSION && bytes.length === bytesOf(header.sizes) ? { header, bytes } : null;
  } catch {
    return null;
  }
}

/** In slices, so that others get their turn: tables of a large vocabulary have tens of megabytes. */
async function sha256Of(contents: Uint8Array): Promise<Buffer> {
  const hash = createHash('sha256');
  for (let at = 0; at < contents.length; at += SLICE_BYTES) {
    hash.update(contents.subarray(at, at + SLICE_BYTES));
    await setImmediate();
  }
  return hash.digest();
}

/** In slices too. */
async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const slice of createReadStream(file, { highWaterMark: SLICE_BYTES })) hash.update(slice);
  return hash.digest('hex');
}
