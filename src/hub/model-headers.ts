import { closeSync, ftruncateSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readGguf } from '../../models/checkpoints/gguf.js';
import type { RawTensor } from '../../models/checkpoints/raw-tensor.js';
import { readSafetensors } from '../../models/checkpoints/safetensors.js';
import { HubError } from '../errors/user-errors.js';
import { fetchRange, type RangeOptions, type RemoteSource } from './byte-range.js';
import { A_MODEL } from './chosen-files.js';
import { download } from './download.js';
import type { RemoteFile } from './hub-client.js';
import type { Repository } from './repository.js';
import type { HubSettings } from './settings.js';

export interface HeaderOptions extends RangeOptions {
  settings: HubSettings;
  /** Branch, tag or commit. */
  revision: string;
}

/** A model whose weights are not here. */
export interface RemoteModel {
  commit: string;
  /** Size of its files, in bytes, and their number. */
  bytes: number;
  files: number;
}

const WEIGHTS = /\.(safetensors|gguf)$/i;
/** Files whose headers are asked for at the same time. */
const AT_ONCE = 8;
const FIRST_BYTES = 256 * 1024;
/** Bytes of a GGUF's header that are read at first: most of it is the vocabulary. */
const FIRST_GGUF_BYTES = 4 * 1024 * 1024;
const MAX_GGUF_HEADER_BYTES = 128 * 1024 * 1024;
const MAX_SAFETENSORS_HEADER_BYTES = 32 * 1024 * 1024;
/** Bytes that are compared to distinguish matrices that may be one. */
const COMPARED_BYTES = 64 * 1024;
const MAX_SMALL_BYTES = 1024 * 1024;
const MAX_LOOKED_AT_BYTES = 16 * 1024 * 1024;

/**
 * Writes a model of the hub into a folder without its weights: small files whole, of the others the headers, before a hole as long as the
 * rest. Everything that describes a model can then be read; what little of the weights is looked at for that is there too.
 *
 *   hub     | header | weights ................. |
 *   folder  | header | hole, takes no space      |
 *
 * @returns the path to open, and what the hub has. @throws HubError
 */
export async function fetchHeaders(
  repository: Repository,
  folder: string,
  options: HeaderOptions,
): Promise<{ path: string; remote: RemoteModel }> {
  const { settings, revision, fetch, signal, retryDelayMs } = options;
  if (settings.isOffline) {
    throw new HubError(
      `${repository.id} is not complete in ${settings.cacheFolder}, and HF_HUB_OFFLINE forbids to ask for it.`,
    );
  }
  const { askHub } = await import('./hub-client.js');
  const { commit, files } = await askHub(repository, revision, settings, { fetch, signal, retryDelayMs });
  const names = files.map(({ path }) => path);
  const { paths, gguf } = A_MODEL.choose(names, repository);
  const chosen = paths.map((path) => files.find((file) => file.path === path)!);
  const headers = settings.token === null ? {} : { authorization: `Bearer ${settings.token}` };
  const sourceOf = ({ path }: RemoteFile): RemoteSource => ({
    name: `${repository.id}/${path}`,
    url: `${settings.endpoint}/${repository.id}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`,
    headers,
  });
  for (let begin = 0; begin < chosen.length; begin += AT_ONCE) {
    const some = chosen.slice(begin, begin + AT_ONCE);
    await Promise.all(some.map((file) => fetchPart(file, sourceOf(file), join(folder, file.path), options)));
  }
  const bytes = chosen.reduce((sum, { size }) => sum + size, 0);
  const sources = new Map(chosen.map((file) => [join(folder, file.path), sourceOf(file)]));
  await fetchLookedAt([...sources], options);
  const path = gguf === null ? folder : join(folder, gguf);
  return { path, remote: { commit, bytes, files: chosen.length } };
}

async function fetchPart(
  file: RemoteFile,
  source: RemoteSource,
  target: string,
  options: HeaderOptions,
): Promise<void> {
  mkdirSync(dirname(target), { recursive: true });
  const { size, checksum } = file;
  if (!WEIGHTS.test(file.path)) {
    const { fetch, signal, retryDelayMs } = options;
    const rest = retryDelayMs === undefined ? {} : { retryDelayMs };
    await download({ ...source, size, checksum }, target, { fetch, signal, onBytes: () => {}, ...rest });
  } else if (/\.gguf$/i.test(file.path)) await fetchGguf(size, source, target, options);
  else await fetchSafetensors(size, source, target, options);
}

async function fetchSafetensors(
  size: number,
  source: RemoteSource,
  target: string,
  options: HeaderOptions,
): Promise<void> {
  const first = await fetchRange(source, 0, Math.min(size, FIRST_BYTES), options);
  writePart(target, 0, first, size);
  const claimed = first.length < 8 ? 0 : Number(first.readBigUInt64LE(0)) + 8;
  if (claimed <= first.length || claimed > Math.min(size, MAX_SAFETENSORS_HEADER_BYTES)) return;
  const rest = await fetchRange(source, first.length, claimed - first.length, options);
  writePart(target, first.length, rest, size);
}

/** Where a header ends is known only once it is read: more is fetched until it could be read from what is here. */
async function fetchGguf(
  size: number,
  source: RemoteSource,
  target: string,
  options: HeaderOptions,
): Promise<void> {
  const limit = Math.min(size, MAX_GGUF_HEADER_BYTES);
  let here = 0;
  for (let wanted = Math.min(limit, FIRST_GGUF_BYTES); here < limit; wanted = Math.min(limit, 4 * wanted)) {
    writePart(target, here, await fetchRange(source, here, wanted - here, options), size);
    here = wanted;
    if (headerEnd(target) <= here) return;
  }
}

/** Where a GGUF's header ends; Infinity if it cannot be read: a part of it may be missing, or it has a fault that is named later. */
function headerEnd(file: string): number {
  try {
    return readGguf(file).headerBytes;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Fetches what of the weights a description depends on. @throws HubError if that is more than headers should be */
async function fetchLookedAt(
  sources: readonly [file: string, source: RemoteSource][],
  options: HeaderOptions,
): Promise<void> {
  const parts = sources.flatMap(([file, source]) =>
    (WEIGHTS.test(file) ? tensorsOf(file) : []).flatMap(({ name, offset, byteLength }) => {
      const length = Math.min(byteLength ?? 0, lookedAt(name));
      return length === 0 ? [] : [{ file, source, offset, length }];
    }),
  );
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  if (bytes > MAX_LOOKED_AT_BYTES) {
    const { name } = parts[0]!.source;
    throw new HubError(
      `${name} and the other files have ${(bytes / 1e6).toFixed(0)} MB of factors of RoPE and output layers, which are compared for a description; pull the model first.`,
    );
  }
  for (let begin = 0; begin < parts.length; begin += AT_ONCE) {
    const some = parts.slice(begin, begin + AT_ONCE).map(async ({ file, source, offset, length }) => {
      writePart(file, offset, await fetchRange(source, offset, length, options), null);
    });
    await Promise.all(some);
  }
}

/**
 * Bytes of a tensor that are looked at when a model is opened: factors of RoPE, and of what may be one
 * matrix, embedding and output layer, enough to distinguish them. Zero points and orders of columns, hundreds
 * of megabytes of a large model, are what config.json says of them.
 */
function lookedAt(name: string): number {
  if (/^rope_/.test(name)) return MAX_SMALL_BYTES;
  return /(^|\.)(lm_head|embed_tokens|wte)\.weight$/.test(name) ? COMPARED_BYTES : 0;
}

/** None where the file has a fault: who opens it names it. */
function tensorsOf(file: string): RawTensor[] {
  try {
    return /\.gguf$/i.test(file) ? readGguf(file).tensors : readSafetensors(file);
  } catch {
    return [];
  }
}

/** Writes bytes at a place of a file. @param size of the whole file; null: as it is */
function writePart(file: string, offset: number, bytes: Uint8Array, size: number | null): void {
  const fd = openSync(file, offset === 0 ? 'w' : 'r+');
  try {
    writeSync(fd, bytes, 0, bytes.length, offset);
    if (size !== null) ftruncateSync(fd, size);
  } finally {
    closeSync(fd);
  }
}
