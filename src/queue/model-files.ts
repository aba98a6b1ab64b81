import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  discardBuildDirectory,
  makeBuildDirectory,
  publishBuildDirectory,
} from '../../base/build-directory.js';
import { type FileFacts, PICTURES_FILE } from '../../cluster/nats/beat.js';
import { isGguf } from '../../models/tokenizer/index.js';

/**
 * Files of an engine directory by which a gateway serves the model: its tokenizer and chat template, what it is, and how its pictures are
 * prepared.
 * None of them has weights.
 */
const NAMES = [
  'engine.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'tokenizer-tables.bin',
  PICTURES_FILE,
];
/** Of these, what decides how texts become tokens. */
const OF_TEXTS: ReadonlySet<string> = new Set(NAMES.slice(1, 4));
/** Most bytes of a model's files that a gateway takes. */
const MAX_BYTES = 256 * 1024 * 1024;
/** Bytes of a part of a file. */
const PART_BYTES = 512 * 1024;

/** The files of an engine directory that gateways ask for, or those that a GGUF would have there. */
export class ModelFiles {
  readonly #directory: string;
  /** Of a GGUF that is computed with as it lies; null: they lie in the directory. */
  readonly #made: ReadonlyMap<string, Buffer> | null;
  readonly facts: FileFacts[];

  private constructor(directory: string, made: ReadonlyMap<string, Buffer> | null, facts: FileFacts[]) {
    this.#directory = directory;
    this.#made = made;
    this.facts = facts;
  }

  /** @param path see ModelInfo.enginePath */
  static async open(path: string): Promise<ModelFiles> {
    const made = isGguf(path) ? await filesOfGguf(path) : null;
    const facts: FileFacts[] = [];
    for (const name of NAMES) {
      const bytes = made === null ? await readIfThere(join(path, name)) : made.get(name);
      if (bytes === undefined) continue;
      facts.push({ name, bytes: bytes.byteLength, digest: digestOf(bytes) });
    }
    return new ModelFiles(path, made, facts);
  }

  /** A part of a file, of at most `most` bytes, empty after its end; null: gateways may not read it. */
  async read(name: string, offset: number, most: number): Promise<Uint8Array | null> {
    const file = this.facts.find((one) => one.name === name);
    if (file === undefined) return null;
    const length = Math.max(0, Math.min(PART_BYTES, most, file.bytes - offset));
    if (this.#made !== null) return this.#made.get(name)!.subarray(offset, offset + length);
    const handle = await open(join(this.#directory, name));
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }
}

const readIfThere = async (path: string) => (existsSync(path) ? readFile(path) : undefined);

async function filesOfGguf(path: string): Promise<Map<string, Buffer>> {
  const { storedEngineTexts } = await import('../../engine/building/stored-engine.js');
  const texts = Object.entries(storedEngineTexts(path));
  return new Map(texts.map(([name, text]) => [name, Buffer.from(text)]));
}

/** Digest of the files by which texts become tokens: equal where a gateway's tokenizer fits. */
export function textDigest(files: readonly FileFacts[]): string {
  const hash = createHash('sha256');
  for (const { name, digest } of files) if (OF_TEXTS.has(name)) hash.update(`${name}\0${digest}\0`);
  return hash.digest('hex');
}

/** Digest of all that is fetched of a model's files. */
export function filesDigest(files: readonly FileFacts[]): string {
  const wanted = files.filter(({ name }) => NAMES.includes(name));
  return digestOf(
    Buffer.from(JSON.stringify(wanted.map(({ name, bytes, digest }) => [name, bytes, digest]))),
  );
}

/**
 * Brings a model's files into a folder, unless they are there. The folder's name is that of their content (filesDigest), and it
 * appears only when all of it has come and was checked.
 * @param read reads a part of a file of some worker's @throws where a file does not come, or is not what it should be
 */
export async function fetchFiles(
  folder: string,
  files: readonly FileFacts[],
  read: (name: string, offset: number) => Promise<Uint8Array>,
): Promise<void> {
  if (existsSync(folder)) return;
  const wanted = files.filter(({ name }) => NAMES.includes(name));
  const size = wanted.reduce((sum, { bytes }) => sum + bytes, 0);
  if (size > MAX_BYTES) throw new Error(`its files have ${size} bytes; a gateway takes ${MAX_BYTES}`);
  const aside = makeBuildDirectory(folder);
  try {
    for (const file of wanted) {
      const path = join(aside, file.name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, await fetchFile(file, read));
    }
    publishBuildDirectory(aside, folder);
  } finally {
    discardBuildDirectory(aside);
  }
}

async function fetchFile(
  { name, bytes, digest }: FileFacts,
  read: (name: string, offset: number) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const whole = new Uint8Array(bytes);
  for (let offset = 0; offset < bytes; ) {
    const part = await read(name, offset);
    if (part.byteLength === 0 || offset + part.byteLength > bytes) {
      throw new Error(`its ${name} does not have the ${bytes} bytes that its worker told of`);
    }
    whole.set(part, offset);
    offset += part.byteLength;
  }
  if (digestOf(whole) !== digest) throw new Error(`its ${name} is not the one that its worker told of`);
  return whole;
}

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
