import { existsSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type protobuf from 'protobufjs';
import { messageOf } from '../../../base/error-text.js';
import { BackendError } from '../backend.js';

/** An input or an output of a signature. */
export interface SavedTensor {
  /** As clients call it. */
  name: string;
  /** Node of the graph and number of its output: `serving_default_x:0`; null: it is no plain tensor (sparse, composite). */
  tensor: string | null;
  /** Number of TensorFlow's DataType. */
  dtype: number;
  /** -1: any size; null: any number of dimensions. */
  shape: readonly number[] | null;
}

/** A function of a graph that clients may call; names in their order. */
export interface SavedSignature {
  inputs: readonly SavedTensor[];
  outputs: readonly SavedTensor[];
}

/** One of the graphs of a SavedModel. */
export interface SavedGraph {
  tags: readonly string[];
  signatures: ReadonlyMap<string, SavedSignature>;
}

const GRAPH_FILE = 'saved_model.pb';
/** Limit for one signature, and for the description of a graph, with its ops and version. */
const MAX_MESSAGE_BYTES = 4 * 2 ** 20;
const MAX_FIELDS = 10_000;
/** Bytes of a tag and a length, at most. */
const HEAD_BYTES = 20;

/**
 * Reads what the graphs of a SavedModel are called and what they take and give. The graphs themselves, which may be gigabytes, are
 * passed over.
 *
 *   saved_model.pb   | 2: graph | tags | GraphDef ..... | 5: signature | 5: signature | | 2: graph ... |
 *                                 read   passed over      read           read
 *
 * Source: saved_model.proto and meta_graph.proto of TensorFlow. @throws BackendError
 */
export async function readSavedModel(folder: string): Promise<SavedGraph[]> {
  const path = join(folder, GRAPH_FILE);
  if (!existsSync(path)) {
    const isText = existsSync(join(folder, 'saved_model.pbtxt'));
    const found = isText ? 'it has the text form, saved_model.pbtxt, which is not read here' : 'it has none';
    throw new BackendError(`${folder} is no SavedModel: a file ${GRAPH_FILE} is expected; ${found}.`);
  }
  const file = await open(path);
  try {
    const graphs: SavedGraph[] = [];
    for (const { field, begin, end } of await fieldsOf(file, 0, (await file.stat()).size)) {
      if (field === 2) graphs.push(await readGraph(file, begin, end));
    }
    return graphs;
  } catch (error) {
    throw new BackendError(`${path} cannot be read: ${messageOf(error)}`, { cause: error });
  } finally {
    await file.close();
  }
}

async function readGraph(file: FileHandle, begin: number, end: number): Promise<SavedGraph> {
  let tags: string[] = [];
  const signatures = new Map<string, SavedSignature>();
  for (const part of await fieldsOf(file, begin, end)) {
    if (part.field === 1) tags = textsOf(await bytesOf(file, part), 4);
    if (part.field !== 5) continue;
    const [name, signature] = mapEntry(await bytesOf(file, part), readSignature);
    signatures.set(name, signature ?? { inputs: [], outputs: [] });
  }
  return { tags, signatures };
}

/** A field with its content, as places in the file. */
interface FilePart {
  field: number;
  begin: number;
  end: number;
}

/** Fields of a message that have a length, which lies in the file from `begin` to `end`. */
async function fieldsOf(file: FileHandle, begin: number, end: number): Promise<FilePart[]> {
  const { Reader } = library();
  const parts: FilePart[] = [];
  const head = new Uint8Array(HEAD_BYTES);
  for (let at = begin; at < end; ) {
    if (parts.length >= MAX_FIELDS) throw new Error(`it has more than ${MAX_FIELDS} parts`);
    const { bytesRead } = await file.read(head, 0, Math.min(HEAD_BYTES, end - at), at);
    const reader = Reader.create(head.subarray(0, bytesRead));
    const tag = reader.uint32();
    if ((tag & 7) === 2) {
      const length = numberOf(reader.uint64());
      const from = at + reader.pos;
      at = from + length;
      parts.push({ field: tag >>> 3, begin: from, end: at });
    } else {
      reader.skipType(tag & 7);
      at += reader.pos;
    }
    if (at > end) throw new Error('it ends in the middle of a message');
  }
  return parts;
}

async function bytesOf(file: FileHandle, { begin, end }: FilePart): Promise<Uint8Array> {
  if (end - begin > MAX_MESSAGE_BYTES) {
    throw new Error(`a signature has ${end - begin} bytes; at most ${MAX_MESSAGE_BYTES} are taken`);
  }
  const bytes = new Uint8Array(end - begin);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, begin);
  return bytes.subarray(0, bytesRead);
}

/** Calls for each field of a message; what `take` does not read is passed over. */
function readFields(bytes: Uint8Array, take: (field: number, reader: protobuf.Reader) => boolean): void {
  const reader = library().Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (!take(tag >>> 3, reader)) reader.skipType(tag & 7);
  }
}

function textsOf(bytes: Uint8Array, wanted: number): string[] {
  const texts: string[] = [];
  readFields(bytes, (field, reader) => field === wanted && texts.push(reader.string()) > 0);
  return texts;
}

function mapEntry<T>(bytes: Uint8Array, read: (bytes: Uint8Array) => T): [string, T | null] {
  let name = '';
  let value: T | null = null;
  readFields(bytes, (field, reader) => {
    if (field === 1) name = reader.string();
    else if (field === 2) value = read(reader.bytes());
    return field === 1 || field === 2;
  });
  return [name, value];
}

function readSignature(bytes: Uint8Array): SavedSignature {
  const inputs: SavedTensor[] = [];
  const outputs: SavedTensor[] = [];
  readFields(bytes, (field, reader) => {
    if (field !== 1 && field !== 2) return false;
    const [name, told] = mapEntry(reader.bytes(), readTensor);
    (field === 1 ? inputs : outputs).push({ name, ...(told ?? NOTHING) });
    return true;
  });
  // The file has them in any order.
  const byName = (a: SavedTensor, b: SavedTensor) => (a.name < b.name ? -1 : 1);
  return { inputs: inputs.sort(byName), outputs: outputs.sort(byName) };
}

const NOTHING = { tensor: null, dtype: 0, shape: null } satisfies Omit<SavedTensor, 'name'>;

function readTensor(bytes: Uint8Array): Omit<SavedTensor, 'name'> {
  const told: { tensor: string | null; dtype: number; shape: number[] | null } = { ...NOTHING, shape: [] };
  readFields(bytes, (field, reader) => {
    if (field === 1) told.tensor = reader.string();
    else if (field === 2) told.dtype = reader.int32();
    else if (field === 3) told.shape = readShape(reader.bytes());
    return field <= 3;
  });
  return told;
}

function readShape(bytes: Uint8Array): number[] | null {
  const sizes: number[] = [];
  let isKnown = true;
  readFields(bytes, (field, reader) => {
    if (field === 2) sizes.push(readSize(reader.bytes()));
    else if (field === 3) isKnown = !reader.bool();
    return field === 2 || field === 3;
  });
  return isKnown ? sizes : null;
}

function readSize(bytes: Uint8Array): number {
  let size = 0;
  readFields(bytes, (field, reader) => {
    if (field === 1) size = numberOf(reader.int64());
    return field === 1;
  });
  return size < 0 ? -1 : size;
}

/** 64 bits as the library gives them, with or without its class for them. */
const numberOf = (value: unknown) => Number(String(value));

let loaded: typeof protobuf | null = null;

function library(): typeof protobuf {
  loaded ??= createRequire(import.meta.url)('protobufjs') as typeof protobuf;
  return loaded;
}
