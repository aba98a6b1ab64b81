import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Checkpoint, CheckpointError } from '../../models/checkpoints/checkpoint.js';
import { openCheckpoint } from '../../models/checkpoints/open-checkpoint.js';

/** A model of the hub: the part of its config.json that is read, and whether it is refused. */
export interface PublishedModel {
  id: string;
  config: Record<string, unknown>;
  /** Number of weights that the hub shows for its files. Absent for a model that is refused. */
  parameters?: number;
  /** Regular expression of the reason; absent: it loads. */
  refused?: string;
}

/** Tensors of a model; those of layers that are alike stand once. See tools/reference/published-tensors.py. Without a type: BF16. */
type PublishedTensor = [
  name: string,
  shape: number[],
  layers: number | number[],
  experts: number,
  type?: string,
];

const BYTES: Readonly<Record<string, number>> = { BF16: 2, F16: 2, I32: 4, F8_E4M3: 1, U8: 1 };

const TESTS = new URL('../../test/', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, TESTS), 'utf8');

/** Models that many people download, of each family: chosen by hand, since the hub's order changes by the day. */
export const PUBLISHED_MODELS: readonly PublishedModel[] = read('fixtures/published-models.jsonl')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as PublishedModel);

const TENSORS: Readonly<Record<string, PublishedTensor[]>> = JSON.parse(
  read('goldens/published-tensors.json'),
);

/** Names, shapes and types of all tensors of a model that is not refused. */
export function tensorsOf({ id }: PublishedModel): [name: string, shape: number[], type: string][] {
  return (TENSORS[id] ?? []).flatMap(([pattern, shape, layers, experts, type = 'BF16']) =>
    (Array.isArray(layers) ? layers : [...Array(layers).keys()]).flatMap((layer) =>
      Array.from({ length: Math.max(1, experts) }, (_, expert): [string, number[], string] => [
        pattern.replace('{layer}', String(layer)).replace('{expert}', String(expert)),
        shape,
        type,
      ]),
    ),
  );
}

/** A tokenizer with one token of any model's vocabulary. */
const TOKENIZER = { version: '1.0', added_tokens: [], model: { type: 'BPE', vocab: { a: 0 }, merges: [] } };

/** Writes a folder with a model's headers. Its weights are a hole in the file, which takes no space whatever its size. */
export function writeHeaders(folder: string, model: PublishedModel): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(model.config));
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(TOKENIZER));
  const header: Record<string, unknown> = {};
  let end = 0;
  for (const [name, shape, dtype] of tensorsOf(model)) {
    const begin = end;
    end += BYTES[dtype]! * shape.reduce((product, size) => product * size, 1);
    header[name] = { dtype, shape, data_offsets: [begin, end] };
  }
  const text = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(text.length));
  const fd = openSync(join(folder, 'model.safetensors'), 'w');
  try {
    writeSync(fd, Buffer.concat([prefix, text]));
    ftruncateSync(fd, 8 + text.length + end);
  } finally {
    closeSync(fd);
  }
  return folder;
}

/** The model as it is opened, or the sentence that refuses it. */
export function openHeaders(folder: string, model: PublishedModel): Checkpoint | string {
  try {
    return openCheckpoint(writeHeaders(folder, model));
  } catch (error) {
    if (error instanceof CheckpointError) return error.message;
    throw error;
  }
}
