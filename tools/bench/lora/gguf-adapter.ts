import type { AdapterWeights } from '../../../models/adapters/adapter-weights.js';
import { MODULE_IDS, type ModuleId } from '../../../models/adapters/module-ids.js';
import { ggufBytes } from '../../support/gguf-writer.js';

/** What llama.cpp calls the modules of Llama. */
const NAMES: readonly (readonly [ModuleId, string])[] = [
  [MODULE_IDS.attn_q, 'attn_q'],
  [MODULE_IDS.attn_k, 'attn_k'],
  [MODULE_IDS.attn_v, 'attn_v'],
  [MODULE_IDS.attn_dense, 'attn_output'],
  [MODULE_IDS.mlp_h_to_4h, 'ffn_gate'],
  [MODULE_IDS.mlp_gate, 'ffn_up'],
  [MODULE_IDS.mlp_4h_to_h, 'ffn_down'],
];

/**
 * An adapter of Llama as a GGUF file in f32, for llama.cpp. The scaling is in B, so alpha is the rank. The rows of q and k are not put in
 * the order of llama.cpp's own converter: this is for timing alone.
 */
export function ggufAdapter({ moduleLayers, maxRank }: AdapterWeights): Buffer {
  const names = new Map(NAMES);
  const tensors = moduleLayers.flatMap(({ layer, module, rank, a, b }) => {
    const name = `blk.${layer}.${names.get(module)}.weight`;
    return [
      { name: `${name}.lora_a`, shape: [rank, a.length / rank], data: bytesOf(a) },
      { name: `${name}.lora_b`, shape: [b.length / rank, rank], data: bytesOf(b) },
    ];
  });
  const metadata = {
    'general.architecture': { type: 'string', value: 'llama' },
    'general.type': { type: 'string', value: 'adapter' },
    'adapter.type': { type: 'string', value: 'lora' },
    'adapter.lora.alpha': { type: 'f32', value: maxRank },
  } as const;
  return ggufBytes(metadata, tensors);
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
