import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bf16Bits } from '../../tools/support/bf16.js';
import type { TestTensor } from '../../tools/support/gguf-writer.js';
import { fromHalf, toHalf } from '../../tools/support/quantized.js';
import { type MadeGguf, writeMadeGguf } from './made-models.js';
import { type MadeTower, madeTower } from './made-towers.js';

/** What llama.cpp's converter makes of a model of towers.py: see tools/reference/towers-gguf.py. */
export interface MadeMmproj {
  name: string;
  /** GGUF of the text model. */
  text?: Pick<MadeGguf, 'keys' | 'tensors'>;
  tower: Pick<MadeGguf, 'keys' | 'tensors'>;
  /** Types of the tower's tensors in files of each type. */
  types: Record<string, string[]>;
  /** CRC-32 of the bytes of all tensors of these files, by their names in order. */
  sums: Record<string, number>;
}

const FILE = new URL('../goldens/towers-gguf.json', import.meta.url);

export const MADE_MMPROJ = (JSON.parse(readFileSync(FILE, 'utf8')) as { towers: MadeMmproj[] }).towers;

export function madeMmproj(name: string): MadeMmproj {
  const made = MADE_MMPROJ.find((one) => one.name === name);
  if (made === undefined) throw new Error(`No made tower named ${name} is converted.`);
  return made;
}

const sourcesOf = ({ tensors }: MadeTower) => new Map(tensors.map((tensor) => [tensor[0], tensor]));

/**
 * Writes the tower's GGUF of a type as the converter does.
 * @param change what the file has in place of the converter's
 */
export function writeMadeMmproj(
  file: string,
  made: MadeMmproj,
  type = 'F32',
  change: Partial<MadeMmproj['tower']> = {},
  seen: (tensor: TestTensor) => void = () => {},
): string {
  const types = new Map(made.tower.tensors.map(([name], i) => [name, made.types[type]![i]!]));
  const gguf = { name: made.name, ...made.tower, ...change };
  return writeMadeGguf(file, sourcesOf(madeTower(made.name)), gguf, (tensor) => {
    const stored = storedAs(tensor, types.get(tensor.name) ?? 'F32');
    seen(stored);
    return stored;
  });
}

/** Id of the token that stands for a picture's tokens in the prompts of the goldens. */
const IMAGE = 100;

/** Writes the GGUF of the text model and that of the tower into a folder of their own. @returns the first */
export function writeMadeGgufs(folder: string, name: string, token: string, template?: string): string {
  const made = madeMmproj(name);
  const directory = join(folder, `${name}-gguf`);
  mkdirSync(directory, { recursive: true });
  writeMadeMmproj(join(directory, 'mmproj-model.gguf'), made);
  const tokens = Array.from({ length: 128 }, (_, id) => (id === IMAGE ? token : `t${id}`));
  const isSpecial = (id: number) => id < 3 || id === IMAGE;
  const { keys, tensors } = made.text!;
  const text: MadeGguf = {
    name,
    tensors,
    keys: [
      ...keys,
      ['tokenizer.ggml.tokens', 'STRING', tokens],
      ['tokenizer.ggml.token_type', 'ARRAY', tokens.map((_, id) => (isSpecial(id) ? 3 : 1))],
      ['tokenizer.ggml.merges', 'STRING', []],
      ...(template === undefined
        ? []
        : [['tokenizer.chat_template', 'STRING', template] as MadeGguf['keys'][number]]),
    ],
  };
  return writeMadeGguf(join(directory, 'model.gguf'), sourcesOf(madeTower(name)), text);
}

/** A tensor of F32 in another type. */
export function storedAs(tensor: TestTensor, type: string): TestTensor {
  const numbers = floatsOf(tensor.data);
  switch (type) {
    case 'F16':
      return { ...tensor, type, data: new Uint8Array(Uint16Array.from(numbers, toHalf).buffer) };
    case 'BF16':
      return { ...tensor, type, data: new Uint8Array(Uint16Array.from(numbers, bf16Bits).buffer) };
    case 'Q8_0':
      return { ...tensor, type, data: eightBits(numbers) };
    default:
      return tensor;
  }
}

/** The same tensor in F32, with the numbers that another type has of it. */
export function roundedAs(tensor: TestTensor, type: string): TestTensor {
  const { data } = storedAs(tensor, type);
  if (type === 'F32') return tensor;
  const numbers = type === 'Q8_0' ? fromEightBits(data) : fromSixteenBits(data, type);
  return { ...tensor, data: new Uint8Array(numbers.buffer) };
}

const floatsOf = (data: Uint8Array) => new Float32Array(data.slice().buffer);

function fromSixteenBits(data: Uint8Array, type: string): Float32Array<ArrayBuffer> {
  const bits = new Uint16Array(data.slice().buffer);
  if (type === 'F16') return Float32Array.from(bits, fromHalf);
  return new Float32Array(Uint32Array.from(bits, (one) => one * 65536).buffer);
}

const BLOCK = 32;
const BLOCK_BYTES = 34;

/** Blocks of 32 bytes and their scale, rounded as gguf-py does: halves away from 0. */
function eightBits(numbers: Float32Array): Uint8Array {
  const { fround } = Math;
  const bytes = new Uint8Array((numbers.length / BLOCK) * BLOCK_BYTES);
  const view = new DataView(bytes.buffer);
  for (let first = 0, at = 0; first < numbers.length; first += BLOCK, at += BLOCK_BYTES) {
    const block = numbers.subarray(first, first + BLOCK);
    const scale = fround(Math.max(...block.map(Math.abs)) / 127);
    const inverse = scale === 0 ? 0 : fround(1 / scale);
    view.setUint16(at, toHalf(scale), true);
    for (const [i, number] of block.entries()) {
      const value = fround(number * inverse);
      view.setInt8(at + 2 + i, Math.sign(value) * Math.floor(fround(Math.abs(value) + 0.5)));
    }
  }
  return bytes;
}

function fromEightBits(bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const numbers = new Float32Array((bytes.length / BLOCK_BYTES) * BLOCK);
  for (let i = 0; i < numbers.length; i++) {
    const at = Math.floor(i / BLOCK) * BLOCK_BYTES;
    numbers[i] = fromHalf(view.getUint16(at, true)) * view.getInt8(at + 2 + (i % BLOCK));
  }
  return numbers;
}
