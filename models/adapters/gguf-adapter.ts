import { namesOfArchitecture } from '../architectures/index.js';
import { CheckpointError } from '../checkpoints/checkpoint.js';
import { type GgufHeader, readGguf } from '../checkpoints/gguf.js';
import { huggingFaceTensorName, interleavedHeads } from '../checkpoints/gguf-tensor-names.js';
import type { ModelConfig } from '../model-config.js';
import {
  checkedPair,
  type PlacedTensor,
  pairsOf,
  readPairs,
  shownName,
  type TensorPlace,
} from './adapter-tensors.js';
import { type AdapterLimits, type AdapterWeights, adapterOf, type ModuleLayer } from './adapter-weights.js';
import { type BaseModules, baseModules, moduleIn } from './base-modules.js';

/** Name of GGUF for the architectures whose files it writes under another name than theirs. */
const FILE_ARCHITECTURES: Readonly<Record<string, string>> = { mistral: 'llama', mixtral: 'llama' };
const PARTS = { A: 'lora_a', B: 'lora_b' };

/** A tensor's place, and the heads whose rows the converter interleaves, as it does in the base's file. */
interface GgufPlace extends TensorPlace {
  interleavedHeads: number | undefined;
}

/**
 * Reads a LoRA adapter as llama.cpp's converter writes it (convert_lora_to_gguf.py): one GGUF file, in which each weight of the base has
 *
 *   blk.0.attn_q.weight.lora_a   A, [rank x in]          adapter.lora.alpha / rank is the scaling; 0 or absent: 1
 *   blk.0.attn_q.weight.lora_b   B, [out x rank], rows of interleaved heads in their order of the base's GGUF file
 *
 * The result has Hugging Face's order of rows, whatever the base came from, as engines have.
 * @throws CheckpointError that names file, tensor or key, expected and found
 */
export function readGgufAdapter(file: string, config: ModelConfig, limits: AdapterLimits): AdapterWeights {
  const header = readGguf(file);
  const alpha = alphaOf(header, config);
  const base = baseModules(config);
  if (base.names.size === 0) {
    throw new CheckpointError(`${file}: an encoder (${config.architecture}) cannot have adapters.`);
  }
  const fileConfig = { ...config, architecture: fileArchitecture(config) };
  const pairs = pairsOf(file, placedTensors(header, fileConfig, base), PARTS);
  const checked = pairs.map((pair) => {
    const rank = pair.A.shape[0] ?? 0;
    if (rank < 1) throw new CheckpointError(`${file}: tensor ${pair.A.name} has rank ${rank}.`);
    const settings = { rank, rankSource: pair.A.name };
    return checkedPair(file, pair, settings, { config, base, maxRank: limits.maxRank });
  });
  const scaleOf = ({ rank }: { rank: number }) => (alpha === 0 ? 1 : alpha / rank);
  const moduleLayers = readPairs(file, checked, scaleOf, limits);
  const inOrder = moduleLayers.map((one, i): ModuleLayer => {
    const heads = checked[i]!.place.interleavedHeads;
    return heads === undefined ? one : { ...one, b: inHeadOrder(one.b, one.rank, heads) };
  });
  return adapterOf(inOrder, header.metadata.string('general.base_model.0.name') ?? null);
}

function fileArchitecture({ architecture }: ModelConfig): string {
  return FILE_ARCHITECTURES[architecture] ?? architecture;
}

/** The scaling's numerator. @throws CheckpointError for a file that is no LoRA adapter, or one of another architecture */
function alphaOf({ file, metadata }: GgufHeader, config: ModelConfig): number {
  const expect = (key: string, ...expected: string[]) => {
    const found = metadata.string(key);
    if (found !== undefined && expected.includes(found)) return;
    const shown = found === undefined ? 'nothing' : shownName(found);
    throw new CheckpointError(`${file}: ${key} should be ${expected.join(' or ')}, found ${shown}.`);
  };
  expect('general.type', 'adapter');
  expect('adapter.type', 'lora');
  const own = fileArchitecture(config);
  const names = namesOfArchitecture(own).gguf;
  expect('general.architecture', ...(names.length > 0 ? names : [own]));
  if (metadata.has('adapter.alora.invocation_tokens')) {
    throw new CheckpointError(
      `${file}: is an adapter that begins at certain tokens (adapter.alora.invocation_tokens), which is not supported.`,
    );
  }
  const alpha = metadata.number('adapter.lora.alpha') ?? 0;
  if (Number.isFinite(alpha)) return alpha;
  throw new CheckpointError(`${file}: adapter.lora.alpha should be a finite number, found ${alpha}.`);
}

/** @throws CheckpointError for a tensor that no module of the base model has */
function placedTensors(
  { file, tensors }: GgufHeader,
  config: ModelConfig,
  base: BaseModules,
): PlacedTensor<GgufPlace>[] {
  return tensors.map((tensor) => {
    const [, weight = '', part] = /^(.{1,200})\.lora_([ab])$/s.exec(tensor.name) ?? [];
    const name = huggingFaceTensorName(weight, config.architecture);
    const [, layersName = '', layer, stem = ''] = /^([a-z.]+)\.(\d{1,9})\.([\w.]+)\.weight$/.exec(name) ?? [];
    const module = moduleIn(base, layersName, stem);
    if (module === undefined || part === undefined) {
      const known = [...base.names.keys()].join(', ');
      const what = `belongs to no module of the base model that can have an adapter; those are ${known} of each layer`;
      throw new CheckpointError(`${file}: tensor ${shownName(tensor.name)} ${what}.`);
    }
    const place: GgufPlace = {
      layer: Number(layer),
      module,
      part: part === 'a' ? 'A' : 'B',
      interleavedHeads: interleavedHeads(name, config),
    };
    return { place, tensor };
  });
}

/**
 * Rows of B in the order that Hugging Face has, of heads whose halves llama.cpp's RoPE wants interleaved:
 *
 *   file   h0: a0 b0 a1 b1 a2 b2 ...      ->      h0: a0 a1 a2 ... b0 b1 b2 ...
 */
function inHeadOrder(rows: Float32Array, rank: number, heads: number): Float32Array {
  const ordered = new Float32Array(rows.length);
  const perHead = rows.length / rank / heads;
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < perHead; row++) {
      const from = head * perHead + row;
      const to = head * perHead + (row % 2) * (perHead / 2) + (row >> 1);
      ordered.set(rows.subarray(from * rank, (from + 1) * rank), to * rank);
    }
  }
  return ordered;
}
