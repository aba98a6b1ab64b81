import { rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import type { FlagTable, FlagValues } from '../flags.js';
import {
  FILE_TYPES,
  type FileType,
  fileTypeOf,
  MODEL_SHAPES,
  type ModelShape,
  modelShapeOf,
  plannedTensors,
  weightBytes,
} from './model-shapes.js';
import { checkRoom, writeRandomGguf } from './random-gguf.js';

/**
 * What Skein keeps in addition to the file, in sizes of the file, at most: the weights in the layout of the
 * machine's kernels, which of Q4_0 are a ninth larger, and the embedding once more, up to three tenths of a
 * small model.
 */
const KEPT_SHARE = 1.5;
/** Share of the memory that a model may take: the rest is the system's, the cache's and this program's. */
const MEMORY_SHARE = 0.9;

/** Flags for a model with random weights. */
export const SHAPE_FLAGS = {
  shape: {
    argument: 'NAME',
    default: '',
    help: `a model with random weights of these sizes: ${MODEL_SHAPES.map(({ name }) => name).join(', ')}`,
  },
  type: {
    argument: 'TYPE',
    default: 'Q4_K_M',
    help: `the types of its weights: ${FILE_TYPES.join(', ')} (default Q4_K_M)`,
  },
  folder: {
    argument: 'DIR',
    default: tmpdir(),
    help: "its folder, with Skein's engine, both removed at the end (default: the system's temporary one)",
  },
} as const satisfies FlagTable;

/** A GGUF with random weights for one run of this program, and the folder of the engines that are made of it. */
export class ShapeFile {
  readonly shape: ModelShape;
  readonly type: FileType;
  /** SHAPE.TYPE */
  readonly name: string;
  readonly path: string;
  readonly cache: string;
  readonly #folder: string;
  readonly #place: string;

  /** @param draftHead true: with a head that guesses tokens. @throws naming a shape or a type that there is none of. */
  constructor({ shape, type, folder }: FlagValues<typeof SHAPE_FLAGS>, draftHead = false) {
    this.shape = { ...modelShapeOf(shape), ...(draftHead && { draftHead }) };
    this.type = fileTypeOf(type);
    this.name = `${shape}.${type}`;
    this.#folder = folder;
    this.#place = join(folder, `skein-shape-${process.pid}`);
    this.path = join(this.#place, `${this.name}.gguf`);
    this.cache = join(this.#place, 'cache');
  }

  /** Writes the file. @throws where memory or disk have no room, and says how much it takes. */
  write(): void {
    const bytes = weightBytes(plannedTensors(this.shape, this.type));
    checkMemory(this.name, bytes);
    checkRoom(this.#folder, this.name, bytes * (1 + KEPT_SHARE));
    console.error(`writing ${this.path}: ${(bytes / 1e9).toFixed(1)} GB`);
    // A run that is broken off leaves no gigabytes on the disk.
    process.once('exit', () => this.remove());
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
    writeRandomGguf(this.path, this.shape, this.type);
  }

  /** Folder of its files. */
  get folder(): string {
    return this.#place;
  }

  remove(): void {
    rmSync(this.#place, { recursive: true, force: true });
  }
}

/** @throws where `total` bytes of memory are too few for a model, and says how much it takes. */
export function checkMemory(what: string, bytes: number, total = totalmem()): void {
  if (bytes <= MEMORY_SHARE * total) return;
  const size = (count: number) => `${(count / 1e9).toFixed(1)} GB`;
  throw new Error(`${what} takes ${size(bytes)} of memory, and this machine has ${size(total)} in all.`);
}
